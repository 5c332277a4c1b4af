"""What comes next in a move, for all that may be known of one."""

from itertools import product

import pytest
from msgspec.structs import replace

from reberth.records import Debit, DebitState, Phase, Pod
from reberth.values.refusal import Refused
from rescheduler.moves.lifecycle import (
    DEBIT_LOST,
    EXPIRED,
    INTERRUPTED,
    NOTE_LOST,
    MoveState,
    MoveStep,
    PodState,
    judge_pod,
    next_step,
    why_undone,
)
from tests.support import builders
from tests.support.memory.objects import NOW, move

NO = Refused("Rule", "a reason")
TENTATIVE, SPENT = (Debit("m1", "2026-11-18T12:00:00Z", state) for state in DebitState)
ALIVE, TERMINATING, GONE = PodState


def known(phase: Phase, **fields: object) -> MoveState:
    begun = MoveState(move("m1", phase=phase), TENTATIVE, noted=True, pod=ALIVE)
    return replace(begun, **fields)


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (known(Phase.PLANNED, debit=None, noted=False), MoveStep.ENTER_DEBIT),
        (known(Phase.PLANNED, noted=False), MoveStep.WRITE_NOTE),
        (known(Phase.PLANNED), MoveStep.ADVANCE_TO_NOTED),
        (known(Phase.PLANNED, resumed=True), MoveStep.REMOVE_NOTE),
        (known(Phase.PLANNED, resumed=True, noted=False), MoveStep.RETURN_DEBIT),
        (known(Phase.PLANNED, resumed=True, noted=False, debit=None), MoveStep.CLOSE),
        (known(Phase.PLANNED, refused=NO, noted=False, debit=None), MoveStep.CLOSE),
        (known(Phase.NOTED), MoveStep.EVICT),
        (known(Phase.NOTED, resumed=True), MoveStep.EVICT),
        (known(Phase.NOTED, pod=TERMINATING), MoveStep.ADVANCE_TO_EVICTED),
        (known(Phase.NOTED, pod=GONE, refused=NO, noted=False), MoveStep.ADVANCE_TO_EVICTED),
        (known(Phase.NOTED, refused=NO), MoveStep.REMOVE_NOTE),
        (known(Phase.NOTED, refused=NO, noted=False), MoveStep.RETURN_DEBIT),
        (known(Phase.NOTED, refused=NO, noted=False, debit=None), MoveStep.CLOSE),
        (known(Phase.NOTED, noted=False), MoveStep.RETURN_DEBIT),
        (known(Phase.NOTED, debit=None), MoveStep.REMOVE_NOTE),
        (known(Phase.EVICTED), MoveStep.SPEND_DEBIT),
        (known(Phase.EVICTED, debit=SPENT), MoveStep.VERIFY),
        (known(Phase.EVICTED, debit=None, noted=False, refused=NO), MoveStep.VERIFY),
        (known(Phase.NOTED, lost=True), MoveStep.REMOVE_NOTE),
        (known(Phase.NOTED, lost=True, noted=False), MoveStep.RETURN_DEBIT),
        (known(Phase.NOTED, lost=True, noted=False, pod=GONE), MoveStep.SPEND_DEBIT),
        (known(Phase.NOTED, lost=True, noted=False, debit=None), MoveStep.FORGET),
        (known(Phase.EVICTED, lost=True, noted=False, debit=SPENT), MoveStep.FORGET),
    ],
)
def test_the_next_step_follows_from_what_is_known(seen: MoveState, step: MoveStep) -> None:
    assert next_step(seen, now=NOW) is step


def test_a_move_whose_time_is_over_is_undone_unless_its_pod_is_on_its_way_out() -> None:
    late = NOW + 330
    assert next_step(known(Phase.NOTED), now=late - 1) is MoveStep.EVICT
    assert next_step(known(Phase.NOTED), now=late) is MoveStep.REMOVE_NOTE
    assert next_step(known(Phase.NOTED, pod=TERMINATING), now=late) is MoveStep.ADVANCE_TO_EVICTED


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (known(Phase.PLANNED), None),
        (known(Phase.PLANNED, resumed=True), INTERRUPTED),
        (known(Phase.NOTED, refused=NO, noted=False), NO),
        (known(Phase.NOTED, noted=False), NOTE_LOST),
        (known(Phase.NOTED, debit=None), DEBIT_LOST),
        (known(Phase.NOTED), None),
    ],
)
def test_why_a_move_is_undone(seen: MoveState, why: Refused | None) -> None:
    assert why_undone(seen, now=NOW) == why
    assert why_undone(known(Phase.NOTED), now=NOW + 330) == EXPIRED


def test_a_living_pod_is_evicted_only_with_note_and_debit_and_a_debit_returns_only_if_it_lives() -> None:
    """In every situation there is."""
    choices = product(Phase, (None, TENTATIVE, SPENT), (True, False), PodState, (True, False), (None, NO))
    for phase, debit, noted, pod, resumed, refused in choices:
        seen = known(phase, debit=debit, noted=noted, pod=pod, resumed=resumed, refused=refused)
        step = next_step(seen, now=NOW)
        if step is MoveStep.EVICT:
            assert (phase, noted, pod, refused) == (Phase.NOTED, True, ALIVE, None)
            assert debit
        if step is MoveStep.RETURN_DEBIT:
            assert phase == Phase.PLANNED or pod is ALIVE
        if phase == Phase.EVICTED:
            assert step in (MoveStep.SPEND_DEBIT, MoveStep.VERIFY)


def test_a_pod_is_known_by_its_uid_alone() -> None:
    def judge(**fields: str) -> PodState:
        return judge_pod(builders.as_record(Pod, builders.pod("web-0", **fields)), "uid-victim")

    assert judge_pod(None, "uid-victim") is GONE
    assert judge(uid="uid-other") is GONE
    assert judge(uid="uid-victim") is ALIVE
    assert judge(uid="uid-victim", deleted="2026-11-18T12:00:00Z") is TERMINATING
