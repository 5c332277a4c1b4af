"""`python -m reberth landing`: forecast where pods would land, from what `kubectl get -A -o json` prints."""

import argparse
import sys
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from reberth.cli.inputs import (
    UsageError,
    add_namespace_argument,
    add_output_argument,
    read_name,
    read_now,
    read_objects,
    read_scheduler,
    read_settings,
    version_argument,
)
from reberth.cluster.object_files import LoadedObjects
from reberth.cluster.pods.requests import NEWEST, Version, write_version
from reberth.cluster.rows import PodRow
from reberth.forecast.extender import (
    DEFAULTS,
    ReberthExtender,
    SnapshotMemory,
    find_reberth_extenders,
    list_other_extenders,
)
from reberth.forecast.forecast import Victim, forecast, forecast_replacement, forecast_with_stale_cache
from reberth.forecast.output import NEXT, PENDING, Json, describe, tabulate
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import read_pending_pod
from reberth.forecast.state.profile import KubeScheduler
from reberth.forecast.state.proven_versions import describe_unproven
from reberth.forecast.state.view import View, view_snapshot
from reberth.values.timestamp import write_time


class ForecastInputs(NamedTuple):
    """All inputs of the forecast of a pod."""

    view: View
    scheduler: KubeScheduler
    extenders: tuple[ReberthExtender, ...]
    victim: Victim | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pods", nargs="*", metavar="POD", help="NAMESPACE/NAME, or NAME with -n")
    add_namespace_argument(parser, default="default")
    parser.add_argument("--pending", action="store_true", help="forecast every pending pod")
    parser.add_argument(
        "--cluster",
        required=True,
        metavar="OBJECTS",
        help="file of all objects, JSON or YAML; - reads standard input",
    )
    parser.add_argument(
        "--scheduler-config",
        metavar="FILE",
        help="KubeSchedulerConfiguration of the scheduler (default: its defaults)",
    )
    parser.add_argument(
        "--extender-settings",
        metavar="FILE",
        help="settings file of Reberth's extender (default: its defaults)",
    )
    parser.add_argument(
        "--kubernetes",
        default=NEWEST,
        metavar="VERSION",
        type=version_argument,
        help=f"version of kube-scheduler (default: {write_version(NEWEST)})",
    )
    parser.add_argument(
        "--victim",
        choices=[each.value for each in Victim],
        help="what the scheduler sees of the replaced pod (default: depends on its controller)",
    )
    parser.add_argument("--now", metavar="TIME", help="time of the objects, RFC 3339 (default: now)")
    add_output_argument(parser, "json", "table", default="json")


def answer(arguments: argparse.Namespace) -> str:
    """Give the text to print. Raises ConfigurationError."""
    now = read_now(arguments.now)
    version: Version = arguments.kubernetes
    scheduler = read_scheduler(arguments.scheduler_config, version)
    reading = read_objects(arguments.cluster, now=now, version=version)
    _warn(reading, scheduler, version)
    facts = SnapshotFacts(reading.snapshot, version)
    memory = SnapshotMemory(
        facts, read_settings(arguments.extender_settings, DEFAULTS, "--extender-settings")
    )
    view, extenders = view_snapshot(facts), find_reberth_extenders(scheduler, memory)
    places = list(_find_pods(view, arguments))
    inputs = ForecastInputs(view, scheduler, extenders, arguments.victim and Victim(arguments.victim))
    pods = dict(_describe(place, inputs) for place in places)
    if arguments.output == "table":
        return tabulate(pods)
    whole = {"now": write_time(now), "kubernetes": write_version(version), "pods": pods}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()


def _warn(reading: LoadedObjects, scheduler: KubeScheduler, version: Version) -> None:
    """Print warnings about limits of the forecast to stderr."""
    unproven = describe_unproven(version)
    if unproven:
        sys.stderr.write(f"reberth: {unproven}\n")
    for fault in reading.faults:
        sys.stderr.write(f"reberth: skipped: {fault}\n")
    if not len(reading.snapshot.nodes.names):
        sys.stderr.write("reberth: no node in the objects\n")
    for extender in list_other_extenders(scheduler):
        sys.stderr.write(f"reberth: extender {extender} is unknown and ignored\n")


def _describe(place: int, inputs: ForecastInputs) -> tuple[str, Json]:
    """Forecast one pod on its own, as if no other pod moved."""
    view, scheduler, extenders, victim = inputs
    snapshot = view.facts.snapshot
    row = snapshot.pods.rows[place]
    name = f"{row.namespace}/{row.name}"
    if row.node is None:
        pending = forecast(read_pending_pod(view.facts, place), view, scheduler, extenders=extenders)
        return name, describe(pending, snapshot, state=PENDING)
    found = forecast_replacement(place, view, scheduler, victim=victim, extenders=extenders)
    rare = () if victim else forecast_with_stale_cache(place, view, scheduler, extenders=extenders)
    return name, describe(found, snapshot, state=NEXT, rare=rare)


def _find_pods(view: View, arguments: argparse.Namespace) -> Iterator[int]:
    pods = view.facts.snapshot.pods
    if not arguments.pods and not arguments.pending:
        raise UsageError("POD is missing: name a pod, or use --pending")
    for text in arguments.pods:
        namespace, name = read_name(text, "POD", arguments, live=False)
        place = pods.named(namespace, name)
        if place is None:
            raise UsageError(f"POD: the objects contain no pod {namespace}/{name}")
        if pods.rows[place].is_finished:
            raise UsageError(f"POD: {namespace}/{name} has finished and will not be scheduled")
        yield place
    if arguments.pending:
        yield from (place for place, row in enumerate(pods.rows) if _is_pending(row))


def _is_pending(row: PodRow) -> bool:
    return row.node is None and not row.is_finished and not row.is_terminating
