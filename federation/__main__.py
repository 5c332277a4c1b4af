"""The federation's commands.

`python -m federation schedule` shows where the bindings in a file would be scheduled, and why.
`python -m federation plan` shows what the federation would do with a hub, and why not more.
`python -m federation forgive` lets a workload return to clusters in which it failed.
`python -m federation interpret` tries a customization of a kind on an object.
`python -m federation run` runs the controllers that propagate workloads to the member clusters.
`python -m federation webhook` serves the admission webhook of the hub.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator

from federation import process
from federation.commands import forgive, interpret, plan, webhook
from federation.objects.hub_file import HubFile
from federation.scheduling import Fleet, decide
from federation.scheduling.output import write_json, write_table
from reberth.cli.inputs import (
    add_namespace_argument,
    add_output_argument,
    add_version_argument,
    read_bytes,
    read_name,
    read_now,
)
from reberth.cli.pipes import ending_with_reader
from reberth.cluster.object_files import TextError
from reberth.values.errors import ConfigurationError, ReberthError
from reberth.values.object_error import ObjectError

BAD_INPUT = 2


@ending_with_reader
def main() -> int:
    """Exit codes: 0 for success, also when there is nothing to schedule; 2 for bad input."""
    arguments = _parser().parse_args()
    try:
        return int(arguments.run(arguments))
    except (ReberthError, ObjectError) as error:
        print(f"federation: {error}", file=sys.stderr)
        return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m federation")
    add_version_argument(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "show where bindings would be scheduled, and why"
    schedule = commands.add_parser("schedule", help=text, description=text)
    schedule.add_argument(
        "--hub",
        required=True,
        action="append",
        metavar="OBJECTS",
        help="objects of the hub as kubectl prints them, JSON or YAML; - reads standard input; repeatable",
    )
    schedule.add_argument(
        "binding", nargs="?", metavar="BINDING", help="NAMESPACE/NAME, or NAME with -n (default: all)"
    )
    add_namespace_argument(schedule, default="default")
    schedule.add_argument(
        "--now", metavar="TIME", help="such as 2026-01-02T03:04:05Z; default: the current time"
    )
    add_output_argument(schedule, "json", "table")
    schedule.set_defaults(run=_schedule)
    planned = commands.add_parser("plan", help=plan.DESCRIPTION, description=plan.DESCRIPTION)
    plan.add_arguments(planned)
    planned.set_defaults(run=_plan)
    forgiven = commands.add_parser("forgive", help=forgive.DESCRIPTION, description=forgive.DESCRIPTION)
    forgive.add_arguments(forgiven)
    forgiven.set_defaults(run=_forgive)
    tried = commands.add_parser("interpret", help=interpret.DESCRIPTION, description=interpret.DESCRIPTION)
    interpret.add_arguments(tried)
    tried.set_defaults(run=_interpret)
    text = "serve the admission webhook of the hub: defaults and validation"
    served = commands.add_parser("webhook", help=text, description=text)
    webhook.add_arguments(served)
    served.set_defaults(run=webhook.serve)
    text = "run the controllers that propagate workloads to the member clusters"
    run = commands.add_parser("run", help=text, description=text)
    process.add_arguments(run)
    run.set_defaults(run=process.serve)
    return parser


def _plan(arguments: argparse.Namespace) -> int:
    print(plan.answer(arguments))
    return 0


def _forgive(arguments: argparse.Namespace) -> int:
    print(forgive.answer(arguments))
    return 0


def _interpret(arguments: argparse.Namespace) -> int:
    text, code = interpret.answer(arguments)
    print(text)
    return code


def _schedule(arguments: argparse.Namespace) -> int:
    now = read_now(arguments.now)
    hub = _read_hub(arguments.hub)
    names = _find(hub, arguments)
    fleet = Fleet(hub.clusters)
    if fleet.faults:
        raise ConfigurationError("\nfederation: ".join(map(str, fleet.faults)))
    decisions = {name: decide(hub.bindings[name], fleet, now=now) for name in names}
    text = write_json(decisions) if arguments.output == "json" else write_table(decisions)
    if text:
        print(text)
    for note in _list_notes(hub):
        print(f"federation: {note}", file=sys.stderr)
    return 0


def _read_hub(sources: Iterable[str]) -> HubFile:
    try:
        hub = HubFile(read_bytes(source, "--hub") for source in sources)
    except TextError as error:
        raise ConfigurationError(f"--hub: {error}") from error
    if hub.faults:
        raise ConfigurationError("\nfederation: ".join(map(str, hub.faults)))
    return hub


def _find(hub: HubFile, arguments: argparse.Namespace) -> Iterable[str]:
    """Find the binding that is asked for; one without a namespace may be a ClusterResourceBinding."""
    asked: str | None = arguments.binding
    if asked is None:
        return sorted(hub.bindings)
    namespaced = "/".join(read_name(asked, "BINDING", arguments, live=False))
    sought = (namespaced,) if arguments.namespace else (asked, namespaced)
    found = [name for name in sought if name in hub.bindings]
    if not found:
        there = ", ".join(sorted(hub.bindings)) or "none"
        raise ConfigurationError(f"BINDING: {sought[-1]} not found; available: {there}")
    return found[:1]


def _list_notes(hub: HubFile) -> Iterator[str]:
    """List notes on objects in the input that the command does not schedule."""
    policies = hub.names("PropagationPolicy", "ClusterPropagationPolicy")
    if not hub.bindings:
        yield "no ResourceBinding or ClusterResourceBinding in the input: nothing to schedule"
    if policies and not hub.bindings:
        yield f"policies are not scheduled, only the bindings made from them: {', '.join(policies)}"
    for name in hub.names("WorkloadRebalancer"):
        yield f"{name} is ignored: `plan` shows what it would do"


if __name__ == "__main__":
    sys.exit(main())
