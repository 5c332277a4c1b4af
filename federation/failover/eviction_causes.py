"""Why a workload has to leave a cluster: a taint that it does not tolerate, or the cluster's deletion."""

from collections.abc import Callable
from typing import NamedTuple

from federation.api import Cluster, ResourceBinding
from federation.api.clusters import NO_EXECUTE
from federation.failover.eviction_tasks import LEAVING, UNTOLERATED
from federation.failover.toleration import find_departure, write_taint
from reberth.records import Taint
from reberth.values.timestamp import TimeError, parse_time


class EvictionCause(NamedTuple):
    """When a workload has to leave a cluster, and why."""

    at: float
    reason: str
    message: str


class EvictionCauses:
    """Finds causes, and remembers when it first saw a taint that has no `timeAdded`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str, str], float] = {}

    def find(self, binding: ResourceBinding, cluster: Cluster) -> EvictionCause | None:
        """Return the cause to evict the workload from the cluster, now or later; None if there is none.

        A workload without a placement of its own follows the bindings that require it.
        """
        placement = binding.spec.placement
        if placement is None:
            return None
        if cluster.metadata.deletion_timestamp is not None:
            return EvictionCause(0.0, LEAVING, "the cluster is being deleted")
        found = find_departure(
            cluster.spec.taints, placement.cluster_tolerations, lambda taint: self._find_start(cluster, taint)
        )
        if found is None:
            return None
        return EvictionCause(
            found.at, UNTOLERATED, f"cluster(s) had untolerated taint {{{write_taint(found.taint)}}}"
        )

    def on_change(self, cluster: Cluster) -> None:
        """Remember when new taints were seen, and forget those that are gone."""
        uid = cluster.metadata.uid
        there = {(uid, each.key, each.value or "") for each in cluster.spec.taints or () if _evicts(each)}
        for key in [key for key in self._seen if key[0] == uid and key not in there]:
            del self._seen[key]
        for key in there:
            self._seen.setdefault(key, self._clock())

    def _find_start(self, cluster: Cluster, taint: Taint) -> float:
        if taint.time_added:
            try:
                return parse_time(taint.time_added)
            except TimeError:
                pass
        return self._seen.setdefault((cluster.metadata.uid, taint.key, taint.value or ""), self._clock())


def _evicts(taint: Taint) -> bool:
    return taint.effect == NO_EXECUTE
