"""The commands for operators.

`python -m reberth check` checks that Reberth can read every kind it needs; `python -m reberth landing`
forecasts where pods would land; `python -m reberth certificates` renews certificates.
"""

import argparse
import asyncio
import sys

from reberth.cli import certificates, landing
from reberth.cli.check import CheckReport, check, tabulate_report, write_report_json
from reberth.cli.inputs import add_access_arguments, add_output_argument, add_version_argument, read_access
from reberth.cli.pipes import ending_with_reader
from reberth.runtime import logs
from reberth.runtime.logs import LogSettings
from reberth.values.errors import ConfigurationError

BAD_INPUT = 2


@ending_with_reader
def main() -> int:
    """Exit code 0: success; 1: a kind cannot be read, or the API server does not answer; 2: bad input."""
    arguments = _parser().parse_args()
    logs.setup(LogSettings(level="error"))
    try:
        return int(arguments.run(arguments))
    except ConfigurationError as error:
        print(f"reberth: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130


def _check(arguments: argparse.Namespace) -> int:
    report = asyncio.run(check(read_access(arguments), seconds=arguments.wait))
    _print(report, arguments.output)
    return 0 if report.is_well else 1


def _land(arguments: argparse.Namespace) -> int:
    print(landing.answer(arguments))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reberth")
    add_version_argument(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "check that Reberth can read every kind it needs"
    checked = commands.add_parser("check", help=text, description=text)
    add_access_arguments(checked)
    checked.add_argument("--wait", type=float, default=10.0, metavar="SECONDS", help="timeout (default: 10)")
    add_output_argument(checked, "json", "table")
    checked.set_defaults(run=_check)
    text = "forecast where kube-scheduler would place pods"
    forecast = commands.add_parser("landing", help=text, description=text)
    landing.add_arguments(forecast)
    forecast.set_defaults(run=_land)
    text = "renew the certificates of Reberth"
    certificates.add_arguments(commands.add_parser("certificates", help=text, description=text))
    return parser


def _print(report: CheckReport, output: str) -> None:
    if output == "json":
        print(write_report_json(report))
    elif report.trouble is not None:
        print(f"reberth: {report.server}: {report.trouble}", file=sys.stderr)
    else:
        print(tabulate_report(report))


if __name__ == "__main__":
    sys.exit(main())
