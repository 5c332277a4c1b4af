"""What a member has on the hub: the namespace of its Works, and the finalizer of its Cluster.

A deleted Cluster waits until its workloads have replacements in other clusters. Workloads leave at a rate,
and after those of other clusters, so letGoAfter begins when the last one had its turn. After that the Works
are deleted anyway, and with them the copies in the member; if the member does not answer, the copies stay.
"""

import asyncio
from collections.abc import Iterable, Sequence

from federation.api import CLUSTER_API_VERSION, Cluster, ResourceBinding
from federation.failover.eviction_causes import EvictionCauses
from federation.failover.eviction_tasks import concerns
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry.step_events import SPACE_CREATED, SPACE_REMOVED, tell_step
from federation.objects import resources
from federation.objects.names import namespace_of_works
from federation.objects.template import Object
from federation.planning.evictions import find_release, list_evictions
from federation.scheduling import name_of
from reberth.client.events import WARNING
from reberth.records import ObjectReference
from reberth.values import errors

FINALIZER = "karmada.io/cluster-controller"
_FINALIZER_MANAGER = "reberth-federation-finalizer"
_WAITING, _ACTION = "WaitingForSubstitutes", "Leave"
_LOOK_AGAIN = 1.0
"""Seconds between looks at a Cluster that is being deleted."""
_SET_UP_AGAIN = 60.0
"""Seconds after which namespace and finalizer are looked at again: somebody may have deleted them."""
_SOME = 5


class MemberCleanup:
    """Without `causes` nobody evicts workloads in this process, and nobody's turn is waited for."""

    def __init__(self, hub: Hub, causes: EvictionCauses | None, *, let_go_after: float) -> None:
        self._hub = hub
        self._causes = causes
        self._let_go_after = let_go_after
        self._set_up_at: dict[str, float] = {}
        self._waited_at: dict[str, float] = {}
        """By name of a deleted Cluster, when a workload still had its turn to leave before it."""

    def forget(self, name: str) -> None:
        self._set_up_at.pop(name, None)
        self._waited_at.pop(name, None)

    async def set_up(self, cluster: Cluster) -> None:
        """Create the namespace of the member's Works and set the finalizer of the Cluster, where missing."""
        name, now = cluster.metadata.name, asyncio.get_running_loop().time()
        if now < self._set_up_at.get(name, float("-inf")) + _SET_UP_AGAIN:
            return
        namespace = namespace_of_works(name)
        body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await self._hub.api.apply_object(resources.NAMESPACES, namespace, body)
        await self._set_finalizers(cluster, [FINALIZER])
        if not cluster.status.conditions:  # it is new, not only new to this process
            tell_step(self._hub, SPACE_CREATED, _refer_to(cluster), namespace=namespace)
        self._set_up_at[name] = now

    async def clean_up(self, cluster: Cluster) -> float | None:
        """Wait for replacements or the timeout; then delete the Works, their namespace, the finalizer."""
        name = cluster.metadata.name
        staying = [binding for _, binding in self._hub.list_bindings() if concerns(binding, name)]
        last_turn = self._find_last_turn(cluster, staying)
        release = find_release(cluster, let_go_after=self._let_go_after, last_turn=last_turn)
        if staying and self._hub.clock() < release:
            self._record(cluster, _name_some(staying))
            return _LOOK_AGAIN
        works = list(self._hub.cache.of(resources.WORKS.kind).rows().within(namespace_of_works(name)))
        for work in works:
            if work.metadata.deletion_timestamp is None:
                await self._hub.remove(resources.WORKS, work)
        if works:
            return _LOOK_AGAIN
        await self._remove_namespace(namespace_of_works(name))
        tell_step(self._hub, SPACE_REMOVED, _refer_to(cluster), namespace=namespace_of_works(name))
        await self._set_finalizers(cluster, [])
        return None

    def _find_last_turn(self, cluster: Cluster, staying: Iterable[ResourceBinding]) -> float:
        """Return when the last workload had its turn to leave; inf if one is still to have it, 0 if none."""
        name, now = cluster.metadata.name, self._hub.clock()
        if any(self._awaits_turn(each, cluster) for each in staying):
            self._waited_at[name] = now
            return float("inf")
        return self._waited_at.get(name, 0.0)

    def _awaits_turn(self, binding: ResourceBinding, cluster: Cluster) -> bool:
        """Tell whether the workload will be evicted for the deletion, and is not yet."""
        if self._causes is None:
            return False
        alone = {cluster.metadata.name: cluster}
        return any(list_evictions(binding, alone.get, self._causes))

    async def _set_finalizers(self, cluster: Cluster, finalizers: Sequence[str]) -> None:
        """Set our finalizers. The uid keeps server-side apply from creating a deleted Cluster anew."""
        metadata = {"name": cluster.metadata.name, "uid": cluster.metadata.uid, "finalizers": finalizers}
        body: Object = {"apiVersion": CLUSTER_API_VERSION, "kind": "Cluster", "metadata": metadata}
        await self._hub.api.apply_object(
            resources.CLUSTERS, cluster.metadata.name, body, manager=_FINALIZER_MANAGER
        )

    async def _remove_namespace(self, namespace: str) -> None:
        try:
            found = await self._hub.api.get(resources.NAMESPACES, namespace)
        except errors.NotFound:
            return
        if found.metadata.deletion_timestamp is None:
            await self._hub.remove(resources.NAMESPACES, found)

    def _record(self, cluster: Cluster, note: str) -> None:
        self._hub.recorder.record(
            _refer_to(cluster), reason=_WAITING, note=note, action=_ACTION, kind=WARNING
        )


def _refer_to(cluster: Cluster) -> ObjectReference:
    return refer_to(resources.key_of(resources.CLUSTERS, cluster), cluster.metadata)


def _name_some(bindings: Sequence[ResourceBinding]) -> str:
    """Name the first workloads, and count the rest."""
    names = [name_of(binding) for binding in bindings[:_SOME]]
    more = f" and {len(bindings) - _SOME} more" if len(bindings) > _SOME else ""
    return f"waiting for healthy replacements in other clusters: {', '.join(names)}{more}"
