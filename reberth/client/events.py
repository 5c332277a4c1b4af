"""Kubernetes Events: recorded at once, written in the background, never blocking the caller.

    async with recording(api, reporter="reberth.dev/rescheduler", instance=identity) as recorder:
        recorder.record(pod, reason="MoveRefused", note="...", action="Move")

`record` never waits. An Event that repeats an earlier one of the same object becomes a series with a count,
and is written at most once a minute. The queue and the known series are both bounded; an Event that does not
fit, or that the API server does not accept, is lost and counted.
"""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from reberth.client.api import Api
from reberth.cluster.kinds import Resource, plain_kind
from reberth.records import Event, ObjectMeta, ObjectReference, Record
from reberth.runtime.logs import Log
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.timestamp import write_micro_time

NORMAL, WARNING = "Normal", "Warning"
MOST_WAITING = 1000
MOST_WAITING_FOR_MINOR = 50
MOST_REMEMBERED = 4000

_SERIES_LIFE = 360.0
_SERIES_PAUSE = 60.0
_CLOSING_TIME = 2.0
_LONGEST_NOTE = 1024
# Events about cluster-scoped objects are written to this namespace.
_NAMESPACE_OF_CLUSTER = "default"

log = Log(__name__)


class EventSeries(Record, frozen=True):
    count: int
    last_observed_time: str


class WrittenEvent(Event, frozen=True):
    """An Event with the fields that only its writer sets."""

    reporting_instance: str = ""
    series: EventSeries | None = None


EVENTS: Resource[WrittenEvent] = Resource(plain_kind("Event", WrittenEvent, "events.k8s.io"), "events")


class _EventContent(NamedTuple):
    """The content of an Event: equal content is a repetition."""

    regarding: ObjectReference
    related: ObjectReference | None
    reason: str
    note: str
    action: str
    kind: str


class _Series:
    def __init__(self, content: _EventContent, now: float) -> None:
        self.content = content
        self.name = f"{content.regarding.name}.{uuid.uuid4().hex[:16]}"
        self.first = self.last = now
        self.count = 1
        self.written = 0  # how many of them the API server has stored
        self.written_at = float("-inf")

    def repeat(self, now: float) -> None:
        self.count += 1
        self.last = now


class EventRecorder:
    """Queues Events; one background task writes them."""

    def __init__(self, api: Api, *, reporter: str, instance: str, clock: Callable[[], float]) -> None:
        self.lost = 0
        self._api = api
        self._reporter = reporter
        self._instance = instance
        self._clock = clock
        self._known: OrderedDict[_EventContent, _Series] = OrderedDict()
        self._waiting: OrderedDict[_EventContent, _Series] = OrderedDict()
        self._wake_up = asyncio.Event()
        self._is_losing = False

    @property
    def takes_minor(self) -> bool:
        """Whether a minor Event would be written now: its note need not be made up otherwise."""
        return len(self._waiting) < MOST_WAITING_FOR_MINOR

    def record(
        self,
        regarding: ObjectReference,
        *,
        reason: str,
        note: str,
        action: str,
        kind: str = NORMAL,
        related: ObjectReference | None = None,
        is_minor: bool = False,
    ) -> None:
        """Record an Event: reason and action are a few words, the note is for people.

        A minor one is left out where others wait that it would delay.
        """
        if is_minor and not self.takes_minor:
            return
        content = _EventContent(regarding, related, reason, note[:_LONGEST_NOTE], action, kind)
        series = self._continue(content, self._clock())
        if series.written and series.last < series.written_at + _SERIES_PAUSE:
            return
        if content not in self._waiting and len(self._waiting) >= MOST_WAITING:
            self._drop(content, "too many Events in the queue")
            return
        self._waiting[content] = series
        self._wake_up.set()

    async def write_forever(self) -> None:
        while True:
            await self._wake_up.wait()
            self._wake_up.clear()
            await self._write_waiting()

    async def close(self, *, within: float = _CLOSING_TIME) -> None:
        """Write the queued Events and the counts of all series, as far as the closing time allows."""
        for content, series in self._known.items():
            if series.count > series.written:
                self._waiting[content] = series
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._write_waiting()

    def _continue(self, content: _EventContent, now: float) -> _Series:
        series = self._known.get(content)
        if series and now < series.last + _SERIES_LIFE:
            series.repeat(now)
        else:
            series = self._known[content] = _Series(content, now)
        self._known.move_to_end(content)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return series

    async def _write_waiting(self) -> None:
        while self._waiting:
            content, series = self._waiting.popitem(last=False)
            try:
                await self._write(series)
            except ApiError as error:
                self._drop(content, str(error))
            else:
                self._is_losing = False

    async def _write(self, series: _Series) -> None:
        count, namespace = series.count, series.content.regarding.namespace or _NAMESPACE_OF_CLUSTER
        last = write_micro_time(series.last)
        if series.written:
            patch: dict[str, Any] = {"series": {"count": count, "lastObservedTime": last}}
            await self._api.merge(EVENTS, series.name, patch, namespace=namespace)
        else:
            repeated = EventSeries(count, last) if count > 1 else None
            with suppress(errors.AlreadyExists):
                await self._api.create(EVENTS, self._compose(series, repeated), namespace=namespace)
        series.written, series.written_at = count, self._clock()

    def _compose(self, series: _Series, repeated: EventSeries | None) -> WrittenEvent:
        content = series.content
        return WrittenEvent(
            ObjectMeta(name=series.name, namespace=content.regarding.namespace or _NAMESPACE_OF_CLUSTER),
            reason=content.reason,
            note=content.note,
            type=content.kind,
            action=content.action,
            reporting_controller=self._reporter,
            regarding=content.regarding,
            related=content.related,
            event_time=write_micro_time(series.first),
            reporting_instance=self._instance,
            series=repeated,
        )

    def _drop(self, content: _EventContent, why: str) -> None:
        """Count a lost Event and forget its series. Of consecutive losses only the first is logged."""
        self.lost += 1
        self._known.pop(content, None)
        if not self._is_losing:
            log.warning("event dropped", reason=content.reason, object=content.regarding.name, why=why)
        self._is_losing = True


@asynccontextmanager
async def recording(
    api: Api,
    *,
    reporter: str,
    instance: str,
    clock: Callable[[], float] | None = None,
    closing_time: float = _CLOSING_TIME,
) -> AsyncIterator[EventRecorder]:
    """Record while the context lasts; at its end write the queued Events while `closing_time` lasts."""
    recorder = EventRecorder(api, reporter=reporter, instance=instance, clock=clock or api.clock.now)
    writing = asyncio.create_task(recorder.write_forever())
    try:
        yield recorder
    finally:
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        await recorder.close(within=closing_time)
