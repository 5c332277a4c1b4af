"""One look at a cluster: every kind is listed once and none is watched, so the right to list is enough."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

from reberth.client.api import Api
from reberth.client.watcher import describe_absence
from reberth.cluster.cache import ADDED, Cache, Listing
from reberth.cluster.kinds import Resource
from reberth.cluster.tables import meta_of
from reberth.protocol.response import BadObject
from reberth.values.errors import ApiError, NotFound
from reberth.values.object_error import ObjectError


class OneLook:
    """What has been read so far, and what could not be: by kind, in words."""

    def __init__(self, resources: Iterable[Resource[Any]]) -> None:
        self.resources = tuple(resources)
        self.waiting = {each.full_name for each in self.resources}
        self.troubles: dict[str, str] = {}
        self.unreadable: dict[str, tuple[int, str]] = {}
        """How many objects of a kind were left out, and why the first one."""

    async def take(self, api: Api, cache: Cache) -> None:
        """List all kinds at once. A kind that is not installed counts as empty."""
        async with asyncio.TaskGroup() as group:
            for each in self.resources:
                group.create_task(self._list(api, cache, each))

    async def _list(self, api: Api, cache: Cache, resource: Resource[Any]) -> None:
        try:
            await self._read(api, cache, resource)
        except NotFound:
            if not resource.is_optional:
                self.troubles[resource.full_name] = describe_absence(resource)
        except (ApiError, ObjectError) as error:
            self.troubles[resource.full_name] = str(error)
        self.waiting.discard(resource.full_name)

    async def _read(self, api: Api, cache: Cache, resource: Resource[Any]) -> None:
        listing, version = cache.relist(resource.kind), ""
        async with aclosing(api.list_parts(resource)) as parts:
            async for part in parts:
                version = version or part.resource_version
                for each in part.found:
                    self._add(each, listing, resource)
        listing.finish(version)

    def _add(self, found: Any, listing: Listing[Any, Any], resource: Resource[Any]) -> None:  # noqa: ANN401 - an object of the resource
        if isinstance(found, BadObject):
            self._leave_out(resource, found.namespace, found.name, found.reason)
            return
        try:
            listing.apply(ADDED, found)
        except ObjectError as error:
            meta = meta_of(found)
            self._leave_out(resource, meta.namespace, meta.name, str(error))

    def _leave_out(self, resource: Resource[Any], namespace: str, name: str, reason: str) -> None:
        count, first = self.unreadable.get(resource.full_name, (0, f"{namespace}/{name}: {reason}"))
        self.unreadable[resource.full_name] = count + 1, first
