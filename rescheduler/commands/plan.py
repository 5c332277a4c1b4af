"""`python -m rescheduler plan`: which pods would be moved where and why, for a file or the live cluster."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from reberth.cli.inputs import (
    UsageError,
    add_access_arguments,
    add_namespace_argument,
    add_output_argument,
    list_access_options,
    read_access,
    read_bytes,
    read_name,
    read_now,
    read_objects,
    read_scheduler,
    read_settings,
    version_argument,
)
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.custom_kinds import find_custom_resources
from reberth.client.mirror import Mirror, mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.pods.requests import NEWEST, Version, read_version, write_version
from reberth.cluster.snapshot import Snapshot, take
from reberth.forecast.extender import DEFAULTS
from reberth.values.errors import ReberthError
from reberth.values.table import wrap_text
from rescheduler.commands.spinner import show_progress
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.model.plan import Plan
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.model.replacing_kinds import list_custom
from rescheduler.observe.needed_kinds import FOR_A_PLAN
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.explain import PodExplanation, explain_pod
from rescheduler.planning.output import write_guide, write_json, write_table, write_words, write_yaml
from rescheduler.planning.planner import plan
from rescheduler.planning.policy_file import ReschedulerPolicy

DESCRIPTION = "Show which pods would be moved where and why, and why the others stay."

_SYNCING_TIME = 60.0


class PlanInputs(NamedTuple):
    """Everything that a plan depends on."""

    snapshot: Snapshot
    policy: ReschedulerPolicy
    memory: PlanMemory | None
    model: SchedulerModel

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
    parser.add_argument("--memory", metavar="FILE", help="read the memory of the last plan from this file")
    parser.add_argument("--remember", metavar="FILE", help="write the memory for the next plan to this file")
    parser.add_argument("--now", metavar="TIME", help="time of the plan, RFC 3339 (default: now)")
    parser.add_argument("--why", metavar="POD", help="explain why NAMESPACE/NAME is or is not moved")
    add_namespace_argument(parser, default="that of the kubeconfig's context; with --cluster: default")
    add_output_argument(parser, "json", "yaml", "table")
    add_access_arguments(parser)


async def answer(arguments: argparse.Namespace) -> str:
    """Give what is printed. Raises ConfigurationError, or ReberthError for a cluster that cannot be read."""
    inputs = await _read_inputs(arguments)
    width = shutil.get_terminal_size((160, 0)).columns
    if arguments.why:
        place = _find_pod(inputs.snapshot, arguments)
        with show_progress(inputs.describe):
            why = explain_pod(place, inputs.snapshot, inputs.policy, inputs.memory, model=inputs.model)
        return _write_why(why, arguments.output, width)
    with show_progress(inputs.describe):
        made, memory = plan(inputs.snapshot, inputs.policy, inputs.memory, model=inputs.model)
    if arguments.remember:
        _write(arguments.remember, msgspec.json.encode(memory, order="deterministic"))
    if arguments.output == "table":
        return _write_table(made, arguments, width)
    return write_json(made) if arguments.output == "json" else write_yaml(made)


def _write_table(made: Plan, arguments: argparse.Namespace, width: int) -> str:
    """Explain the table to people; a pipe or a file gets the table alone."""
    table = write_table(made, width=width)
    if not sys.stdout.isatty():
        return table
    live = arguments.cluster is None
    guide = write_guide(made, width=width, access=list_access_options(arguments) if live else None)
    return f"{table}\n\n{guide}"


async def _read_inputs(arguments: argparse.Namespace) -> PlanInputs:
    policy = read_settings(arguments.policy, ReschedulerPolicy(), "--policy")
    extender = read_settings(arguments.extender_settings, DEFAULTS, "--extender-settings")
    memory = None if arguments.memory is None else _read_memory(arguments.memory)
    now = read_now(arguments.now)
    snapshot, version = await _read_cluster(arguments, now, policy.protections)
    model = SchedulerModel(version, read_scheduler(arguments.scheduler_config, version), extender)
    return PlanInputs(snapshot, policy, memory, model)


async def _read_cluster(
    arguments: argparse.Namespace, now: float, protections: ProtectionSettings
) -> tuple[Snapshot, Version]:
    if arguments.cluster is None:
        given = None if arguments.now is None else now
        return await _read_live_cluster(read_access(arguments), given, arguments.kubernetes, protections)
    version: Version = arguments.kubernetes or NEWEST
    with show_progress(lambda: f"reading {arguments.cluster}"):
        keys = protections.annotation_keys
        reading = read_objects(arguments.cluster, now=now, version=version, annotations=keys)
    for fault in reading.faults:
        sys.stderr.write(f"rescheduler: skipped: {fault}\n")
    if not reading.snapshot.nodes.names:
        sys.stderr.write("rescheduler: the objects contain no node: no pod can be moved\n")
    return reading.snapshot, version


async def _read_live_cluster(
    access: Access, now: float | None, given: Version | None, protections: ProtectionSettings
) -> tuple[Snapshot, Version]:
    """Read everything once; Reberth's own kinds may not be installed. Now is the API server's time."""
    async with Api(access) as api:
        version = given or read_version(await api.version())
        cache = Cache(version=version, annotations=protections.annotation_keys)
        custom = await find_custom_resources(api, list_custom(protections.replacing_kinds))
        async with mirroring(api, cache, (*ALL_RESOURCES, *custom)) as mirror:
            is_read = await _wait(mirror)
            snapshot = take(cache, now=api.clock.now() if now is None else now)
            troubles = mirror.troubles()
    if not is_read:
        raise ReberthError(f"the cluster was not read within {_SYNCING_TIME:g} s")
    _tell_troubles({name: trouble for name, trouble in sorted(troubles.items()) if trouble})
    return snapshot, version


async def _wait(mirror: Mirror) -> bool:
    """Wait until every kind is read or has failed."""
    left = set(mirror.watchers)

    async def wait(name: str) -> None:
        await mirror.watchers[name].answered()
        left.discard(name)

    try:
        with show_progress(lambda: f"reading the cluster: waiting for {', '.join(sorted(left))}"):
            async with asyncio.timeout(_SYNCING_TIME):
                await asyncio.gather(*map(wait, mirror.watchers))
    except TimeoutError:
        return False
    return True


def _tell_troubles(troubles: Mapping[str, str]) -> None:
    """Warn of kinds that the plan is made without; nodes and pods are required."""
    for name in FOR_A_PLAN:
        if name in troubles:
            raise ReberthError(f"{name} cannot be read: {troubles[name]}")
    for name, trouble in troubles.items():
        sys.stderr.write(f"rescheduler: planned without {name}: {trouble}\n")


def _find_pod(snapshot: Snapshot, arguments: argparse.Namespace) -> int:
    namespace, name = read_name(arguments.why, "--why", arguments, live=arguments.cluster is None)
    place = snapshot.pods.named(namespace, name)
    if place is None:
        raise UsageError(f"--why: there is no pod {namespace}/{name}")
    return place


def _write_why(why: PodExplanation, output: str, width: int) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(why), indent=2).decode()
    if output == "yaml":
        return msgspec.yaml.encode(why).decode().rstrip()
    parts = (("policies:", why.policies), ("rules:", why.rules), ("plan:", why.plan))
    lines = wrap_text(f"{why.pod} on {why.node or 'no node'}: {why.verdict}", width=width, rest="    ")
    for title, words in parts:
        rows = [(f"{'!' if word.against else ' '} {word.who}", word.says) for word in words]
        lines += write_words(title, rows, width=width)
    return "\n".join(lines)


def _read_memory(path: str) -> PlanMemory:
    try:
        return msgspec.json.decode(read_bytes(path, "--memory"), type=PlanMemory)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--memory: {path} is not a plan-memory file: {error}") from None


def _write(path: str, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise UsageError(f"--remember: {path} cannot be written: {error.strerror}") from None
