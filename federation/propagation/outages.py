"""For how long workloads have no ready pod in any cluster, as far as it was seen: a restart begins anew."""

from collections.abc import Collection, Mapping

from federation.api import ResourceBinding
from federation.objects.health import number
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.propagation.aggregation import read_status
from reberth.cluster.pods.identity import group_of

_READY = {
    ("apps", "Deployment"): "readyReplicas",
    ("apps", "StatefulSet"): "readyReplicas",
    ("apps", "ReplicaSet"): "readyReplicas",
    ("apps", "DaemonSet"): "numberReady",
}


def has_ready_copy(
    binding: ResourceBinding, works: Mapping[str, HeldWork], silent: Collection[str]
) -> bool | None:
    """Tell whether pods of a workload are ready anywhere; None if it has none to be ready."""
    resource = binding.spec.resource
    field = _READY.get((group_of(resource.api_version), resource.kind))
    if field is None or (binding.spec.replicas == 0 and field == "readyReplicas"):
        return None
    statuses = (read_status(work) for name, work in works.items() if name not in silent)
    return any(isinstance(each, dict) and number(each, field) > 0 for each in statuses)


class Outages:
    """Since when each workload that had a ready pod has none."""

    def __init__(self) -> None:
        self._up: set[Key] = set()
        self._down: dict[Key, float] = {}

    @property
    def count(self) -> int:
        return len(self._down)

    def find_longest(self, now: float) -> float:
        return max((now - since for since in self._down.values()), default=0.0)

    def observe(self, key: Key, *, is_ready: bool | None, now: float) -> float | None:
        """Note what is seen of a workload; return how long it was down if it just came back.

        One that never had a ready pod is not down, it has not begun. None stands for one that is gone.
        """
        if is_ready is None:
            self._up.discard(key)
            self._down.pop(key, None)
            return None
        if is_ready:
            self._up.add(key)
            since = self._down.pop(key, None)
            return None if since is None else now - since
        if key in self._up:
            self._up.remove(key)
            self._down[key] = now
        return None
