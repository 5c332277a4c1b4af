"""When which node is swept, and which notes no move has written."""

from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from reberth.memory.history import MOST_PAST
from reberth.memory.notes import ANNOTATION, Note, Notes, render_notes, sweep_notes
from reberth.records import EvictionHistory, Node, Outcome, WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.moves import note_sweep
from rescheduler.moves.note_sweep import (
    READ_AT_ONCE,
    WRITTEN_PAUSE,
    DueNode,
    NoteSchedule,
    SweepCause,
    count_swept,
    is_orphan,
)
from tests.support import builders
from tests.support.memory.notes import annotation, foreign, moves, note
from tests.support.memory.objects import DEPLOYMENT, HOUR, MINUTE, NOW, empty_history, move, past

PATIENCE = 10 * MINUTE
UNSETTLED = MINUTE


def noted(name: str, *notes: Note) -> Node:
    return annotated(name, render_notes(Notes(ours=notes)))


def annotated(name: str, text: str | None) -> Node:
    annotations = {} if text is None else {ANNOTATION: text}
    return builders.as_record(Node, builders.node(name, annotations=annotations))


def schedule_of(*nodes: Node, now: float = NOW) -> NoteSchedule:
    schedule = NoteSchedule(unsettled=UNSETTLED)
    schedule.take(nodes, now)
    return schedule


def due(schedule: NoteSchedule, now: float) -> list[str]:
    return [node.name for node in schedule.list_expired(now, patience=PATIENCE)]


def test_a_node_is_due_some_time_after_the_first_of_its_notes_has_expired() -> None:
    schedule = schedule_of(
        noted("early", note("m1", life=MINUTE), note("m2", life=HOUR)), noted("late", note("m3", life=HOUR))
    )
    assert due(schedule, NOW + MINUTE + PATIENCE - 1) == []
    assert due(schedule, NOW + MINUTE + PATIENCE) == ["early"]
    assert due(schedule, NOW + HOUR + PATIENCE) == ["early", "late"]


def test_a_strict_note_makes_its_node_due_at_once_and_before_all_others() -> None:
    schedule = schedule_of(
        noted("patient", note("m1", life=MINUTE)),
        noted("strict", note("m2", life=12 * MINUTE, strict=True)),
        noted("strict later", note("m3", life=13 * MINUTE, strict=True), note("m4", life=MINUTE)),
    )
    assert due(schedule, NOW + 12 * MINUTE - 1) == ["patient", "strict later"]
    found = schedule.list_expired(NOW + 12 * MINUTE, patience=PATIENCE)
    assert found == [DueNode("strict", True), DueNode("patient", False), DueNode("strict later", False)]


def test_nodes_without_notes_of_ours_are_never_due() -> None:
    theirs = annotation(foreign(at=NOW - 9 * HOUR))
    schedule = schedule_of(
        annotated("bare", None),
        annotated("empty", ""),
        annotated("theirs", theirs),
    )
    assert due(schedule, NOW + 99 * HOUR) == []
    assert schedule.take_unlooked(NOW + 99 * HOUR, most=9, pause=PATIENCE) == []


def test_an_annotation_that_cannot_be_read_is_due_after_an_hour_unless_somebody_repairs_it() -> None:
    spoilt, repaired = annotated("spoilt", "not JSON"), annotated("repaired", "not JSON")
    schedule = schedule_of(spoilt, repaired)
    assert due(schedule, NOW + HOUR) == []
    schedule.take([spoilt, noted("repaired", note("m1", life=9 * HOUR))], NOW + HOUR)
    assert due(schedule, NOW + HOUR + PATIENCE) == ["spoilt"]
    assert (schedule.find_unreadable("spoilt"), schedule.find_unreadable("repaired")) == ("not JSON", None)


def test_an_annotation_is_read_once_however_often_its_node_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    read, texts = note_sweep.read_notes, list[str | None]()

    def count(text: str | None) -> Any:
        texts.append(text)
        return read(text)

    monkeypatch.setattr(note_sweep, "read_notes", count)
    node = noted("n1", note("m1", life=MINUTE))
    schedule = schedule_of(node)
    for version in range(5):
        schedule.take([replace(node, metadata=replace(node.metadata, resource_version=str(version)))], NOW)
    assert len(texts) == 1
    schedule.take([noted("n1", note("m1", life=MINUTE), note("m2", life=HOUR))], NOW)
    assert len(texts) == 2


def test_thousands_of_new_annotations_are_read_one_part_after_the_other() -> None:
    nodes = [noted(f"n{number}", note("m1", life=MINUTE)) for number in range(READ_AT_ONCE + 3)]
    schedule, later = schedule_of(*nodes), NOW + HOUR
    assert len(due(schedule, later)) == READ_AT_ONCE
    schedule.take(nodes, NOW)
    assert len(due(schedule, later)) == READ_AT_ONCE + 3


def test_a_node_that_was_just_written_is_left_alone_until_its_annotation_changes() -> None:
    node = noted("n1", note("m1", life=MINUTE))
    schedule, later = schedule_of(node), NOW + HOUR
    schedule.mark_written("n1", later)
    schedule.mark_written("unknown", later)
    schedule.take([node], later)
    assert due(schedule, later) == []
    assert due(schedule, later + WRITTEN_PAUSE) == ["n1"]
    schedule.mark_written("n1", later)
    schedule.take([noted("n1", note("m1", life=MINUTE), note("m2", life=MINUTE))], later)
    assert due(schedule, later) == ["n1"]


def test_a_node_that_has_gone_is_forgotten() -> None:
    schedule = schedule_of(noted("n1", note("m1", life=MINUTE)))
    schedule.take([], NOW)
    assert due(schedule, NOW + HOUR) == []


def test_every_node_is_looked_at_a_few_at_a_time_and_again_after_a_pause() -> None:
    nodes = [noted(name, note(f"m-{name}", life=9 * HOUR)) for name in "abc"]
    schedule = schedule_of(*nodes)

    def look(now: float) -> list[str]:
        schedule.take(nodes, now)
        found = schedule.take_unlooked(now, most=2, pause=PATIENCE)
        assert [moves(notes) for _, notes in found] == [[f"m-{name}"] for name, _ in found]
        return [name for name, _ in found]

    assert look(NOW + UNSETTLED - 1) == []
    assert look(NOW + UNSETTLED) == ["a", "b"]
    assert look(NOW + UNSETTLED) == ["c"]
    assert look(NOW + UNSETTLED + PATIENCE - 1) == []
    nodes[0] = noted("a", note("m-a", life=8 * HOUR))  # another annotation does not begin the pause anew
    assert look(NOW + UNSETTLED + PATIENCE) == ["a", "b"]


def test_swept_notes_are_counted_by_cause() -> None:
    before = Notes(
        ours=tuple(note(f"m{n}", life=life) for n, life in enumerate((MINUTE, HOUR, HOUR, MINUTE)))
    )
    after = sweep_notes(before, now=NOW + MINUTE, orphans=["m1"])
    assert moves(after) == ["m2"]
    assert count_swept(before, after, NOW + MINUTE) == {SweepCause.EXPIRED: 2, SweepCause.ORPHANED: 1}
    assert count_swept(after, after, NOW + MINUTE) == {}


def history(created: float = NOW - HOUR, **status: Any) -> EvictionHistory:
    made = empty_history()
    meta = replace(made.metadata, creation_timestamp=write_time(created))
    return replace(made, metadata=meta, status=replace(made.status, **status))


def judge(
    found: EvictionHistory, workload: WorkloadIdentity = DEPLOYMENT, written: Note | None = None
) -> bool:
    return is_orphan(written or note("m1"), workload, found, unsettled=UNSETTLED)


def test_the_note_of_an_open_move_or_of_an_evicted_one_is_no_orphan() -> None:
    assert not judge(history(open=(move("m1"),)))
    for outcome in Outcome:
        assert not judge(history(past=(past(outcome, id="m1"),)))
    assert not judge(history(open=(move("m1"),), past=(past(Outcome.REFUSED, evicted=False, id="m1"),)))


def test_the_note_of_a_move_that_was_refused_before_its_eviction_is_an_orphan() -> None:
    others = tuple(past(Outcome.SAME, id=f"other-{n}") for n in range(MOST_PAST - 1))
    refused = past(Outcome.REFUSED, evicted=False, id="m1")
    assert judge(history(past=(refused, *others)))
    assert judge(history(created=NOW, past=(refused,)), workload=replace(DEPLOYMENT, uid=""))


def test_the_note_of_a_move_that_the_history_would_know_is_an_orphan() -> None:
    assert judge(history(open=(move("m2"),), past=(past(Outcome.SAME, id="m3"),)))


def test_the_note_of_a_move_that_the_history_may_have_forgotten_is_no_orphan() -> None:
    full = tuple(past(Outcome.SAME, id=f"other-{n}") for n in range(MOST_PAST))
    assert not judge(history(past=full))
    assert judge(history(past=full[1:]))


def test_the_note_of_a_move_of_before_the_history_is_no_orphan() -> None:
    assert judge(history(created=NOW - UNSETTLED))
    assert not judge(history(created=NOW - UNSETTLED + 1))
    made = history()
    assert not judge(replace(made, metadata=replace(made.metadata, creation_timestamp=None)))


@pytest.mark.parametrize("uid", ["", "uid-of-an-earlier-one"])
def test_the_history_of_another_workload_of_that_name_tells_nothing(uid: str) -> None:
    assert not judge(history(), workload=replace(DEPLOYMENT, uid=uid))
    unnamed = replace(history(), spec=replace(history().spec, workload=replace(DEPLOYMENT, uid="")))
    assert not judge(unnamed, workload=replace(DEPLOYMENT, uid=uid))


def test_a_note_without_an_origin_is_no_orphan() -> None:
    assert not judge(history(), written=replace(note(), mark=None))


def test_a_fault_about_one_node_leaves_it_alone_until_its_annotation_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, asked = note_sweep.read_notes, []

    def stumble(text: str | None) -> Notes | Refused:
        asked.append(text)
        if text == "odd":
            raise RecursionError
        return read(text)

    monkeypatch.setattr(note_sweep, "read_notes", stumble)
    schedule = NoteSchedule(unsettled=UNSETTLED, guard=lambda _: suppress(RecursionError))
    nodes = [annotated("odd", "odd"), noted("well", note("m1", life=MINUTE))]
    for _ in range(2):
        schedule.take(nodes, NOW)
    assert asked.count("odd") == 1
    assert due(schedule, NOW + HOUR) == ["well"]
