"""What a daemon reports at /readyz."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reberth.client.access import Access
from rescheduler.daemon.process import Daemon

HEAD = "apiVersion: reberth.dev/v1alpha1\nkind: "


@pytest.mark.parametrize(
    ("lost", "ending"), [("", ""), ("no answer", "; this process lost the lease: no answer")]
)
def test_readyz_names_the_reason_for_a_lost_lease(lost: str, ending: str, tmp_path: Path) -> None:
    settings, policy = tmp_path / "ReschedulerSettings", tmp_path / "ReschedulerPolicy"
    for file in (settings, policy):
        file.write_text(f"{HEAD}{file.name}\n")
    daemon = Daemon(settings, policy, Access())
    daemon._lost = lost
    resources: Any = SimpleNamespace(
        list_warnings=list,
        mirror=SimpleNamespace(troubles=dict),
        extenders=SimpleNamespace(list_remarks=lambda: ["refused: tls.key"]),
    )
    said = list(daemon._list_remarks(cast("Any", resources)))
    assert said == [
        f"standby: another process leads, or no process leads yet{ending}",
        "refused: tls.key",
    ]
