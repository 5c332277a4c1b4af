"""Events are recorded without waiting, written later, joined to series, and bounded."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from reberth.client import events
from reberth.client.api import Api
from reberth.client.events import EventRecorder, WrittenEvent, recording
from reberth.records import ObjectReference
from reberth.values import errors
from reberth.values.errors import ApiError

pytestmark = pytest.mark.looptime
POD = ObjectReference("v1", "Pod", "shop", "web-0", "uid-0")
NODE = ObjectReference("v1", "Node", None, "n1", "uid-n1")


class Server:
    """Keeps what is written; `error` is its answer to everything."""

    def __init__(self) -> None:
        self.created: list[WrittenEvent] = []
        self.patched: list[tuple[str, int]] = []
        self.error: ApiError | None = None
        self.slowness = 0.01

    async def create(self, _resource: Any, body: WrittenEvent, *, namespace: str) -> WrittenEvent:
        await self._answer()
        assert namespace == body.metadata.namespace
        self.created.append(body)
        return body

    async def merge(self, _resource: Any, name: str, patch: Mapping[str, Any], *, namespace: str) -> None:
        await self._answer()
        assert namespace
        self.patched.append((name, patch["series"]["count"]))

    async def _answer(self) -> None:
        await asyncio.sleep(self.slowness)
        if self.error:
            raise self.error


def record_on(server: Server) -> Any:
    loop = asyncio.get_running_loop()
    return recording(cast("Api", server), reporter="reberth.dev/test", instance="i", clock=loop.time)


def say(recorder: EventRecorder, note: str = "hello", about: ObjectReference = POD) -> None:
    recorder.record(about, reason="MoveRefused", note=note, action="Move", related=NODE)


async def test_an_event_carries_its_objects_reason_note_and_reporter() -> None:
    server = Server()
    async with record_on(server) as recorder:
        say(recorder)
        await asyncio.sleep(1)
        (event,) = server.created
    assert (event.regarding, event.related, event.reason, event.note) == (POD, NODE, "MoveRefused", "hello")
    assert (event.type, event.action, event.reporting_controller) == ("Normal", "Move", "reberth.dev/test")
    assert (event.reporting_instance, event.series, event.metadata.namespace) == ("i", None, "shop")
    assert event.event_time == "1970-01-01T00:00:00.000000Z"


async def test_events_about_cluster_scoped_objects_go_to_default_and_long_notes_are_cut() -> None:
    server = Server()
    async with record_on(server) as recorder:
        say(recorder, "x" * 5000, about=NODE)
    (event,) = server.created
    assert event.metadata.namespace == "default"
    assert len(event.note or "") == 1024


async def test_a_repeated_event_becomes_a_series_patched_once_a_minute() -> None:
    server = Server()
    async with record_on(server) as recorder:
        for _ in range(300):
            say(recorder)
            await asyncio.sleep(1)
        assert len(server.created) == 1
        assert 4 <= len(server.patched) <= 5
    assert server.patched[-1] == (server.created[0].metadata.name, 300)


async def test_repeats_before_the_first_write_are_one_event_with_a_count() -> None:
    server = Server()
    async with record_on(server) as recorder:
        for _ in range(5):
            say(recorder)
    (event,) = server.created
    assert event.series is not None
    assert event.series.count == 5


async def test_after_a_pause_a_new_event_begins_and_other_words_are_another_event() -> None:
    server = Server()
    async with record_on(server) as recorder:
        say(recorder)
        await asyncio.sleep(400)
        say(recorder)
        say(recorder, "other")
    assert [event.note for event in server.created] == ["hello", "hello", "other"]


async def test_an_event_that_is_not_taken_is_counted_and_the_next_ones_are_written() -> None:
    server = Server()
    async with record_on(server) as recorder:
        server.error = errors.Forbidden("create", "may not")
        say(recorder)
        await asyncio.sleep(1)
        assert recorder.lost == 1
        server.error = None
        say(recorder)
        await asyncio.sleep(1)
        assert len(server.created) == 1


async def test_a_storm_is_bounded_and_recording_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_WAITING", 10)
    server = Server()
    async with record_on(server) as recorder:
        for number in range(100):
            say(recorder, f"note {number}")
        assert recorder.lost == 90
        assert len(recorder._known) == 10
    assert len(server.created) == 10


async def test_minor_events_are_left_out_where_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reberth.client.events.MOST_WAITING_FOR_MINOR", 3)
    server = Server()
    async with record_on(server) as recorder:
        for number in range(5):
            recorder.record(POD, reason="R", note=f"minor {number}", action="A", is_minor=True)
        say(recorder, "it matters")
        await asyncio.sleep(1)
        assert [each.note for each in server.created] == ["minor 0", "minor 1", "minor 2", "it matters"]
        recorder.record(POD, reason="R", note="minor again", action="A", is_minor=True)
        await asyncio.sleep(1)
        assert server.created[-1].note == "minor again"
        assert recorder.lost == 0


async def test_the_recorder_remembers_a_bounded_number_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_REMEMBERED", 20)
    server = Server()
    async with record_on(server) as recorder:
        for number in range(100):
            say(recorder, f"note {number}")
        assert len(recorder._known) == 20
    assert len(server.created) == 100


async def test_closing_the_recorder_waits_two_seconds_at_most_for_a_hanging_server() -> None:
    server = Server()
    server.slowness = 1e6
    began = asyncio.get_running_loop().time()
    async with record_on(server) as recorder:
        say(recorder)
        await asyncio.sleep(1)
    assert asyncio.get_running_loop().time() - began < 3.5


async def test_an_event_that_was_being_written_at_the_end_is_written() -> None:
    server = Server()
    server.slowness = 1.0
    async with record_on(server) as recorder:
        say(recorder)
        await asyncio.sleep(0.5)
    assert len(server.created) == 1
