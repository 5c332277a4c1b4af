"""System calls fail as Python's own do: with the number and what it was about."""

import errno
import os

import pytest

from localcluster.host import kernel


def test_a_refused_call_names_itself_and_its_object() -> None:
    with pytest.raises(OSError, match="mount: ") as refused:
        kernel.mount("none", "/does/not/exist", flags=kernel.Mount.BIND)
    assert refused.value.errno in {errno.ENOENT, errno.EPERM}
    assert refused.value.filename == "/does/not/exist"


def test_what_is_no_namespace_is_not_entered() -> None:
    with open(os.devnull) as file, pytest.raises(OSError, match="setns"):  # noqa: PTH123 - no path of ours
        kernel.enter(file.fileno())
