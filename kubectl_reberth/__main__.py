"""`python -m kubectl_reberth COMMAND ...` hands over to the program that has the command."""

import sys
from importlib import import_module

BAD_INPUT = 2
# Imported by name, when asked for: all of them together take longer to import than most commands to run.
PROGRAMS = {
    "report": ("rescheduler", "show what there is to gain in a cluster; reads only, installs nothing"),
    "plan": ("rescheduler", "show which pods would be moved where and why"),
    "move": ("rescheduler", "move one pod, and show where its replacement lands"),
    "notes": ("rescheduler", "list or remove the notes on nodes"),
    "check": ("reberth", "check that every kind that Reberth reads can be read"),
    "certificates": ("reberth", "renew the certificates of Reberth"),
    "landing": ("reberth", "predict where kube-scheduler would place pods"),
    "extender": ("extender", "run the scheduler extender"),
    "rescheduler": ("rescheduler", "run the rescheduler, or plan and make moves by hand"),
    "federation": ("federation", "run the federation of clusters, or ask it by hand"),
}


def main() -> int:
    """Exit code: the program's own; 2: no such command."""
    match sys.argv[1:]:
        case ["-h" | "--help", *_]:
            print(_describe())
            return 0
        case ["--version", *_]:
            print(f"reberth {import_module('reberth').__version__}")
            return 0
        case [command, *arguments] if command in PROGRAMS:
            return _run(command, arguments)
        case [command, *_]:
            print(f"kubectl-reberth: unknown command {command!r}\n\n{_describe()}", file=sys.stderr)
        case _:
            print(_describe(), file=sys.stderr)
    return BAD_INPUT


def _run(command: str, arguments: list[str]) -> int:
    program, _ = PROGRAMS[command]
    # The library has several commands and reads which one is meant; a program is named by its command.
    sys.argv = [program, *([] if command == program else [command]), *arguments]
    return int(import_module(f"{program}.__main__").main())


def _describe() -> str:
    commands = "\n".join(f"  {name:<14}{text}" for name, (_, text) in PROGRAMS.items())
    usage = "usage: python -m kubectl_reberth [--version] COMMAND ..."
    return f"{usage}\n\ncommands (each has its own --help):\n{commands}"


if __name__ == "__main__":
    sys.exit(main())
