"""Expired notes and orphans go, without haste; all others are left alone."""

import asyncio
from dataclasses import replace as change
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from reberth.client.api import ApiSettings
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import HISTORIES, HISTORY, NODE, NODES, REPLICA_SET
from reberth.memory.notes import ANNOTATION, Note, Notes, read_notes, render_notes
from reberth.records import Node, Outcome
from reberth.values import errors
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.daemon.note_sweeper import NoteSweeper
from rescheduler.settings import ReschedulerSettings
from tests.support import builders
from tests.support.memory.notes import note
from tests.support.memory.objects import HOUR, NOW, empty_history, move, past
from tests.support.metrics import read_metric
from tests.support.rescheduler.crash_simulator import FakeApi, World, make_context

SWEPT = "reberth_rescheduler_notes_swept_total"


class Swept:
    """A world whose nodes carry notes, and a sweeper of them with a cache that follows at once."""

    def __init__(self, *, troubles: dict[int, Any] | None = None, requests_per_second: float = 50.0) -> None:
        self.world = World()
        self.api = FakeApi(self.world, troubles=troubles)
        settings = ApiSettings(requests_per_second=requests_per_second)
        self.api.settings = settings  # type: ignore[attr-defined] # only the sweeper reads it
        self.held: set[str] = set()
        self.cache = Cache(version=(1, 36))
        self.cache.replace(REPLICA_SET, self._kept("replicasets"), "1")
        mirror = cast("Any", SimpleNamespace(cache=self.cache))
        self.context = change(make_context(self.world, self.api), mirror=mirror, settings=ReschedulerSettings)
        self.sweeper = NoteSweeper(self.context, lambda: self.held)

    def note(self, node: str, *notes: Note) -> None:
        text = render_notes(Notes(ours=notes)) or ""
        made = builders.as_record(Node, builders.node(node, annotations={ANNOTATION: text}))
        self.world.put(NODES, made)

    def remember(self, **status: Any) -> None:
        """Put a history of this status in place of the one before."""
        made = empty_history()
        meta = replace(made.metadata, creation_timestamp=write_time(NOW - HOUR))
        self.world.put(HISTORIES, replace(made, metadata=meta, status=replace(made.status, **status)))

    def _kept(self, kind: str) -> list[Any]:
        return [one for (name, _, _), one in self.world.objects.items() if name == kind]

    def sync(self) -> None:
        self.cache.replace(NODE, self._kept(NODES.name), str(self.world.version))
        self.cache.replace(HISTORY, self._kept(HISTORIES.name), str(self.world.version))

    async def sweep(self, seconds: int, *, syncs: bool = True) -> None:
        """Sweep once a second, with a cache that has everything, or stays as it is."""
        for _ in range(seconds):
            if syncs:
                self.sync()
            await self.sweeper.sweep()
            await asyncio.sleep(1)

    def left(self, node: str) -> list[str]:
        found = cast("Node", self.world.objects[NODES.name, "", node])
        notes = read_notes((found.metadata.annotations or {}).get(ANNOTATION))
        assert not isinstance(notes, Refused)
        return [each.mark.id for each in notes.ours if each.mark]


def swept(cause: str) -> float:
    return read_metric(SWEPT, cause=cause) or 0.0


@pytest.mark.looptime
async def test_expired_notes_go_ten_minutes_later_and_strict_ones_within_two_seconds() -> None:
    given, before = Swept(), swept("expired")
    given.note("n1", note("m1", life=60), note("m2", life=HOUR))
    given.note("n2", note("m3", life=60, strict=True), note("m4", life=50))
    await given.sweep(60)
    assert given.api.writes == 0
    await given.sweep(2)
    assert (given.left("n1"), given.left("n2")) == (["m1", "m2"], [])
    await given.sweep(600)
    assert given.left("n1") == ["m2"]
    assert given.api.writes == 2
    assert swept("expired") == before + 3


@pytest.mark.looptime
async def test_an_annotation_that_cannot_be_read_is_removed_after_an_hour_and_a_newer_one_is_not() -> None:
    given, before = Swept(), swept("unreadable")
    for node in ("n1", "n2"):
        odd = builders.node(node, annotations={ANNOTATION: "[", "kept": "yes"})
        given.world.put(NODES, builders.as_record(Node, odd))
    await given.sweep(4190)
    assert given.api.writes == 0
    newer = builders.node("n2", annotations={ANNOTATION: "[["})
    given.world.put(NODES, builders.as_record(Node, newer))  # the cache does not have it yet
    await given.sweep(20, syncs=False)
    found = [cast("Node", given.world.objects[NODES.name, "", node]).metadata for node in ("n1", "n2")]
    assert [meta.annotations for meta in found] == [{"kept": "yes"}, {ANNOTATION: "[["}]
    assert swept("unreadable") == before + 1


@pytest.mark.looptime
async def test_a_node_that_cannot_be_written_keeps_no_other_waiting() -> None:
    given = Swept(troubles={1: errors.Forbidden("write", "not now")}, requests_per_second=10.0)
    for node in ("n1", "n2"):
        given.note(node, note(f"m-{node}", life=1))
    await given.sweep(604)
    assert (given.left("n1"), given.left("n2"), given.api.writes) == (["m-n1"], [], 2)
    await given.sweep(30)
    assert (given.left("n1"), given.api.writes) == ([], 3)


@pytest.mark.looptime
async def test_a_sweep_writes_a_tenth_of_what_the_client_may_send_but_every_strict_note() -> None:
    given = Swept(requests_per_second=50.0)
    for number in range(30):
        given.note(f"node-{number}", note(f"m{number}", life=1))
    for number in range(30, 40):
        given.note(f"node-{number}", note(f"m{number}", life=605, strict=True))
    await given.sweep(602)
    assert given.api.writes == 5
    await given.sweep(2)
    assert given.api.writes == 15
    await given.sweep(2)
    assert given.api.writes == 15 + 10 + 10
    await given.sweep(2)
    assert given.api.writes == 40


@pytest.mark.looptime
async def test_the_note_of_a_move_that_was_undone_goes_a_minute_after_the_take_over() -> None:
    given, before = Swept(), swept("orphaned")
    given.remember(past=(past(Outcome.REFUSED, evicted=False, id="m1"), past(Outcome.SAME, id="m2")))
    given.note("n1", note("m1", life=HOUR), note("m2", life=HOUR), note("unknown", life=HOUR))
    await given.sweep(60)
    assert given.api.writes == 0
    await given.sweep(2)
    assert given.left("n1") == ["m2"]
    assert swept("orphaned") == before + 2


@pytest.mark.looptime
async def test_the_notes_of_moves_that_this_process_holds_stay() -> None:
    given = Swept()
    given.remember(past=(past(Outcome.REFUSED, evicted=False, id="m1"),))
    given.note("n1", note("m1", life=HOUR))
    given.held = {"m1"}
    await given.sweep(1300)
    assert (given.left("n1"), given.api.writes) == (["m1"], 0)
    given.held.clear()
    await given.sweep(601)  # it is looked at again
    assert given.left("n1") == []


@pytest.mark.looptime
async def test_a_history_that_is_old_in_the_cache_removes_no_note() -> None:
    given = Swept()
    given.remember()
    given.note("n1", note("m1", life=HOUR))
    given.sync()
    given.remember(open=(move("m1"),))
    await given.sweep(70, syncs=False)
    assert (given.left("n1"), given.api.writes) == (["m1"], 0)


@pytest.mark.looptime
@pytest.mark.parametrize("missing", ["history", "owner"])
async def test_a_note_stays_if_its_history_is_gone_or_cannot_be_found(missing: str) -> None:
    given = Swept()
    given.remember()
    given.note("n1", note("m1", life=HOUR))
    given.sync()
    if missing == "history":
        given.world.objects = {
            key: one for key, one in given.world.objects.items() if key[0] != HISTORIES.name
        }
    else:
        given.cache.replace(REPLICA_SET, [], "2")
    await given.sweep(70, syncs=False)
    assert (given.left("n1"), given.api.writes) == (["m1"], 0)


@pytest.mark.looptime
async def test_it_sweeps_once_a_second() -> None:
    given = Swept()
    given.note("n1", note("m1", life=3, strict=True))
    given.sync()
    task = asyncio.create_task(given.sweeper.run())
    await asyncio.sleep(2.5)
    assert given.left("n1") == ["m1"]
    await asyncio.sleep(2)
    assert given.left("n1") == []
    task.cancel()
