"""Several kinds of one cluster in one cache, and one wake-up for a whole burst of changes.

async with mirroring(api, cache, ALL_RESOURCES) as mirror:
    await mirror.synced()
    while True:
        change = await mirror.changed(since=change)
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from reberth.client.api import Api
from reberth.client.watcher import EVERYTHING, Watcher, WatchSettings
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import Resource
from reberth.records import ObjectMeta
from reberth.runtime import logs, metrics

_CUTS_NAMED = 50

log = logs.Log(__name__)


class ObjectChanges:
    """Changes of one object, for one waiter."""

    def __init__(self) -> None:
        self._noted = asyncio.Event()

    def note(self) -> None:
        self._noted.set()

    async def wait(self) -> None:
        """Wait for a change since the end of the last wait. Cancelling it loses nothing."""
        await self._noted.wait()
        self._noted.clear()


class Mirror:
    """The watchers of a cluster, and how fresh the caches are."""

    def __init__(
        self,
        api: Api,
        cache: Cache,
        resources: Iterable[Resource[Any]],
        settings: WatchSettings,
        selection: Mapping[str, str],
    ) -> None:
        resources = tuple(resources)
        self.cache = cache
        cache.on_cut = self._note_cut
        self._plurals = {resource.kind.name: resource.full_name for resource in resources}
        self._named_cuts: set[tuple[str, str, str]] = set()
        self._settings = settings
        self._change = 0
        self._wake_up = asyncio.Event()
        self.watchers = {
            resource.full_name: Watcher(
                api, cache, resource, settings=settings, on_change=self._note_change, selection=selection
            )
            for resource in resources
        }

    async def run(self, watcher: Watcher[Any], *, later: Collection[str]) -> None:
        """Run one of the watchers; one of these names begins when all others have been tried."""
        if watcher.resource.full_name in later:
            for name, other in self.watchers.items():
                if name not in later:
                    await other.tried()
        await watcher.run()

    @contextmanager
    def changes_of(self, uid: str) -> Iterator["ObjectChanges"]:
        """Give the changes of the object with this uid and of the pods that it controls."""
        changes = ObjectChanges()
        with self.cache.hearing(uid, changes.note):
            yield changes

    async def synced(self, *names: str) -> None:
        """Wait until these kinds, or all, have been listed."""
        for name in names or self.watchers:
            await self.watchers[name].synced()

    async def changed(self, *, since: int) -> int:
        """Wait for a change after this one and for the end of its burst; give the newest change.

        Cancelling it loses nothing: the next call returns the same change or a newer one.
        """
        while self._change <= since:
            self._wake_up.clear()
            await self._wake_up.wait()
        await self._settle()
        return self._change

    def is_current(self, resource: Resource[Any], namespace: str, name: str, *, within: float) -> bool:
        """Tell whether the cache has this object, or lacks it, as the server did within so many seconds."""
        watcher = self.watchers.get(resource.full_name)
        return watcher is not None and watcher.is_current(namespace, name, within=within)

    def troubles(self) -> dict[str, str | None]:
        """Why a kind is not in sync now, or None if it is in sync."""
        return {name: watcher.trouble for name, watcher in self.watchers.items()}

    def find_deafness(self) -> str | None:
        """Tell that no watcher has heard anything for so long that the cause may be this process."""
        heard = max((watcher.last_heard for watcher in self.watchers.values()), default=float("inf"))
        silent = asyncio.get_running_loop().time() - heard
        if silent < self._settings.deaf_after:
            return None
        return f"nothing heard from the API server for {silent:.0f} s"

    async def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._settings.longest_burst
        seen = -1
        while seen != self._change and loop.time() < latest:
            seen = self._change
            await asyncio.sleep(self._settings.settle)

    def _note_cut(self, kind: str, meta: ObjectMeta) -> None:
        """Count the object, and log it once."""
        resource = self._plurals.get(kind, kind)
        metrics.WATCH_CUT_OBJECTS.labels(resource).inc()
        name = (kind, meta.namespace, meta.name)
        if name not in self._named_cuts and len(self._named_cuts) < _CUTS_NAMED:
            self._named_cuts.add(name)
            log.warning(
                "large object, only a part is held", resource=resource, object=f"{meta.namespace}/{meta.name}"
            )

    def _note_change(self) -> None:
        self._change += 1
        self._wake_up.set()


@asynccontextmanager
async def mirroring(
    api: Api,
    cache: Cache,
    resources: Iterable[Resource[Any]],
    *,
    settings: WatchSettings = WatchSettings(),  # noqa: B008 - frozen
    selection: Mapping[str, str] = EVERYTHING,
    later: Collection[str] = (),
    server: str = "",
) -> AsyncIterator[Mirror]:
    """Keep the kinds in sync while the context lasts. A bug in one watcher ends the context.

    All kinds are listed at once, but those with the names in `later` only when each of the others has been
    listed, or has failed once: nothing waits for them. A `selection` applies to all of the kinds.
    `server` tells the caches of this process apart in metrics: "" are those of its own API server.
    """
    mirror = Mirror(api, cache, resources, settings, selection)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(mirror.run(watcher, later=later)) for watcher in mirror.watchers.values()]
        try:
            for watcher in mirror.watchers.values():
                _measure(watcher, cache, server)
            yield mirror
        finally:
            for task in tasks:
                task.cancel()
            for watcher in mirror.watchers.values():
                _forget(watcher, server)


def _measure(watcher: Watcher[Any], cache: Cache, server: str) -> None:
    """Register gauges that are read when Prometheus scrapes, not written with every event."""
    name, table = watcher.resource.full_name, cache.of(watcher.resource.kind)
    metrics.WATCH_OBJECTS.labels(name, server).set_function(lambda: len(table))
    metrics.WATCH_STALENESS.labels(name, server).set_function(lambda: watcher.age)
    metrics.WATCH_SYNCED.labels(name, server).set_function(lambda: watcher.is_synced)


def _forget(watcher: Watcher[Any], server: str) -> None:
    for gauge in (metrics.WATCH_OBJECTS, metrics.WATCH_STALENESS, metrics.WATCH_SYNCED):
        gauge.remove(watcher.resource.full_name, server)
