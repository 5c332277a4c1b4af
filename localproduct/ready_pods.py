"""Counts the ready pods of a workload in several clusters by watches, so that no change is missed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localproduct.lasting_watch import follow
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.cluster.cache import DELETED
from reberth.cluster.kinds import PODS
from reberth.records import Pod

_NAMESPACE = "default"


class ReadyPods:
    """Ready pods by cluster; `fewest` is the lowest total since it was set."""

    def __init__(self, workload: str) -> None:
        self._prefix = f"{workload}-"
        self._ready: dict[str, set[str]] = {}
        self._changed = asyncio.Event()
        self.fewest = 0

    @property
    def places(self) -> dict[str, int]:
        return {cluster: len(found) for cluster, found in sorted(self._ready.items()) if found}

    def hear(self, cluster: str, event: str, pod: Pod) -> None:
        if not pod.metadata.name.startswith(self._prefix):
            return
        conditions = pod.status.conditions or ()
        is_ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
        there = self._ready.setdefault(cluster, set())
        if event == DELETED or not is_ready or pod.metadata.deletion_timestamp is not None:
            there.discard(pod.metadata.uid)
        else:
            there.add(pod.metadata.uid)
        self.fewest = min(self.fewest, sum(self.places.values()))
        self._changed.set()

    async def become(self, wanted: dict[str, int], *, within: float = 60) -> None:
        """Wait for these numbers in each cluster, and none elsewhere. Raises LocalClusterError."""
        try:
            async with asyncio.timeout(within):
                while self.places != wanted:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            text = f"{wanted} pods of {self._prefix[:-1]} expected within {within:g} s, found {self.places}"
            raise LocalClusterError(text) from error


@contextlib.asynccontextmanager
async def counting(clusters: Mapping[str, Cluster], workload: str) -> AsyncIterator[ReadyPods]:
    """Count for as long as the context lasts."""
    pods = ReadyPods(workload)
    async with hearing(clusters, pods.hear):
        yield pods


@contextlib.asynccontextmanager
async def hearing(
    clusters: Mapping[str, Cluster], hear: Callable[[str, str, Pod], None]
) -> AsyncIterator[None]:
    """Pass on each state of each pod while the context lasts."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_follow(name, cluster, hear)) for name, cluster in clusters.items()]
            yield
            for task in tasks:
                task.cancel()
    except ExceptionGroup as group:
        # The watches and the body end together; the first error is the cause.
        raise group.exceptions[0] from group


async def _follow(name: str, cluster: Cluster, hear: Callable[[str, str, Pod], None]) -> None:
    async with Api(Access(str(cluster.kubeconfig))) as api:
        async for line in follow(api, PODS, namespace=_NAMESPACE):
            hear(name, line.type, line.object)
