"""Keeps one kind of a cache in sync: list it, watch it, and list it again when the server requires it.

A kind of which there may be many objects is listed in pages, which are read while they arrive; for any other
one the watch begins with the list, on servers that support streaming lists. A watch that ends is continued
from the last version; the kind is listed again when the server no longer knows that version, when it refuses,
or when `resync` asks for it. A connection without data for too long counts as dead: the server sends a
bookmark at least every minute.

The watcher of a kind that is not installed, or that RBAC forbids, keeps trying without affecting the others.
An optional kind that is not installed is treated as empty until it is; that is not trouble. It is looked for
ever more rarely, because most clusters never install it.

An object that cannot be read is counted and logged; its last readable version stays in the cache.

**How old a cache is.** A list has every change that was made before its first page was asked for. A change
that a watch brings was made just now, unless it is of the backlog: of those that were made before the watch
was opened, since the last one in the cache. The first bookmark comes behind the backlog. What comes before it
is taken to be older than its arrival by the age that the cache had when the watch was opened. It is not
older, because a backlog is read faster than it was made.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from reberth.client.api import Api
from reberth.cluster.cache import ADDED, BOOKMARK, Cache, Listing
from reberth.cluster.kinds import HISTORY, Resource
from reberth.cluster.tables import meta_of
from reberth.config.settings import NotNegative, Positive, Section
from reberth.protocol import response
from reberth.protocol.response import BadObject, Page, WatchEvent
from reberth.records import Record
from reberth.runtime import metrics
from reberth.runtime.faults import FAULTS
from reberth.runtime.logs import Log
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.jitter import jittered_backoff
from reberth.values.object_error import ObjectError
from reberth.values.refusal import describe_fault

T = TypeVar("T", bound=Record)
log = Log(__name__)

_LASTING = 5.0
"""A watch that lasted this many seconds has worked: its end does not lengthen the back-off."""
# After this many server errors in a row, the version itself may be the cause: list again.
_PASSING_AT_MOST = 5
_TIMER_STEP = 0.5
# Responses of API servers that cannot serve `sendInitialEvents`: 500 if etcd is too old.
_NO_STREAMED_LISTS = (400, 422, 500)
_BAD_OBJECTS_NAMED = 1000
_ANY_OBJECT = ("", "")
"""The place of an object without readable metadata: it may be any one."""
_ABSENT = "absent"
NOT_INSTALLED = "not installed in this cluster"
_BEFORE_ALL = "0"
"""A version that is older than every other."""
EVERYTHING: Mapping[str, str] = MappingProxyType({})
"""A selection of all objects of a kind, in all namespaces."""


class WatchSettings(Section, frozen=True):
    """How long watches last, and how failures are retried."""

    seconds: Positive = 300.0
    """The server is asked to end a watch after this time, so that no connection lasts forever."""
    silence: Positive = 90.0
    """A connection without any data for this time is closed and opened again."""
    first_pause: Positive = 0.5
    longest_pause: Positive = 30.0
    deaf_after: Positive = 600.0
    """A process that has heard nothing of any kind for this time is not alive: a new one may hear."""
    longest_absence_pause: Positive = 600.0
    """An optional kind that is not installed is looked for again after at most this time."""
    settle: NotNegative = 0.05
    """Changes that follow each other within this time wake a consumer only once."""
    longest_burst: NotNegative = 1.0
    """A continuous burst of changes still wakes a consumer after this time."""


class Watcher(Generic[T]):
    """Keeps one kind of one cluster in sync while `run` runs; cancel it to stop.

    `selection` limits it to a `namespace`, or by a `labelSelector`, as in a request.
    """

    def __init__(
        self,
        api: Api,
        cache: Cache,
        resource: Resource[T],
        *,
        settings: WatchSettings,
        on_change: Callable[[], None],
        selection: Mapping[str, str] = EVERYTHING,
    ) -> None:
        self.resource = resource
        self.trouble: str | None = "not listed yet"
        self._api = api
        self._cache = cache
        self._settings = settings
        self._on_change = on_change
        self._selection = selection
        self._loop = asyncio.get_running_loop()
        self.last_heard = self._loop.time()
        """When data came last, a bookmark too; before the first data, when the watcher was made."""
        self._complete_until: float | None = None
        self._backlog = 0.0  # how many seconds before it arrives a change may have been made
        self._asked_at = 0.0  # when the list in progress was asked for
        self._synced = asyncio.Event()
        self._answered = asyncio.Event()
        self._tried = asyncio.Event()
        self._version: str | None = None
        self._listing: Listing[T, Any] | None = None
        self._can_stream_lists = not resource.is_large
        self._patience: asyncio.Timeout | None = None
        self._heard_at = float("-inf")
        self._resync_asked = False
        self._failures = 0
        self._absences = 0
        self._named: set[BadObject] = set()
        self._bad: set[tuple[str, str]] = set()  # what is cached of these is not their newest version
        self._events = metrics.WATCH_EVENTS.labels(resource.full_name)

    @property
    def is_synced(self) -> bool:
        """Whether the whole kind has been listed at least once."""
        return self._synced.is_set()

    @property
    def age(self) -> float:
        """Seconds since the time until which the cache has every change; infinite before the first list.

        A kind that is not installed does not age: between two looks nobody waits for an answer.
        """
        if self._absences:
            return 0.0
        until = self._complete_until
        return float("inf") if until is None else self._loop.time() - until

    def is_current(self, namespace: str, name: str, *, within: float) -> bool:
        """Tell whether the cache has this object, or lacks it, as the server did within so many seconds.

        It does not while a list is due or in progress, however young the cache is: the rows may lack what
        the list is for. Nor does it have an object whose newest version could not be read.
        """
        bad = self._bad
        is_bad = bool(bad) and ((namespace, name) in bad or _ANY_OBJECT in bad)
        return self._version is not None and self.age < within and not is_bad

    @property
    def is_answered(self) -> bool:
        """Whether there was a first list, or a refusal that retries are unlikely to change soon.

        Of a kind of another project any failure is enough.
        """
        return self._answered.is_set()

    @property
    def listed(self) -> int:
        """How many objects the list that is in progress has brought."""
        return self._listing.count if self._listing else 0

    async def synced(self) -> None:
        await self._synced.wait()

    async def answered(self) -> None:
        """Wait until `is_answered`."""
        await self._answered.wait()

    async def tried(self) -> None:
        """Wait for the first list, or for the first failure to get it."""
        await self._tried.wait()

    def resync(self) -> None:
        """List the kind again at once; until it is complete, readers see the cached objects."""
        self._version = None
        self._resync_asked = True
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(self._loop.time())

    async def run(self) -> None:
        while True:
            started = self._loop.time()
            cause = await self._follow_until_it_breaks()
            self._tried.set()
            if cause == _ABSENT:
                await self._pause(self._absences, self._settings.longest_absence_pause)
                continue
            self._absences = 0
            metrics.WATCH_RESTARTS.labels(self.resource.full_name, cause).inc()
            self._failures = 0 if self._loop.time() - started >= _LASTING else self._failures + 1
            if self._failures:
                await self._pause(self._failures, self._settings.longest_pause)

    async def _pause(self, tries: int, longest: float) -> None:
        await asyncio.sleep(jittered_backoff(tries, first=self._settings.first_pause, longest=longest))

    async def _follow_until_it_breaks(self) -> str:
        """Run one watch, after a list if one is needed; give the cause of its end."""
        try:
            await self._follow()
        except TimeoutError:
            if self._resync_asked:
                return "ended"
            self._report(f"no data from the server for {self._settings.silence:g} s")
            return "silent"
        except errors.Gone:
            self._version = None
            return "gone"
        except (errors.Unreachable, errors.Unanswered) as error:
            self._report(str(error))
            return "unreachable"
        except (ApiError, ObjectError) as error:
            return self._refused(error)
        finally:
            self._patience = self._listing = None
        return "ended"

    def _refused(self, error: ApiError | ObjectError) -> str:
        """Keep the version after a passing error of the server; after any other refusal list again."""
        absent = isinstance(error, errors.NotFound)
        if absent and self.resource.is_optional:
            self._take_for_none()
            return _ABSENT
        status = error.status if isinstance(error, ApiError) else 0
        if self._version is None and self._can_stream_lists and status in _NO_STREAMED_LISTS:
            self._can_stream_lists = False
            log.info("server cannot stream lists, reading them in pages", resource=self.resource.full_name)
            return "refused"
        passing = isinstance(error, errors.ServerFault | errors.TooManyRequests)
        if not passing or self._failures >= _PASSING_AT_MOST:
            self._version = None
        self._report(describe_absence(self.resource) if absent else str(error))
        if not passing:
            self._answered.set()
        return "refused"

    def _take_for_none(self) -> None:
        """Treat a kind that is not installed as empty; its cached objects are gone with it."""
        self._failures = 0
        if not self._absences:  # else nothing has changed, and no consumer is woken
            if self.trouble is not None:
                log.info("kind not installed, treated as empty", resource=self.resource.full_name)
            self.trouble = None
            self._finish(self._cache.relist(self.resource.kind), _BEFORE_ALL, self._loop.time())
            self._version = None
        self._absences += 1

    async def _follow(self) -> None:
        async with asyncio.timeout(self._settings.silence) as self._patience:
            if self._resync_asked:
                self._version = None  # events may have come since, before the watch was cancelled
            self._resync_asked = False
            self._heard_at = float("-inf")
            listing = await self._begin_list()
            since = None if listing else self._version
            async with self._api.watch(
                self.resource, since=since, seconds=self._settings.seconds, **self._selection
            ) as lines:
                if since is not None:
                    self._backlog = self.age
                    self._recover()
                async for line in lines:
                    self._hear()
                    self._events.inc()
                    listing = self._take(line, listing)

    async def _begin_list(self) -> Listing[T, Any] | None:
        """Give a listing for the watch to fill, or None where the watch continues from a known version."""
        if self._version is not None:
            return None
        self._asked_at = self._loop.time()
        self._bad.clear()
        self._listing = listing = self._cache.relist(self.resource.kind)
        if self._can_stream_lists:
            return listing
        version = ""
        async with aclosing(self._api.list_parts(self.resource, **self._selection)) as parts:
            async for part in parts:
                self._hear()
                self._list_part(part, listing)
                version = version or part.resource_version
        self._finish(listing, version, self._asked_at)
        return None

    def _list_part(self, part: Page[T], listing: Listing[T, Any]) -> None:
        for each in part.found:
            if isinstance(each, BadObject):
                self._name(each)
            else:
                self._list(listing, ADDED, each)

    def _hear(self) -> None:
        """Restart the silence timer; not for every line, because moving a timer that often is expensive.

        Raises TimeoutError once a resync was asked for: the timer that ends the watch for it must not be
        moved, and what comes before it strikes must not be taken for the version to go on from.
        """
        if self._resync_asked:
            raise TimeoutError
        self.last_heard = now = self._loop.time()
        if self._patience is not None and now >= self._heard_at + _TIMER_STEP:
            self._heard_at = now
            self._patience.reschedule(now + self._settings.silence + _TIMER_STEP)

    def _take(
        self, line: WatchEvent[T] | BadObject, listing: Listing[T, Any] | None
    ) -> Listing[T, Any] | None:
        """Apply an event to the listing while there is one, else to the cache."""
        if isinstance(line, BadObject):
            self._name(line)
            return listing
        subject: Any = line.object
        if listing is not None:
            if line.type == BOOKMARK and response.ends_the_list(subject.metadata):
                self._finish(listing, subject.metadata.resource_version, self._asked_at)
                return None
            self._list(listing, line.type, subject)
            return listing
        changed = self._change(line.type, subject)
        self._version = subject.metadata.resource_version
        if line.type == BOOKMARK:
            self._backlog = 0.0
        self._complete_until = self._loop.time() - self._backlog
        if changed and line.type != BOOKMARK:
            self._on_change()
        return None

    def _finish(self, listing: Listing[T, Any], version: str, asked_at: float) -> None:
        listing.finish(version)
        self._listing = None
        self._version = version
        self._complete_until = asked_at
        self._backlog = self._loop.time() - asked_at
        self._recover()
        self._synced.set()
        self._answered.set()
        self._tried.set()
        self._on_change()

    def _recover(self) -> None:
        if self.trouble is not None:
            log.info("cache synced", resource=self.resource.full_name)
        self.trouble = None
        self._absences = 0

    def _list(self, listing: Listing[T, Any], event: str, subject: T) -> None:
        try:
            listing.apply(event, subject)
        except ObjectError as error:
            self._leave_out(subject, str(error))
        except Exception as error:  # noqa: BLE001 - it is about this object alone, and is logged
            self._leave_out_by_fault(subject, error)
        else:
            self._take_for_good(subject)

    def _change(self, event: str, subject: T) -> bool:
        try:
            changed = self._cache.apply(self.resource.kind, event, subject)
        except ObjectError as error:
            self._leave_out(subject, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - it is about this object alone, and is logged
            self._leave_out_by_fault(subject, error)
            return False
        if changed and event != BOOKMARK:
            self._take_for_good(subject)
        return changed

    def _take_for_good(self, subject: T) -> None:
        if self._bad:
            meta = meta_of(subject)
            self._bad.discard((meta.namespace, meta.name))

    def _leave_out(self, subject: T, reason: str) -> None:
        """Log an unusable object, and go on with the others."""
        meta = meta_of(subject)
        self._name(BadObject(meta.namespace, meta.name, reason, meta.resource_version))

    def _leave_out_by_fault(self, subject: T, error: Exception) -> None:
        meta, reason = meta_of(subject), describe_fault(error)
        FAULTS.note("watch", f"{meta.namespace}/{meta.name}", reason, error=error)
        self._leave_out(subject, reason)

    def _name(self, bad: BadObject) -> None:
        """Count the object, and log it once for each of its versions."""
        metrics.WATCH_BAD_OBJECTS.labels(self.resource.full_name).inc()
        is_one = len(self._bad) < _BAD_OBJECTS_NAMED
        self._bad.add((bad.namespace, bad.name) if is_one else _ANY_OBJECT)
        if bad not in self._named and len(self._named) < _BAD_OBJECTS_NAMED:
            self._named.add(bad)
            log.warning(
                "unreadable object",
                resource=self.resource.full_name,
                object=f"{bad.namespace}/{bad.name}",
                reason=bad.reason,
            )

    def _report(self, trouble: str) -> None:
        """Log the trouble, once until it changes."""
        if trouble != self.trouble:
            log.warning("cache not synced", resource=self.resource.full_name, reason=trouble)
        self.trouble = trouble
        if self.resource.is_custom:  # nothing depends on it, and it may stay broken
            self._answered.set()


def describe_absence(resource: Resource[Any]) -> str:
    """Tell what is missing: a kind of ours may be installed as another version of Reberth knows it."""
    if resource.kind.group != HISTORY.group:
        return NOT_INSTALLED
    return f"{NOT_INSTALLED}: {resource.api_version} is not served; apply manifests/crds of this version"
