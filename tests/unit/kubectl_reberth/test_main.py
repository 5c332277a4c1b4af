"""The one command hands over to the programs, with their arguments and their exit codes."""

import subprocess
import sys
from importlib import import_module

import pytest

from kubectl_reberth import __main__ as command
from reberth import __version__


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["kubectl-reberth", *arguments])
    return command.main()


@pytest.mark.parametrize(
    ("arguments", "program", "forwarded"),
    [
        (["check", "--wait", "3"], "reberth", ["check", "--wait", "3"]),
        (["landing", "--help"], "reberth", ["landing", "--help"]),
        (["extender"], "extender", []),
        (["rescheduler", "plan", "-o", "json"], "rescheduler", ["plan", "-o", "json"]),
        (["federation", "schedule"], "federation", ["schedule"]),
        (["report", "-o", "html"], "rescheduler", ["report", "-o", "html"]),
        (["plan", "--why", "web"], "rescheduler", ["plan", "--why", "web"]),
        (["move", "web"], "rescheduler", ["move", "web"]),
        (["notes", "list"], "rescheduler", ["notes", "list"]),
    ],
)
def test_arguments_and_exit_code_pass_between_command_and_program(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], program: str, forwarded: list[str]
) -> None:
    seen: list[str] = []
    module = import_module(f"{program}.__main__")
    monkeypatch.setattr(module, "main", lambda: seen.extend(sys.argv) or 7)
    assert run(monkeypatch, *arguments) == 7
    assert seen == [program, *forwarded]


def test_every_command_is_forwarded_in_a_test() -> None:
    asked = ["report", "plan", "move", "notes", "check", "certificates", "landing"]
    assert list(command.PROGRAMS) == [*asked, "extender", "rescheduler", "federation"]


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_the_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert run(monkeypatch, option) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(f"  {name} " in out and text in out for name, (_, text) in command.PROGRAMS.items())


@pytest.mark.parametrize(("arguments", "said"), [([], "usage: "), (["mvoe"], "unknown command 'mvoe'")])
def test_without_a_known_command_the_commands_are_listed_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(monkeypatch, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "rescheduler" in err


@pytest.mark.parametrize("name", list(command.PROGRAMS))
def test_the_help_of_a_program_is_its_own(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_reberth", name, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: python -m {command.PROGRAMS[name][0]}")


def test_no_program_is_imported_before_it_is_asked_for() -> None:
    program = (
        "import sys, kubectl_reberth.__main__; "
        "sys.exit(any(name in sys.modules for name in ('reberth', 'extender', 'rescheduler', 'federation')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("program", ["kubectl_reberth", "reberth", "rescheduler", "extender", "federation"])
def test_every_program_tells_the_same_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    monkeypatch.setattr("sys.argv", [program, "--version"])
    try:
        code = import_module(f"{program}.__main__").main()
    except SystemExit as ended:
        code = ended.code
    assert code == 0
    assert capsys.readouterr().out == f"reberth {__version__}\n"
