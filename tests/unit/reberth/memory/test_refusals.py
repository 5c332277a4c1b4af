"""Refusals in a history: how long they hold, how they are counted, and that they stay few."""

import msgspec
import pytest

from reberth.memory.history import MOST_PAST, Ending, close_move, open_move
from reberth.memory.refusals import (
    FORGOTTEN_AFTER,
    LONGEST_WAIT,
    MOST_KEY,
    MOST_REASON,
    MOST_REFUSED,
    drop_refusals,
    find_wait,
    list_living,
    note_refusal,
    put_refusal,
)
from reberth.records import HistoryStatus, Outcome, RememberedRefusal
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_micro_time
from tests.support.memory.objects import MINUTE, NOW, accepted, after_move, empty_history, move

DENIED = Refused("EvictionRefused", "not today")


def remembered(rule: str = "EvictionRefused", *, key: str = "", until: float = NOW) -> RememberedRefusal:
    return RememberedRefusal(rule, write_micro_time(NOW - MINUTE), write_micro_time(until), key)


def test_the_waits_double_up_to_an_hour() -> None:
    waits = [find_wait(count) / MINUTE for count in (1, 2, 3, 4, 5, 6, 7, 8, 10_000)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_refusals_in_a_row_are_counted() -> None:
    status, now, starts = HistoryStatus(), NOW, []
    for _ in range(8):
        starts.append((now - NOW) / MINUTE)
        noted = note_refusal(DENIED, key="", before=status.refused or (), now=now)
        status, now = put_refusal(status, noted, now), parse_time(noted.until)
    assert starts == [0, 1, 3, 7, 15, 31, 63, 123]
    assert [one.count for one in status.refused or ()] == [8]


@pytest.mark.parametrize(("asked", "given"), [(7.0, 7.0), (-5.0, 0.0), (1e12, LONGEST_WAIT), (None, MINUTE)])
def test_the_server_may_say_when_to_come_back_but_not_for_ever(asked: float | None, given: float) -> None:
    refused = Refused("EvictionPaced", "", None if asked is None else NOW + asked)
    noted = note_refusal(refused, key="", before=(), now=NOW)
    assert parse_time(noted.until) == pytest.approx(NOW + given)


def test_others_are_not_counted_and_foreign_texts_are_cut() -> None:
    others = [remembered("PDB"), remembered(key="another")]
    long = Refused("EvictionRefused", "x" * 9999)
    noted = note_refusal(long, key="k" * 9999, before=others, now=NOW)
    assert (noted.count, len(noted.key), len(noted.reason)) == (1, MOST_KEY, MOST_REASON)


def test_what_ended_a_day_ago_is_forgotten() -> None:
    old, new = remembered(until=NOW - FORGOTTEN_AFTER), remembered("PDB", until=NOW - FORGOTTEN_AFTER + 1)
    unreadable = RememberedRefusal("PDB", "soon", "later")
    assert list_living([old, new, unreadable], NOW) == [new]
    assert note_refusal(DENIED, key="", before=[old], now=NOW).count == 1


def test_entries_are_few_and_those_that_end_first_give_way() -> None:
    status = HistoryStatus()
    for number in range(MOST_REFUSED + 3):
        one = remembered(key=f"uid-{number}", until=NOW + (MOST_REFUSED + 3 - number) * MINUTE)
        status = put_refusal(status, one, NOW)
    kept = [one.key for one in status.refused or ()]
    assert len(kept) == MOST_REFUSED
    assert kept[-1] == f"uid-{MOST_REFUSED + 2}"
    assert kept[-2] == "uid-0"


def test_a_refusal_is_written_with_the_end_of_its_move_and_once() -> None:
    history = accepted(open_move(empty_history(), move("m1")))
    noted = note_refusal(DENIED, key="", before=(), now=NOW)
    closed = accepted(close_move(history, "m1", Ending(Outcome.REFUSED), now=NOW, refusal=noted))
    assert closed.status.refused == (noted,)
    assert close_move(closed, "m1", Ending(Outcome.REFUSED), now=NOW + 9, refusal=noted) == closed


def test_a_granted_eviction_drops_what_it_disproves() -> None:
    kept, dropped = remembered("NotesFull", key="n2"), remembered()
    history = accepted(open_move(empty_history(), move("m1")))
    status = msgspec.structs.replace(history.status, refused=(kept, dropped))
    history = msgspec.structs.replace(history, status=status)
    same = accepted(close_move(history, "m1", Ending(Outcome.SAME), now=NOW))
    assert same.status.refused == (kept, dropped)
    after = accepted(close_move(history, "m1", Ending(Outcome.SAME), now=NOW, disproved=(dropped,)))
    assert after.status.refused == (kept,)
    assert drop_refusals(after.status, kept.__eq__).refused is None
    assert drop_refusals(HistoryStatus(), kept.__eq__) == HistoryStatus()


def test_refused_moves_push_out_no_outcome_of_an_eviction() -> None:
    """The median of their times is what a move of the workload costs."""
    history = after_move(empty_history(), "good", Outcome.BETTER, closed=NOW - 3 * 24 * 3600, time_to_ready=9)
    for number in range(MOST_PAST + 30):
        opened = accepted(open_move(history, move(f"m{number:02}")))
        closed = close_move(opened, f"m{number:02}", Ending(Outcome.REFUSED), now=NOW + number * MINUTE)
        history = accepted(closed)
    past = history.status.past or ()
    assert (past[0].id, len(past), past[-1].id) == ("good", MOST_PAST, "m49")
