"""Follows objects by a watch, so that no list is needed to know when a condition holds.

The server writes each event once for all who watch alike, so that this costs next to nothing beside the
federation's own watches.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from localcluster.cluster import Cluster
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.cluster.cache import BOOKMARK, DELETED
from reberth.cluster.kinds import Resource
from reberth.cluster.tables import meta_of
from reberth.protocol.response import BadObject
from reberth.records import Record

T = TypeVar("T", bound=Record)
_LONGEST = 3_600


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
    access = Access(str(cluster.kubeconfig))
    async with Api(access) as api, api.watch(resource, since="0", seconds=_LONGEST) as lines:
        async for line in lines:
            if isinstance(line, BadObject) or line.type == BOOKMARK:
                continue
            name = meta_of(line.object).name
            if line.type == DELETED:
                seen.pop(name, None)
            else:
                seen[name] = line.object
