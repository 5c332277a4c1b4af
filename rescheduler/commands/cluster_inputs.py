"""What a command plans for: the objects of a file or of the live cluster, the policy, and kube-scheduler."""

import argparse
import asyncio
import sys
from typing import NamedTuple

from reberth.cli.inputs import (
    add_access_arguments,
    add_namespace_argument,
    read_access,
    read_now,
    read_objects,
    read_scheduler,
    read_settings,
    version_argument,
)
from reberth.cli.one_look import OneLook
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.custom_kinds import find_custom_resources
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.pods.requests import NEWEST, Version, read_version, write_version
from reberth.cluster.snapshot import Snapshot, take
from reberth.forecast.extender import DEFAULTS
from reberth.values.errors import ReberthError
from rescheduler.commands.spinner import show_progress
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.model.replacing_kinds import list_custom, list_unnamed
from rescheduler.observe.needed_kinds import FOR_A_PLAN
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.policy_file import ReschedulerPolicy

_READING_TIME = 60.0


class ClusterInputs(NamedTuple):
    """Everything that a plan depends on, but for the memory of the last one."""

    snapshot: Snapshot
    policy: ReschedulerPolicy
    model: SchedulerModel
    gaps: tuple[str, ...] = ()
    """What could not be read."""

    def describe(self) -> str:
        pods, nodes = self.snapshot.pods.rows, self.snapshot.nodes.names
        return f"planning for {len(pods):,} pods on {len(nodes):,} nodes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="OBJECTS",
        help="all objects of a cluster, as JSON or YAML; - reads stdin (default: the live cluster)",
    )
    parser.add_argument(
        "--policy", metavar="FILE", help="file of kind ReschedulerPolicy (default: all defaults)"
    )
    parser.add_argument(
        "--scheduler-config",
        metavar="FILE",
        help="file with the KubeSchedulerConfiguration (default: the defaults of kube-scheduler)",
    )
    parser.add_argument(
        "--extender-settings", metavar="FILE", help="file with the settings of Reberth's extender"
    )
    parser.add_argument(
        "--kubernetes",
        metavar="VERSION",
        type=version_argument,
        help=f"version of kube-scheduler (default: that of the cluster, or {write_version(NEWEST)})",
    )
    parser.add_argument("--now", metavar="TIME", help="time of the plan, RFC 3339 (default: now)")
    add_namespace_argument(parser, default="that of the kubeconfig's context; with --cluster: default")
    add_access_arguments(parser)


async def read_inputs(arguments: argparse.Namespace) -> ClusterInputs:
    """Raises ConfigurationError, or ReberthError for a cluster that cannot be read."""
    policy = read_settings(arguments.policy, ReschedulerPolicy(), "--policy")
    extender = read_settings(arguments.extender_settings, DEFAULTS, "--extender-settings")
    now = read_now(arguments.now)
    snapshot, version, gaps = await _read_cluster(arguments, now, policy.protections)
    model = SchedulerModel(version, read_scheduler(arguments.scheduler_config, version), extender)
    return ClusterInputs(snapshot, policy, model, gaps)


async def _read_cluster(
    arguments: argparse.Namespace, now: float, protections: ProtectionSettings
) -> tuple[Snapshot, Version, tuple[str, ...]]:
    if arguments.cluster is None:
        given = None if arguments.now is None else now
        return await _read_live_cluster(read_access(arguments), given, arguments.kubernetes, protections)
    version: Version = arguments.kubernetes or NEWEST
    with show_progress(lambda: f"reading {arguments.cluster}"):
        keys = protections.annotation_keys
        reading = read_objects(arguments.cluster, now=now, version=version, annotations=keys)
    gaps = tuple(f"skipped: {fault}" for fault in reading.faults)
    for gap in gaps:
        sys.stderr.write(f"rescheduler: {gap}\n")
    if not reading.snapshot.nodes.names:
        sys.stderr.write("rescheduler: the objects contain no node: no pod can be moved\n")
    return reading.snapshot, version, gaps


async def _read_live_cluster(
    access: Access, now: float | None, given: Version | None, protections: ProtectionSettings
) -> tuple[Snapshot, Version, tuple[str, ...]]:
    """Read everything once; Reberth's own kinds may not be installed. Now is the API server's time."""
    async with Api(access) as api:
        version = given or read_version(await api.version())
        cache = Cache(version=version, annotations=protections.annotation_keys)
        named = list_custom(protections.replacing_kinds)
        custom = await find_custom_resources(api, named, unnamed=list_unnamed(named))
        look = OneLook((*ALL_RESOURCES, *custom))
        await _take(look, api, cache)
        snapshot = take(cache, now=api.clock.now() if now is None else now)
    return snapshot, version, _find_gaps(look)


async def _take(look: OneLook, api: Api, cache: Cache) -> None:
    try:
        with show_progress(lambda: f"reading the cluster: waiting for {', '.join(sorted(look.waiting))}"):
            async with asyncio.timeout(_READING_TIME):
                await look.take(api, cache)
    except TimeoutError:
        raise ReberthError(f"the cluster was not read within {_READING_TIME:g} s") from None


def _find_gaps(look: OneLook) -> tuple[str, ...]:
    """Give what the plan is made without, and tell it; nodes and pods are required."""
    for name in FOR_A_PLAN:
        if name in look.troubles:
            raise ReberthError(f"{name} cannot be read: {look.troubles[name]}")
    gaps = tuple(f"planned without {gap}" for gap in look.list_gaps())
    for gap in gaps:
        sys.stderr.write(f"rescheduler: {gap}\n")
    return gaps
