"""Watches for kinds that are learned at run time: each one is cached from then on."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from federation.hub.kind_catalog import LearnedKinds
from federation.hub.object_api import ObjectApi
from federation.objects.cache import NotifyingCache
from federation.objects.template import ResourceTemplate
from reberth.client.mirror import Mirror, mirroring
from reberth.client.watcher import EVERYTHING, WatchSettings
from reberth.cluster.kinds import Resource


async def mirror_learned_kinds(
    kinds: LearnedKinds,
    api: ObjectApi,
    cache: NotifyingCache,
    *,
    settings: WatchSettings,
    selection: Mapping[str, str] = EVERYTHING,
    listed: Callable[[], None] = lambda: None,
    server: str = "",
) -> None:
    """Watch each learned kind until cancelled; call `listed` when one is listed, or is not served."""
    async with asyncio.TaskGroup() as group:
        known = 0
        while True:
            for resource in kinds.all[known:]:
                mirror = mirroring(
                    api, cache, [resource], settings=settings, selection=selection, server=server
                )
                group.create_task(_mirror(resource, mirror, listed))
                known += 1
            await kinds.grown(beyond=known)


async def _mirror(
    resource: Resource[ResourceTemplate],
    mirroring_it: AbstractAsyncContextManager[Mirror],
    listed: Callable[[], None],
) -> None:
    async with mirroring_it as mirror:
        await mirror.watchers[resource.name].answered()
        listed()
        await asyncio.Event().wait()
