"""The scheduler extender: answers kube-scheduler's calls from Reberth's memory."""

import argparse
import asyncio
import sys
from pathlib import Path

from extender.answers.scheduler_check import find_faults
from extender.server.process import ExtenderProcess
from reberth.cli.inputs import (
    add_access_arguments,
    add_version_argument,
    read_access,
    read_scheduler,
    version_argument,
)
from reberth.cli.pipes import ending_with_reader
from reberth.cluster.pods.requests import NEWEST, Version, write_version
from reberth.runtime import logs
from reberth.values.errors import ConfigurationError, taken_apart

BAD_INPUT = 2


@ending_with_reader
def main() -> int:
    """Exit code 0: stopped on request, or no fault; 1: the scheduler's file does not fit; 2: bad input."""
    arguments = _parser().parse_args()
    try:
        if arguments.check_scheduler:
            return _check(arguments.check_scheduler, arguments.kubernetes)
        asyncio.run(_run(arguments))
    except ConfigurationError as error:
        print(f"reberth-extender: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


async def _run(arguments: argparse.Namespace) -> None:
    extender = ExtenderProcess(Path(arguments.settings), read_access(arguments))
    logs.setup(extender.live.current.log)
    with taken_apart():
        await extender.run()


def _check(path: str, version: Version) -> int:
    faults = find_faults(read_scheduler(path, version, "--check-scheduler"))
    print("\n".join(faults or ["ok"]))
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m extender", description=__doc__)
    add_version_argument(parser)
    doing = parser.add_mutually_exclusive_group(required=True)
    doing.add_argument(
        "--settings", metavar="FILE", help="serve, with the settings in this file (kind: ExtenderSettings)"
    )
    doing.add_argument(
        "--check-scheduler", metavar="FILE", help="check a KubeSchedulerConfiguration and exit"
    )
    parser.add_argument(
        "--kubernetes",
        default=NEWEST,
        type=version_argument,
        metavar="VERSION",
        help=f"version of kube-scheduler (default: {write_version(NEWEST)})",
    )
    add_access_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
