"""Wait until a mirror equals a fresh list; settings with short timeouts."""

import asyncio
from dataclasses import replace

from localcluster.client import Client
from reberth.client.mirror import Mirror
from reberth.client.watcher import WatchSettings
from reberth.cluster import kinds
from reberth.cluster.cache import Cache

IMPATIENT = WatchSettings(seconds=2, silence=2.5, first_pause=0.02, longest_pause=0.2, settle=0.01)
STREAMED_PODS = replace(kinds.PODS, is_large=False)
"""Pods that are listed by their watch, as the smaller kinds are."""


async def listed(client: Client, prefix: str) -> dict[str, int]:
    found = [item["metadata"] for item in (await client.get("/api/v1/pods"))["items"]]
    return {meta["name"]: int(meta["resourceVersion"]) for meta in found if meta["name"].startswith(prefix)}


def mirrored(cache: Cache, prefix: str = "") -> dict[str, int]:
    return {row.name: row.version for row in cache.contents()[kinds.POD] if row.name.startswith(prefix)}


async def until_true(mirror: Mirror, client: Client, prefix: str = "") -> None:
    """Wait until the mirror is what a fresh list says of pods that nobody changes any more."""
    truth = await listed(client, prefix)
    change = 0
    try:
        async with asyncio.timeout(20):
            while mirrored(mirror.cache, prefix) != truth:
                change = await mirror.changed(since=change)
    except TimeoutError:
        wrong = dict(truth.items() ^ mirrored(mirror.cache, prefix).items())
        raise AssertionError(f"{mirror.troubles()}, differs in {wrong}") from None
