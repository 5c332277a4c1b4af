"""What a daemon has from its start to its stop, whether it leads or not."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.custom_kinds import find_custom_resources
from reberth.client.events import WARNING, recording
from reberth.client.lease import name_holder
from reberth.client.mirror import Mirror, mirroring
from reberth.client.watcher import NOT_INSTALLED, Watcher
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.pods.requests import Version, read_version
from reberth.records import ObjectReference
from reberth.runtime.logs import Log
from reberth.values.refusal import Refused
from rescheduler.daemon.extender_health import ExtenderHealth
from rescheduler.daemon.live_forecast import LiveForecast
from rescheduler.daemon.pause import PauseWatch
from rescheduler.execution.context import ClusterResources
from rescheduler.execution.extenders import connect_to_extenders
from rescheduler.model.extender_guarantees import list_missing_guarantees
from rescheduler.model.replacing_kinds import list_custom, list_unnamed
from rescheduler.observe.cache import NotifyingCache
from rescheduler.observe.needed_kinds import FOR_THE_DAEMON, ONLY_INFORMING, find_unread
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from rescheduler.telemetry import metrics
from rescheduler.telemetry.events import REPORTER

_TELL_EVERY = 5.0
"""Seconds between two lines of the log about caches that are awaited."""

log = Log(__name__)


@dataclass(frozen=True, kw_only=True)
class DaemonResources(ClusterResources):
    """What a daemon has beside that: the lease's own client, what it monitors, and its identity."""

    review_api: Api  # has its own rate limit too: readers with invented tokens must not delay moves
    lease_api: Api  # has its own rate limit: requests for moves must not delay renewals of the lease
    cache: NotifyingCache
    mirror: Mirror
    pause: PauseWatch
    extender_health: ExtenderHealth
    forecast: LiveForecast
    identity: str

    async def wait_until_synced(self) -> None:
        """Wait until a plan sees the whole cluster; log every few seconds what is still being listed."""
        while awaited := dict(self._list_awaited()):
            name, watcher = next(iter(awaited.items()))
            try:
                async with asyncio.timeout(_TELL_EVERY):
                    await (watcher.synced() if name in FOR_THE_DAEMON else watcher.answered())
            except TimeoutError:
                log.info("waiting for caches", caches="; ".join(self.list_awaited()))

    def list_awaited(self) -> Iterator[str]:
        """Give the caches without which no plan is made, and how far each one is."""
        for name, watcher in self._list_awaited():
            so_far = f", {watcher.listed:,} objects so far" if watcher.listed else ""
            yield f"{name}: {watcher.trouble}{so_far}"

    def _list_awaited(self) -> Iterator[tuple[str, Watcher[Any]]]:
        """Give needed caches until they are synced, and others that a plan reads until they are or fail."""
        unread = self._find_unread()
        for name, watcher in self.mirror.watchers.items():
            there = watcher.is_synced if name in FOR_THE_DAEMON else watcher.is_answered or name in unread
            if not there:
                yield name, watcher

    def _find_unread(self) -> frozenset[str]:
        return find_unread(self.policy().protections, self.forecast.model.scheduler)

    def find_cache_ages(self) -> dict[str, float]:
        """Give the age of each synced cache that decides: 0 if its watch is well, even without events.

        A kind that only informs must not stop the whole cluster; what is wrong with it is a warning.
        """
        unread = self._find_unread()
        return {
            name: watcher.age if watcher.trouble else 0.0
            for name, watcher in self.mirror.watchers.items()
            if watcher.is_synced and name not in unread and not _only_informs(name, watcher)
        }

    def refuse_unread(self) -> Refused | None:
        """Refuse moves while a kind that the changed settings read is being listed, and while pods are.

        Cached pods may lack an annotation that protects them by the policy: without this, a pod that was
        protected a moment ago could be evicted. Pods whose requests are counted for an earlier version of
        Kubernetes are being read again, too.
        """
        awaited = list(self.list_awaited())
        if awaited:
            return Refused("StaleMirror", f"not all caches are synced: {'; '.join(awaited)}")
        keys = self.policy().protections.annotation_keys
        if self.cache.keeps_annotations(keys):
            return None
        names = f", with the annotations {', '.join(sorted(keys))}" if keys else ""
        return Refused("StaleMirror", f"pods are being read again{names}")

    def keep_annotations(self) -> None:
        """Read the pods again if the policy protects them by an annotation that the cache does not keep."""
        if self.cache.keep_annotations(self.policy().protections.annotation_keys):
            self.mirror.watchers["pods"].resync()

    def take_version(self, version: Version) -> None:
        """Read the pods again, since versions of Kubernetes differ in how they count a pod's requests."""
        self.cache.take_version(version)
        self.mirror.watchers["pods"].resync()

    def list_warnings(self) -> Iterator[str]:
        """Warn of what is not guaranteed, and of caches that plans are made without."""
        yield from list_missing_guarantees(self.settings().extender)
        yield from self.forecast.list_warnings()
        yield from self.pause.list_warnings()
        if self.extender_health.refused:
            yield f"{self.extender_health.refused.rule}: {self.extender_health.refused.reason}"
        unread = self._find_unread()
        for name, watcher in sorted(self.mirror.watchers.items()):
            trouble = watcher.trouble or ""
            if name in unread:
                continue
            if not watcher.is_synced and name not in FOR_THE_DAEMON and not trouble.startswith(NOT_INSTALLED):
                yield f"planned without {name}: {trouble}"
            elif watcher.is_synced and watcher.trouble and _only_informs(name, watcher):
                yield f"planned with old {name}: {watcher.trouble}"

    def announce_refusal(self, why: str) -> None:
        """Report as an Event that a changed file is refused."""
        lease = self.settings().lease
        regarding = ObjectReference("coordination.k8s.io/v1", "Lease", lease.namespace, lease.name)
        self.recorder.record(regarding, reason="SettingsRefused", note=why, action="Reload", kind=WARNING)


def _only_informs(name: str, watcher: Watcher[Any]) -> bool:
    """Tell whether nothing depends on a kind: those of other projects may be broken for long."""
    return name in ONLY_INFORMING or watcher.resource.is_custom


@asynccontextmanager
async def open_daemon_resources(
    access: Access,
    settings: Callable[[], ReschedulerSettings],
    policy: Callable[[], ReschedulerPolicy],
    forecast: LiveForecast,
    *,
    wake: Callable[[str], None],
) -> AsyncIterator[DaemonResources]:
    """Open everything for as long as the context lasts; `wake` is called if something needs a cycle."""
    first, identity = settings(), name_holder()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        api = await enter(Api(access, first.api))
        lease_api = await enter(Api(access, first.api, api.clock))
        event_api = await enter(Api(access, first.events, api.clock))
        review_api = await enter(Api(access, first.reviews, api.clock))
        metrics.CLOCK_OFFSET.set_function(api.clock.find_offset)
        version = read_version(await api.version())
        forecast.take_version(version)
        cache = NotifyingCache(version=version, annotations=policy().protections.annotation_keys)
        named = list_custom(policy().protections.replacing_kinds)
        custom = await find_custom_resources(api, named, unnamed=list_unnamed(named))
        recorder = await enter(recording(event_api, reporter=REPORTER, instance=identity))
        extenders = await enter(connect_to_extenders(api, first.extender_access, watch=first.watch))
        yield DaemonResources(
            api=api,
            clock=api.clock.now,
            review_api=review_api,
            lease_api=lease_api,
            cache=cache,
            extenders=extenders,
            pause=PauseWatch(api, first.lease, on_end=lambda: wake("pause")),
            extender_health=ExtenderHealth(
                extenders, cache, settings=settings, on_change=lambda: wake("extenders")
            ),
            mirror=await enter(
                mirroring(
                    api,
                    cache,
                    (*ALL_RESOURCES, *custom),
                    settings=first.watch,
                    later=find_unread(policy().protections, forecast.model.scheduler),
                )
            ),
            recorder=recorder,
            forecast=forecast,
            identity=identity,
            settings=settings,
            policy=policy,
        )
