"""The rescheduler: the daemon that plans and makes moves, and commands to plan and move by hand."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from reberth.cli.inputs import add_access_arguments, add_output_argument, add_version_argument, read_access
from reberth.cli.pipes import ending_with_reader
from reberth.client.api import Api
from reberth.client.lease import LEASE_HELD
from reberth.config.settings import load
from reberth.memory.history import Ending
from reberth.runtime import logs
from reberth.runtime.logs import LogSettings
from reberth.values.errors import ConfigurationError, ReberthError, taken_apart
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.commands import move_arguments, plan, report
from rescheduler.commands.move import lead_by_hand, perform_move
from rescheduler.commands.move_request import request_move
from rescheduler.commands.notes import clear_notes, list_notes, tabulate_notes, write_notes_json
from rescheduler.daemon.process import Daemon
from rescheduler.execution.store import MoveStore
from rescheduler.moves.outcome import MoveReport
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings, read_forecaster

DONE, NOT_DONE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class _MoveOptions(TypedDict):
    """What a move needs to know, whether the command or the daemon executes it."""

    to: tuple[str, ...]
    reason: str
    tell: Callable[[str], None]


@ending_with_reader
def main() -> int:
    """Exit code 0: done; 1: refused, failed, or no good outcome; 2: invalid input or no kubeconfig."""
    parser = _parser()
    if len(sys.argv) == 1:
        parser.print_help(sys.stderr)
        raise SystemExit(BAD_INPUT)
    arguments = parser.parse_args()
    logs.setup(LogSettings(level="error"))
    try:
        code = asyncio.run(_answer(arguments))
    except ConfigurationError as error:
        _complain(str(error))
        return BAD_INPUT
    except ReberthError as error:
        _complain(str(error))
        if arguments.run in (_run, _move):
            _complain("moves that were begun are continued by the next command or daemon")
        return NOT_DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


async def _answer(arguments: argparse.Namespace) -> int:
    """Run the command. SIGTERM ends it as Ctrl-C does, and the lease is released."""
    here = asyncio.current_task()
    if here:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, here.cancel)
    try:
        with taken_apart():
            code: int = await arguments.run(arguments)
    except asyncio.CancelledError:
        return INTERRUPTED
    return code


async def _run(arguments: argparse.Namespace) -> int:
    daemon = Daemon(arguments.settings, arguments.policy, read_access(arguments))
    logs.setup(daemon.settings.current.log)
    if not arguments.once:
        await daemon.run()
        return DONE
    came = await daemon.run_once()
    if isinstance(came, Refused):
        print(f"refused: {came.rule}: {came.reason}", flush=True)
        return NOT_DONE
    return DONE if came else NOT_DONE


async def _move(arguments: argparse.Namespace) -> int:
    wanted = move_arguments.read_arguments(arguments)
    settings = _load(arguments)
    policy = load(arguments.policy, ReschedulerPolicy) if arguments.policy else ReschedulerPolicy()
    asked = (read_access(arguments), settings, wanted.pod)
    move = _MoveOptions(to=wanted.to, reason=wanted.reason, tell=_tell)
    make_forecast = read_forecaster(settings.scheduler)
    came: MoveReport | Ending | Refused = await perform_move(
        *asked, policy=policy, make_forecast=make_forecast, **move
    )
    if isinstance(came, Refused) and came.rule == LEASE_HELD:
        came = await request_move(*asked, held=came, **move)
    if isinstance(came, Refused):
        print(f"refused: {came.rule}: {came.reason}", flush=True)
        return NOT_DONE
    return DONE if came.is_well else NOT_DONE


async def _plan(arguments: argparse.Namespace) -> int:
    print(await plan.answer(arguments))
    return DONE


async def _report(arguments: argparse.Namespace) -> int:
    print(await report.answer(arguments))
    return DONE


async def _list_notes(arguments: argparse.Namespace) -> int:
    async with Api(read_access(arguments), _load(arguments).api) as api:
        found = await list_notes(api, arguments.node)
    print(write_notes_json(found) if arguments.output == "json" else tabulate_notes(found))
    return DONE


async def _clear_notes(arguments: argparse.Namespace) -> int:
    settings = _load(arguments)
    async with Api(read_access(arguments), settings.api) as api, lead_by_hand(api, settings) as leadership:
        if isinstance(leadership, Refused):
            print(f"refused: {leadership.rule}: {leadership.reason}")
            return NOT_DONE
        cleared = await clear_notes(api, MoveStore(api, leadership), arguments.node, tell=print)
    return DONE if cleared else NOT_DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rescheduler", description=__doc__)
    add_version_argument(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "run the daemon: plan again and again, and make the moves"
    run = commands.add_parser("run", help=text, description=text)
    run.set_defaults(run=_run)
    run.add_argument(
        "--settings", type=Path, required=True, metavar="FILE", help="file of kind ReschedulerSettings"
    )
    run.add_argument(
        "--policy", type=Path, required=True, metavar="FILE", help="file of kind ReschedulerPolicy"
    )
    run.add_argument("--once", action="store_true", help="run one cycle, wait for its moves, exit")
    add_access_arguments(run)
    move = _command(commands, "move", _move, "move one pod, and show where its replacement lands")
    move_arguments.add_arguments(move)
    planned = commands.add_parser("plan", help=plan.DESCRIPTION, description=plan.DESCRIPTION)
    plan.add_arguments(planned)
    planned.set_defaults(run=_plan)
    reported = commands.add_parser("report", help=report.DESCRIPTION, description=report.DESCRIPTION)
    report.add_arguments(reported)
    reported.set_defaults(run=_report)
    notes = commands.add_parser("notes", help="list or remove the notes on nodes")
    on_notes = notes.add_subparsers(required=True, metavar="COMMAND")
    listed = _command(on_notes, "list", _list_notes, "list the notes on nodes")
    listed.add_argument("--node", metavar="NODE", help="only this node")
    add_output_argument(listed, "json", "table")
    cleared = _command(
        on_notes, "clear", _clear_notes, "remove Reberth's notes; notes of other controllers are kept"
    )
    where = cleared.add_mutually_exclusive_group(required=True)
    where.add_argument("--node", metavar="NODE", help="only this node")
    where.add_argument("--all", action="store_true", help="all nodes")
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse has no public type for it
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="file of kind ReschedulerSettings (default: all defaults)",
    )
    parser.add_argument(
        "--extender", choices=("required", "optional", "none"), help="overrides `extender` of the settings"
    )
    add_access_arguments(parser)
    return parser


def _load(arguments: argparse.Namespace) -> ReschedulerSettings:
    settings = load(arguments.settings, ReschedulerSettings) if arguments.settings else ReschedulerSettings()
    if arguments.extender:
        settings = msgspec.structs.replace(settings, extender=arguments.extender)
    return settings


def _tell(line: str) -> None:
    print(f"{write_time(time.time())}  {line}", flush=True)


def _complain(text: str) -> None:
    print(f"rescheduler: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
