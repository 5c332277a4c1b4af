"""The command line without a cluster: errors of the input are one line."""

import sys
from pathlib import Path

import pytest
import yaml

from reberth.values.errors import ServingError
from rescheduler import __main__
from rescheduler.__main__ import main

UNREACHABLE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "c", "user": {"token": "t"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
}


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rescheduler", *arguments])
    return main()


def unreachable(folder: Path) -> tuple[str, str]:
    """A kubeconfig that leads nowhere, and settings that find that out quickly."""
    kubeconfig, settings = folder / "kubeconfig", folder / "settings"
    kubeconfig.write_text(yaml.safe_dump(UNREACHABLE))
    quick = {"apiVersion": "reberth.dev/v1alpha1", "kind": "ReschedulerSettings", "api": {"tries": 1}}
    settings.write_text(yaml.safe_dump(quick))
    return str(kubeconfig), str(settings)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("move", "a/b/c", "--to", "n1"), "POD: 'a/b/c' must be NAME or NAMESPACE/NAME"),
        (("move", "a/", "--to", "n1"), "POD: 'a/' must be NAME or NAMESPACE/NAME"),
        (("move", "a", "--reason", "two\nlines"), "--reason: must be one line of at most 1024 bytes"),
        (("move", "a", "--reason", "x" * 1025), "--reason: must be one line of at most 1024 bytes"),
        (("move",), "POD is missing"),
        (("move", "--to", "n1"), "POD is missing"),
        (("move", "a", "--to", "n1,,n2"), "--to: 'n1,,n2' is no list of nodes"),
        (("move", "a", "--settings", "/nowhere"), "/nowhere: cannot be read"),
        (("notes", "list", "--kubeconfig", "/nowhere"), "/nowhere: cannot connect to the API server"),
    ],
)
def test_wrong_input_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert run(monkeypatch, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rescheduler: ")
    assert said in line


def test_an_error_from_a_task_group_is_printed_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(_: object) -> int:
        raise ExceptionGroup("tasks", [ExceptionGroup("mirrors", [ServingError("cannot listen on [::1]:1")])])

    monkeypatch.setattr(__main__, "_run", fail)
    assert run(monkeypatch, "run", "--settings", "s", "--policy", "p") == 2
    assert capsys.readouterr().err == "rescheduler: cannot listen on [::1]:1\n"


@pytest.mark.parametrize(
    "arguments",
    [(), ("move", "a", "b"), ("notes", "clear"), ("notes", "clear", "--all", "--node", "n1"), ("fly",)],
)
def test_arguments_that_do_not_belong_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *arguments)
    assert ended.value.code == 2


def test_an_unreachable_api_server_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kubeconfig, settings = unreachable(tmp_path)
    given = ("--kubeconfig", kubeconfig, "--settings", settings)
    assert run(monkeypatch, "move", "a", "--to", "n1", *given) == 1
    said = capsys.readouterr().err
    assert "cannot connect" in said
    assert "Traceback" not in said
    assert "moves that were begun are continued" in said


def test_a_command_that_only_reads_mentions_no_begun_moves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kubeconfig, settings = unreachable(tmp_path)
    assert run(monkeypatch, "notes", "list", "--kubeconfig", kubeconfig, "--settings", settings) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot connect" in line
