"""The descheduler's plan for the same fleet: CPU and memory of a cycle of its dry run.

It asks nodeFit, as we ask the forecast, and evicts no more in a cycle than we plan.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bench import descheduler
from localcluster.cluster import Cluster

_CYCLES = 3
_MOST = 100
_CPU, _MEMORY = "process_cpu_seconds_total", "process_resident_memory_bytes"
_EVICTED = "descheduler_pods_evicted_total"


class DryRun(NamedTuple):
    """One cycle: seconds of CPU, bytes of the program, and the pods that it would evict."""

    cpu: float
    memory: float
    evicted: float


async def measure(cluster: Cluster, arms: Mapping[str, str]) -> Mapping[str, DryRun]:
    """Let it run under the policy of each arm."""
    return {arm: await _run(cluster, arm) for arm in arms}


async def _run(cluster: Cluster, arm: str) -> DryRun:
    watched = await descheduler.watch(
        cluster, f"descheduler-{arm}", describe_policy(arm), cycles=_CYCLES, dry_run=True
    )
    return DryRun(watched.per_cycle(_CPU), watched.ended[_MEMORY], watched.per_cycle(_EVICTED))


def describe_policy(arm: str) -> dict[str, Any]:
    plugin, kind, arguments = _PLUGINS[arm]
    limits = {"maxNoOfPodsToEvictTotal": _MOST}
    return descheduler.describe_policy(plugin, kind, arguments, evictor={"nodeFit": True}, **limits)


_PLUGINS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "utilisation": (
        "LowNodeUtilization",
        "balance",
        {
            "thresholds": dict.fromkeys(("cpu", "memory"), 30),
            "targetThresholds": dict.fromkeys(("cpu", "memory"), 75),
        },
    ),
    "preferences": (
        "RemovePodsViolatingNodeAffinity",
        "deschedule",
        {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]},
    ),
}
