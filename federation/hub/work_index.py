"""An index of Works by binding: they are in the namespaces of the clusters, and name their binding."""

from collections import defaultdict
from typing import Any

from federation.api import WORK_API_VERSION
from federation.hub.hub import Hub
from federation.objects import resources
from federation.objects.names import Key, binding_of, cluster_of_works
from federation.objects.resources import HeldWork
from reberth.cluster.kinds import Resource


class WorkIndex:
    """Records every Work that it sees, and checks in the cache whether it still exists."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._places: dict[Key, set[tuple[str, str]]] = defaultdict(set)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.WORKS and (key := binding_of(record.metadata, WORK_API_VERSION)):
            self._places[key].add((record.metadata.namespace, record.metadata.name))

    def of(self, key: Key) -> dict[str, HeldWork]:
        """Return the Works of a binding, by cluster."""
        found = {place: self._hub.find(resources.WORKS, *place) for place in self._places.get(key, ())}
        there = {place: work for place, work in found.items() if work is not None}
        if there:
            self._places[key] = set(there)
        else:
            self._places.pop(key, None)
        return {cluster_of_works(namespace) or "": work for (namespace, _), work in there.items()}
