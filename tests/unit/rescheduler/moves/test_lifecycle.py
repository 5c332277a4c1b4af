"""The next step of a move, for every state that a move can be in."""

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
    undo_reason,
)
from tests.support import builders
from tests.support.memory.objects import NOW, move

NO = Refused("Rule", "a reason")
TENTATIVE, SPENT = (Debit("m1", "2026-11-18T12:00:00Z", state) for state in DebitState)
ALIVE, TERMINATING, GONE = PodState


def make_state(phase: Phase, **fields: object) -> MoveState:
    begun = MoveState(move("m1", phase=phase), TENTATIVE, noted=True, pod=ALIVE)
    return replace(begun, **fields)


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (make_state(Phase.PLANNED, debit=None, noted=False), MoveStep.RESERVE_BUDGET),
        (make_state(Phase.PLANNED, noted=False), MoveStep.WRITE_NOTE),
        (make_state(Phase.PLANNED), MoveStep.ADVANCE_TO_NOTED),
        (make_state(Phase.PLANNED, resumed=True), MoveStep.REMOVE_NOTE),
        (make_state(Phase.PLANNED, resumed=True, noted=False), MoveStep.RELEASE_BUDGET),
        (make_state(Phase.PLANNED, resumed=True, noted=False, debit=None), MoveStep.CLOSE),
        (make_state(Phase.PLANNED, refused=NO, noted=False, debit=None), MoveStep.CLOSE),
        (make_state(Phase.NOTED), MoveStep.EVICT),
        (make_state(Phase.NOTED, resumed=True), MoveStep.EVICT),
        (make_state(Phase.NOTED, pod=TERMINATING), MoveStep.ADVANCE_TO_EVICTED),
        (make_state(Phase.NOTED, pod=GONE, refused=NO, noted=False), MoveStep.ADVANCE_TO_EVICTED),
        (make_state(Phase.NOTED, refused=NO), MoveStep.REMOVE_NOTE),
        (make_state(Phase.NOTED, refused=NO, noted=False), MoveStep.RELEASE_BUDGET),
        (make_state(Phase.NOTED, refused=NO, noted=False, debit=None), MoveStep.CLOSE),
        (make_state(Phase.NOTED, noted=False), MoveStep.RELEASE_BUDGET),
        (make_state(Phase.NOTED, debit=None), MoveStep.REMOVE_NOTE),
        (make_state(Phase.EVICTED), MoveStep.COMMIT_BUDGET),
        (make_state(Phase.EVICTED, debit=SPENT), MoveStep.VERIFY),
        (make_state(Phase.EVICTED, debit=None, noted=False, refused=NO), MoveStep.VERIFY),
        (make_state(Phase.NOTED, history_gone=True), MoveStep.REMOVE_NOTE),
        (make_state(Phase.NOTED, history_gone=True, noted=False), MoveStep.RELEASE_BUDGET),
        (make_state(Phase.NOTED, history_gone=True, noted=False, pod=GONE), MoveStep.COMMIT_BUDGET),
        (make_state(Phase.NOTED, history_gone=True, noted=False, debit=None), MoveStep.FORGET),
        (make_state(Phase.EVICTED, history_gone=True, noted=False, debit=SPENT), MoveStep.FORGET),
    ],
)
def test_the_next_step_follows_from_the_state(state: MoveState, step: MoveStep) -> None:
    assert next_step(state, now=NOW) is step


def test_an_expired_move_is_undone_unless_its_pod_is_terminating() -> None:
    late = NOW + 330
    assert next_step(make_state(Phase.NOTED), now=late - 1) is MoveStep.EVICT
    assert next_step(make_state(Phase.NOTED), now=late) is MoveStep.REMOVE_NOTE
    assert next_step(make_state(Phase.NOTED, pod=TERMINATING), now=late) is MoveStep.ADVANCE_TO_EVICTED


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (make_state(Phase.PLANNED), None),
        (make_state(Phase.PLANNED, resumed=True), INTERRUPTED),
        (make_state(Phase.NOTED, refused=NO, noted=False), NO),
        (make_state(Phase.NOTED, noted=False), NOTE_LOST),
        (make_state(Phase.NOTED, debit=None), DEBIT_LOST),
        (make_state(Phase.NOTED), None),
    ],
)
def test_the_reason_why_a_move_is_undone(state: MoveState, why: Refused | None) -> None:
    assert undo_reason(state, now=NOW) == why
    assert undo_reason(make_state(Phase.NOTED), now=NOW + 330) == EXPIRED


def test_eviction_needs_note_and_debit_and_only_a_living_pod_releases_a_debit() -> None:
    """In every state there is."""
    choices = product(Phase, (None, TENTATIVE, SPENT), (True, False), PodState, (True, False), (None, NO))
    for phase, debit, noted, pod, resumed, refused in choices:
        state = make_state(phase, debit=debit, noted=noted, pod=pod, resumed=resumed, refused=refused)
        step = next_step(state, now=NOW)
        if step is MoveStep.EVICT:
            assert (phase, noted, pod, refused) == (Phase.NOTED, True, ALIVE, None)
            assert debit
        if step is MoveStep.RELEASE_BUDGET:
            assert phase == Phase.PLANNED or pod is ALIVE
        if phase == Phase.EVICTED:
            assert step in (MoveStep.COMMIT_BUDGET, MoveStep.VERIFY)


def test_a_pod_is_identified_by_its_uid_alone() -> None:
    def judge(**fields: str) -> PodState:
        return judge_pod(builders.as_record(Pod, builders.pod("web-0", **fields)), "uid-victim")

    assert judge_pod(None, "uid-victim") is GONE
    assert judge(uid="uid-other") is GONE
    assert judge(uid="uid-victim") is ALIVE
    assert judge(uid="uid-victim", deleted="2026-11-18T12:00:00Z") is TERMINATING
