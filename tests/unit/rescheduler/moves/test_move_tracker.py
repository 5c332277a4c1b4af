"""What a leader knows of moves that have not ended."""

import pytest

from rescheduler.moves.move_tracker import MoveTracker

PATIENCE = 60.0


class Clock:
    """The clock of an event loop."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def moves(clock: Clock) -> MoveTracker:
    return MoveTracker(clock, patience=lambda: PATIENCE)


def interrupt(moves: MoveTracker, move: str) -> None:
    with pytest.raises(ValueError, match="broken"), moves.holding(move):
        raise ValueError("broken")


def test_a_move_is_held_as_long_as_somebody_works_on_it(moves: MoveTracker) -> None:
    with moves.holding("m1"):
        assert moves.is_held("m1")
        assert (moves.held, moves.list_left()) == ({"m1"}, [])
    assert not moves.is_held("m1")
    assert (moves.held, moves.list_left()) == (set(), ["m1"])


def test_nothing_is_left_of_a_move_that_ended_while_it_was_held(moves: MoveTracker) -> None:
    with moves.holding("m1"):
        moves.track("m1").keeps_note = True
        assert moves.noted == {"m1"}
        moves.forget("m1")
    assert not moves
    assert not moves.noted
    moves.forget("m1")


def test_an_earlier_leaders_request_may_be_on_its_way_for_a_while_after_the_take_over(
    moves: MoveTracker, clock: Clock
) -> None:
    moves.track("begun").is_begun = True
    moves.track("evicted").is_evicted = True
    moves.track("found").keeps_note = True
    assert [moves.is_in_doubt(one) for one in ("begun", "found", "unknown")] == [False, True, True]
    assert moves.find_end_of_doubt("unknown") == 1000 + PATIENCE
    assert moves.settled == {"begun", "evicted"}
    clock.now += PATIENCE
    assert not moves.is_in_doubt("found")
    assert moves.settled == {"begun", "evicted"}


def test_an_interrupted_moves_own_request_may_be_on_its_way(moves: MoveTracker, clock: Clock) -> None:
    for move in ("sent", "unsent"):
        moves.track(move).is_begun = True
    moves.track("sent").may_evict = True
    clock.now += 10 * PATIENCE
    for move in ("sent", "unsent"):
        interrupt(moves, move)
    assert (moves.is_in_doubt("sent"), moves.is_in_doubt("unsent")) == (True, False)
    assert moves.settled == {"unsent"}
    moves.forget_unrecorded(moves.list_left(), ())
    assert moves.list_left() == ["sent"]
    clock.now += PATIENCE
    moves.forget_unrecorded(moves.list_left(), ())
    assert not moves


def test_an_interrupted_move_is_kept_while_a_history_records_it_or_somebody_works_on_it(
    moves: MoveTracker, clock: Clock
) -> None:
    clock.now += PATIENCE
    for move in ("recorded", "resumed", "gone"):
        moves.track(move).is_begun = True
    left = moves.list_left()
    moves.track("begun meanwhile").is_begun = True
    with moves.holding("resumed"):
        moves.forget_unrecorded(left, {"recorded"})
    assert moves.list_left() == ["recorded", "resumed", "begun meanwhile"]
