"""`python -m federation plan`: what the federation would do with a hub, from a file or the live one."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterable

import msgspec

from federation.api import INTERPRETER_KIND
from federation.commands.hub_reader import HubReading, read_hub
from federation.objects.hub_file import WITH_WORKS, HubFile
from federation.planning.hub_objects import HubSnapshot
from federation.planning.output import write_json, write_table, write_yaml
from federation.planning.planner import make_plan
from federation.planning.rehearsal import PlanRules
from federation.settings import FederationSettings
from reberth.cli.inputs import (
    add_access_arguments,
    add_output_argument,
    read_access,
    read_bytes,
    read_now,
    read_settings,
)
from reberth.cluster.object_files import TextError
from reberth.values.errors import ConfigurationError, taken_apart

DESCRIPTION = "show what would be scheduled, moved, evicted and failed back, and why the rest would stay"
_POLICY_KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hub",
        action="append",
        metavar="OBJECTS",
        help="all objects of the hub as kubectl prints them, JSON or YAML; - reads standard input; repeatable"
        " (default: the live hub)",
    )
    parser.add_argument(
        "--settings", metavar="FILE", help="settings file of kind FederationSettings (default: all defaults)"
    )
    parser.add_argument("--now", metavar="TIME", help="time of the plan, RFC 3339 (default: now)")
    add_output_argument(parser, "json", "yaml", "table")
    add_access_arguments(parser)


def answer(arguments: argparse.Namespace) -> str:
    """Return what is printed. Raises ConfigurationError, or ReberthError for a hub that cannot be read."""
    settings = read_settings(arguments.settings, FederationSettings(), "--settings")
    reading = _read(arguments)
    plan = make_plan(reading.snapshot, read_rules(settings), now=reading.now)
    for text in (*reading.troubles, *plan.warnings):
        sys.stderr.write(f"federation: {text}\n")
    if arguments.output == "table":
        return write_table(plan, width=shutil.get_terminal_size((160, 0)).columns)
    return write_json(plan) if arguments.output == "json" else write_yaml(plan)


def _read(arguments: argparse.Namespace) -> HubReading:
    now = read_now(arguments.now)
    if arguments.hub:
        return read_files(arguments.hub, now)
    with taken_apart():
        reading = asyncio.run(read_hub(read_access(arguments)))
    return reading if arguments.now is None else reading._replace(now=now)


def read_files(sources: Iterable[str], now: float) -> HubReading:
    """Read a hub from files. Raises ConfigurationError for all that cannot be read in them."""
    try:
        texts = (read_bytes(source, "--hub") for source in sources)
        hub = HubFile(texts, WITH_WORKS, with_templates=True)
    except TextError as error:
        raise ConfigurationError(f"--hub: {error}") from error
    if hub.faults:
        raise ConfigurationError("\nfederation: ".join(map(str, hub.faults)))
    snapshot = HubSnapshot(
        hub.clusters,
        hub.bindings.values(),
        hub.list_objects("Work"),
        hub.list_objects(*_POLICY_KINDS),
        hub.templates.items(),
        hub.list_objects("WorkloadRebalancer"),
        interpreters=hub.list_objects(INTERPRETER_KIND),
    )
    return HubReading(snapshot, now, tuple(_list_notes(hub)))


def read_rules(settings: FederationSettings) -> PlanRules:
    """Return what the controllers of a process with these settings go by."""
    switches, members = settings.controllers, settings.members
    running: dict[str, bool] = msgspec.structs.asdict(switches)
    return PlanRules(
        controllers=frozenset(name for name, is_on in running.items() if is_on),
        scheduling=settings.scheduler.rules(hands_over=switches.handovers),
        patience=settings.graceful.patience,
        failback_at_once=settings.failback.at_once,
        failback_handover=settings.failback.handover_timeout,
        rebalancer_handover=settings.rebalancer.handover_timeout,
        lost_after=members.taint_lost_members_after,
        brake_fraction=members.brake.lost_fraction,
        brake_longest=members.brake.longest,
        let_go_after=members.let_go_after,
        give_up=settings.application_failover.rules(),
        storm=settings.application_failover.storm_rules(),
        pending=settings.pending_replicas.rules() if switches.gives_pending() else None,
    )


def _list_notes(hub: HubFile) -> Iterable[str]:
    """Say what is missing in the input for a whole plan."""
    policies = hub.names(*_POLICY_KINDS)
    if not hub.bindings and not policies:
        yield "no binding and no policy in the input: nothing to plan"
    if hub.bindings and not policies:
        yield "no policy in the input: bindings are taken as they are"
    if policies and not hub.templates:
        yield "policies without the objects that they select make no new bindings"
