"""A watch that lasts: a server ends one that is read too slowly, or too long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TypeVar

from reberth.client.api import Api
from reberth.cluster.cache import BOOKMARK
from reberth.cluster.kinds import Resource
from reberth.cluster.tables import meta_of
from reberth.protocol.response import BadObject, WatchEvent
from reberth.records import Record
from reberth.values.errors import Unanswered

T = TypeVar("T", bound=Record)
_SECONDS = 3_600
_PAUSE = 0.1


async def follow(api: Api, resource: Resource[T], *, namespace: str = "") -> AsyncIterator[WatchEvent[T]]:
    """Give all objects of a kind, then every change of them, bookmarks too, whatever becomes of a watch."""
    since: str | None = None
    while True:
        with suppress(Unanswered):
            async with api.watch(resource, since=since, seconds=_SECONDS, namespace=namespace) as lines:
                async for line in lines:
                    if isinstance(line, BadObject):
                        continue
                    yield line
                    # Until the first bookmark it lists, in no order.
                    if since or line.type == BOOKMARK:
                        since = meta_of(line.object).resource_version
        await asyncio.sleep(_PAUSE)
