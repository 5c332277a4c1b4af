"""One look at a cluster: every kind is listed once and none is watched, so the right to list is enough."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Any

from reberth.client.api import Api
from reberth.client.watcher import describe_absence
from reberth.cluster.cache import ADDED, Cache, Listing
from reberth.cluster.kinds import Resource
from reberth.cluster.tables import meta_of
from reberth.protocol.response import BadObject
from reberth.values.errors import PASSING, ApiError, Gone, NotFound
from reberth.values.jitter import jittered_backoff
from reberth.values.object_error import ObjectError
from reberth.values.refusal import describe_fault

_PASSING = (*PASSING, Gone)
_TRIES, _FIRST_PAUSE = 4, 0.5


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
        """List a kind; a list that breaks off begins anew."""
        for attempt in range(1, _TRIES + 1):
            try:
                await self._read(api, cache, resource)
            except NotFound:
                if not resource.is_optional:
                    self.troubles[resource.full_name] = describe_absence(resource)
            except (ApiError, ObjectError) as error:
                if isinstance(error, _PASSING) and attempt < _TRIES:
                    await asyncio.sleep(jittered_backoff(attempt, first=_FIRST_PAUSE))
                    continue
                self.troubles[resource.full_name] = str(error)
            break
        self.waiting.discard(resource.full_name)

    async def _read(self, api: Api, cache: Cache, resource: Resource[Any]) -> None:
        listing, version = cache.relist(resource.kind), ""
        self.unreadable.pop(resource.full_name, None)
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
        except Exception as error:  # noqa: BLE001 - it is about this object alone, and is told
            reason = str(error) if isinstance(error, ObjectError) else describe_fault(error)
            meta = meta_of(found)
            self._leave_out(resource, meta.namespace, meta.name, reason)

    def _leave_out(self, resource: Resource[Any], namespace: str, name: str, reason: str) -> None:
        count, first = self.unreadable.get(resource.full_name, (0, f"{namespace}/{name}: {reason}"))
        self.unreadable[resource.full_name] = count + 1, first

    def list_gaps(self) -> Iterator[str]:
        """Say what is not known: kinds that could not be listed, and objects that could not be read."""
        for name, trouble in sorted(self.troubles.items()):
            yield f"{name}: {trouble}"
        for name, (count, first) in sorted(self.unreadable.items()):
            yield f"{count} of {name} that cannot be read: {first}"
