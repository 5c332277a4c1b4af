"""Follows objects by a watch, so that no list is needed to know when a condition holds.

The server writes each event once for all who watch alike, so that this costs next to nothing beside the
federation's own watches.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from localcluster.cluster import Cluster
from localproduct.lasting_watch import follow
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.cluster.cache import BOOKMARK, DELETED
from reberth.cluster.kinds import Resource
from reberth.cluster.tables import meta_of
from reberth.records import Record

T = TypeVar("T", bound=Record)


@asynccontextmanager
async def watching(cluster: Cluster, resource: Resource[T]) -> AsyncIterator[Mapping[str, T]]:
    """Return the objects of a kind by name; updated while the context lasts."""
    seen: dict[str, T] = {}
    task = asyncio.create_task(_follow(cluster, resource, seen))
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _follow(cluster: Cluster, resource: Resource[T], seen: dict[str, T]) -> None:
    async with Api(Access(str(cluster.kubeconfig))) as api:
        async for line in follow(api, resource):
            name = meta_of(line.object).name
            if line.type == DELETED:
                seen.pop(name, None)
            elif line.type != BOOKMARK:
                seen[name] = line.object
