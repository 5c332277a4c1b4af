"""The descheduler's nodeFit: what it costs to find that a pod fits on no other node.

The descheduler runs as in a cluster, cycle after cycle, with one plugin that looks only at the candidates.
Its policy excludes the namespaces of all pods, so it never evicts; it calls nodeFit before that check. The
cost of a cycle without nodeFit is subtracted.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import descheduler
from bench.landing.candidates import LARGE
from bench.reading.arms import Failed
from localcluster.cluster import Cluster

_PLUGIN = "PodLifeTime"
_CYCLES = 3
_MISFIT = "pod does not fit on any other node"
_SUM, _CPU = "descheduler_descheduler_strategy_duration_seconds_sum", "process_cpu_seconds_total"


class Cycle(NamedTuple):
    """Seconds of one cycle: of the plugin by the clock, and of CPU of the whole program."""

    wall: float
    cpu: float


async def measure(cluster: Cluster, sorts: Sequence[str], candidates: int) -> Mapping[str, Cycle]:
    """Give what nodeFit costs for one candidate of each kind."""
    without = await _run(cluster, LARGE, candidates, node_fit=False)
    cycles = {sort: await _run(cluster, sort, candidates, node_fit=True) for sort in sorts}
    return {sort: _share(cycle, without, candidates) for sort, cycle in cycles.items()}


def _share(cycle: Cycle, without: Cycle, candidates: int) -> Cycle:
    return Cycle(*((after - before) / candidates for after, before in zip(cycle, without, strict=True)))


async def _run(cluster: Cluster, sort: str, candidates: int, *, node_fit: bool) -> Cycle:
    """Let it run for some cycles."""
    name = f"descheduler-{sort}-{'with' if node_fit else 'without'}-node-fit"
    policy = describe_policy(sort, node_fit=node_fit)
    watched = await descheduler.watch(cluster, name, policy, cycles=_CYCLES)
    if node_fit:
        _refuse_other_counts(watched.log, candidates)
    return Cycle(watched.per_cycle(_SUM), watched.per_cycle(_CPU))


def describe_policy(namespace: str, *, node_fit: bool) -> dict[str, Any]:
    evictor = {"nodeFit": node_fit, "namespaceLabelSelector": {"matchLabels": {"of": "nobody"}}}
    lifetime = {"maxPodLifeTimeSeconds": 0, "namespaces": {"include": [namespace]}}
    return descheduler.describe_policy(_PLUGIN, "deschedule", lifetime, evictor=evictor)


def _refuse_other_counts(log: Path, candidates: int) -> None:
    """A candidate that fits somewhere costs less, and one that is skipped costs nothing."""
    misfits = len(set(re.findall(rf'{_MISFIT}.*pod="([^"]+)"', log.read_text(errors="replace"))))
    if misfits != candidates:
        raise Failed(f"the descheduler found {misfits} pods that fit nowhere, not {candidates}; see {log}")
