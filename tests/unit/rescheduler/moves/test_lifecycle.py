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
    count_from,
    find_termination,
    judge_pod,
    next_step,
    take_sighting,
    undo_reason,
)
from tests.support import builders
from tests.support.memory.objects import NOW, move

NO = Refused("Rule", "a reason")
TENTATIVE, SPENT = (Debit("m1", "2026-11-18T12:00:00Z", state) for state in DebitState)
ALIVE, TERMINATING, GONE = PodState


def make_state(phase: Phase = Phase.NOTED, **fields: object) -> MoveState:
    begun = MoveState(move("m1", phase=phase), TENTATIVE, noted=True, pod=ALIVE)
    return replace(begun, **fields)


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (make_state(debit=None, noted=False), MoveStep.PREPARE),
        (make_state(), MoveStep.EVICT),
        (make_state(resumed=True), MoveStep.RENEW),
        (make_state(resumed=True, renewed=True), MoveStep.EVICT),
        (make_state(pod=TERMINATING), MoveStep.COUNT),
        (make_state(pod=TERMINATING, debit=SPENT), MoveStep.VERIFY),
        (make_state(pod=GONE, debit=None), MoveStep.VERIFY),
        (make_state(pod=GONE, refused=NO, noted=False), MoveStep.COUNT),
        (make_state(refused=NO), MoveStep.UNDO),
        (make_state(refused=NO, noted=False), MoveStep.UNDO),
        (make_state(refused=NO, debit=None), MoveStep.UNDO),
        (make_state(refused=NO, noted=False, debit=None), MoveStep.CLOSE),
        (make_state(resumed=True, noted=False), MoveStep.UNDO),
        (make_state(resumed=True, debit=None), MoveStep.UNDO),
        (make_state(resumed=True, debit=None, noted=False), MoveStep.CLOSE),
        (make_state(resumed=True, in_doubt=True), MoveStep.RENEW),
        (make_state(resumed=True, renewed=True, in_doubt=True), MoveStep.EVICT),
        (make_state(resumed=True, in_doubt=True, noted=False), MoveStep.AWAIT_EVICTION),
        (make_state(resumed=True, in_doubt=True, refused=NO), MoveStep.AWAIT_EVICTION),
        # Phases that earlier versions have recorded.
        (make_state(Phase.PLANNED, resumed=True), MoveStep.UNDO),
        (make_state(Phase.PLANNED, resumed=True, in_doubt=True), MoveStep.UNDO),
        (make_state(Phase.PLANNED, resumed=True, pod=GONE), MoveStep.UNDO),
        (make_state(Phase.PLANNED, resumed=True, noted=False, debit=None), MoveStep.CLOSE),
        (make_state(Phase.EVICTED), MoveStep.COUNT),
        (make_state(Phase.EVICTED, debit=SPENT), MoveStep.VERIFY),
        (make_state(Phase.EVICTED, debit=None, noted=False, refused=NO), MoveStep.VERIFY),
    ],
)
def test_the_next_step_follows_from_the_state(state: MoveState, step: MoveStep) -> None:
    assert next_step(state, now=NOW) is step


def test_an_expired_move_is_undone_unless_its_pod_is_terminating() -> None:
    late = NOW + 330
    assert next_step(make_state(), now=late - 1) is MoveStep.EVICT
    assert next_step(make_state(), now=late) is MoveStep.UNDO
    assert next_step(make_state(pod=TERMINATING), now=late) is MoveStep.COUNT


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (make_state(), None),
        (make_state(debit=None, noted=False), None),
        (make_state(refused=NO, noted=False), NO),
        (make_state(resumed=True), None),
        (make_state(resumed=True, noted=False), NOTE_LOST),
        (make_state(resumed=True, debit=None), DEBIT_LOST),
        (make_state(resumed=True, noted=False, debit=None), INTERRUPTED),
        (make_state(Phase.PLANNED, resumed=True), INTERRUPTED),
    ],
)
def test_the_reason_why_a_move_is_undone(state: MoveState, why: Refused | None) -> None:
    assert undo_reason(state, now=NOW) == why
    assert undo_reason(make_state(), now=NOW + 330) == EXPIRED


def test_eviction_needs_note_and_debit_and_only_a_move_with_a_living_pod_is_undone() -> None:
    """In every state there is."""
    choices = product(Phase, (None, TENTATIVE, SPENT), (True, False), PodState, (True, False), (None, NO))
    for phase, debit, noted, pod, resumed, refused in choices:
        state = make_state(phase, debit=debit, noted=noted, pod=pod, resumed=resumed, refused=refused)
        step = next_step(state, now=NOW)
        if step is MoveStep.EVICT:
            assert (phase, noted, pod, refused, resumed) == (Phase.NOTED, True, ALIVE, None, False)
            assert debit
        if step is MoveStep.UNDO:
            assert phase is Phase.PLANNED or (phase, pod) == (Phase.NOTED, ALIVE)
        if phase is Phase.EVICTED:
            assert step in (MoveStep.COUNT, MoveStep.VERIFY)
        if resumed:
            assert step is not MoveStep.PREPARE


def a_pod(*, deleted: str | None = None, grace: int | None = None) -> Pod:
    pod = builders.as_record(Pod, builders.pod("web-0", uid="uid-victim", deleted=deleted))
    return replace(pod, metadata=replace(pod.metadata, deletion_grace_period_seconds=grace))


def test_a_pod_that_was_seen_terminating_tells_since_when() -> None:
    deleted = "2026-11-18T12:00:40Z"
    seen = take_sighting(make_state(), a_pod(deleted=deleted, grace=30), now=NOW + 12)
    assert (seen.pod, seen.evicted_at, count_from(seen)) == (TERMINATING, NOW + 10, NOW + 10)
    assert (seen.entry.phase, seen.entry.evicted_at) == (Phase.EVICTED, "2026-11-18T12:00:10.000000Z")
    assert take_sighting(seen, None, now=NOW + 60) == replace(seen, pod=GONE)


def test_of_a_pod_that_is_gone_nobody_knows_since_when() -> None:
    seen = take_sighting(make_state(), None, now=NOW + 12)
    assert (seen.pod, seen.evicted_at, count_from(seen)) == (GONE, None, NOW + 12)
    assert take_sighting(make_state(), a_pod(), now=NOW) == make_state()
    planned = make_state(Phase.PLANNED)  # an earlier version has sent no eviction yet
    assert take_sighting(planned, None, now=NOW) == replace(planned, pod=GONE)


def test_no_termination_is_later_than_now() -> None:
    seen = take_sighting(make_state(), a_pod(deleted="2026-11-18T13:00:00Z", grace=30), now=NOW + 1)
    assert count_from(seen) == NOW + 1


def test_without_readable_times_the_termination_is_not_known() -> None:
    assert find_termination(a_pod(deleted="yesterday", grace=30)) is None
    assert find_termination(a_pod(deleted="2026-11-18T12:00:40Z")) is None
    assert find_termination(a_pod()) is None


def test_a_pod_is_identified_by_its_uid_alone() -> None:
    def judge(**fields: str) -> PodState:
        return judge_pod(builders.as_record(Pod, builders.pod("web-0", **fields)), "uid-victim")

    assert judge_pod(None, "uid-victim") is GONE
    assert judge(uid="uid-other") is GONE
    assert judge(uid="uid-victim") is ALIVE
    assert judge(uid="uid-victim", deleted="2026-11-18T12:00:00Z") is TERMINATING
