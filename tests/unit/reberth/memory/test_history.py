"""A workload's eviction history: open moves, phases, outcomes, and how long they are kept."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.pods.identity import Signature, name_history
from reberth.memory.history import (
    MOST_DESTINATIONS,
    MOST_OPEN,
    MOST_PAST,
    MOVES_FULL,
    NO_SUCH_MOVE,
    PHASE_PASSED,
    Ending,
    await_ready,
    close_move,
    draft_move,
    end_readiness,
    is_evicted,
    is_expired,
    is_history_of,
    learn_cost,
    open_move,
    review,
    start_history,
)
from reberth.records import Condition, EvictionHistory, HistoryStatus, Outcome, Phase, WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time
from tests.support.memory.objects import (
    DAY,
    DEPLOYMENT,
    HOUR,
    MINUTE,
    NOW,
    REPLICA_SET,
    WEB,
    accepted,
    after_move,
    empty_history,
    move,
    past,
    web_pod,
)


def with_move(phase: Phase = Phase.NOTED, move_id: str = "m1") -> EvictionHistory:
    return accepted(open_move(empty_history(), move(move_id, phase=phase)))


def test_a_history_belongs_to_its_workload() -> None:
    history = empty_history()

    assert json.loads(msgspec.json.encode(history)) == {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "EvictionHistory",
        "metadata": {
            "name": name_history(DEPLOYMENT),
            "namespace": "shop",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "web",
                    "uid": "uid-deployment",
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "workload": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "web",
                "uid": "uid-deployment",
            }
        },
    }


def test_an_owner_without_a_uid_cannot_be_referred_to() -> None:
    nameless = Signature("shop", REPLICA_SET, WorkloadIdentity("apps/v1", "Deployment", "web"))

    assert start_history(nameless).metadata.owner_references is None


@pytest.mark.parametrize(("uid", "same"), [("uid-deployment", True), ("", True), ("uid-born-again", False)])
def test_a_namesake_has_another_history(uid: str, *, same: bool) -> None:
    assert is_history_of(empty_history(), WorkloadIdentity("apps/v1", "Deployment", "web", uid)) == same


@pytest.mark.parametrize(
    ("grace", "expires"),
    [(60, "2026-11-18T12:06:00Z"), (0, "2026-11-18T12:05:00Z"), (None, "2026-11-18T12:05:30Z")],
)
def test_a_move_expires_five_minutes_after_the_grace_period(grace: int | None, expires: str) -> None:
    pod = web_pod(node="n1", terminationGracePeriodSeconds=grace)
    drafted = draft_move(
        pod, WEB, move="m1", destinations=("n2", "n3"), policy="balance", reason="rebalance", now=NOW + 0.25
    )

    assert json.loads(msgspec.json.encode(drafted)) == {
        "id": "m1",
        "pod": "web-5d4f-1",
        "podUID": "uid-web-5d4f-1",
        "controllerUID": "uid-rs",
        "from": "n1",
        "destinations": ["n2", "n3"],
        "policy": "balance",
        "reason": "rebalance",
        "phase": "Noted",
        "plannedAt": "2026-11-18T12:00:00.250000Z",
        "expiresAt": expires,
    }


def test_a_move_names_no_more_destinations_than_fit() -> None:
    nodes = tuple(f"n{n}" for n in range(100))
    drafted = draft_move(
        web_pod(node="n1"), WEB, move="m1", destinations=nodes, policy="p", reason="r", now=NOW
    )

    assert drafted.destinations == nodes[:MOST_DESTINATIONS]


def test_the_bounds_are_those_of_the_contract() -> None:
    assert (MOST_PAST, MOST_OPEN, MOST_DESTINATIONS) == (20, 32, 64)


@pytest.mark.parametrize("phase", Phase)
def test_that_a_pod_is_evicted_follows_from_its_absence_once_the_move_is_noted(phase: Phase) -> None:
    one = move("m1", phase=phase)
    assert is_evicted(one, {"uid-victim"}.__contains__) == (phase is Phase.EVICTED)
    assert is_evicted(one, {"uid-other"}.__contains__) == (phase is not Phase.PLANNED)


def test_other_open_moves_stay_as_they_are() -> None:
    history = accepted(open_move(with_move(), move("m2")))
    closed = accepted(close_move(history, "m1", Ending(Outcome.REFUSED), now=NOW))

    assert closed.status.open == (move("m2"),)


def test_a_move_that_is_not_there_is_not_moved() -> None:
    assert close_move(empty_history(), "m1", Ending(Outcome.BETTER), now=NOW) == NO_SUCH_MOVE


def test_a_move_opened_twice_is_open_once() -> None:
    history = with_move(Phase.NOTED)

    assert open_move(history, move("m1", planned=NOW + 9)) == history


def test_a_closed_move_is_not_opened_again() -> None:
    closed = accepted(close_move(with_move(), "m1", Ending(Outcome.GONE), now=NOW))

    assert open_move(closed, move("m1")) == PHASE_PASSED
    assert close_move(closed, "m1", Ending(Outcome.WORSE), now=NOW + 9) == closed


def test_open_moves_are_bounded() -> None:
    history = empty_history()
    for number in range(MOST_OPEN):
        history = accepted(open_move(history, move(f"m{number}")))

    assert open_move(history, move("one more")) == MOVES_FULL


def test_a_closed_move_records_its_outcome() -> None:
    evicted_at = write_micro_time(NOW + 2)
    ending = Ending(Outcome.WORSE, landed_on="n7", score_before=500, score_after=420, time_to_ready=3.2)

    closed = accepted(close_move(with_move(), "m1", ending, now=NOW + 60, evicted_at=evicted_at))

    assert closed.status.open == ()
    assert [json.loads(msgspec.json.encode(one)) for one in closed.status.past or ()] == [
        {
            "id": "m1",
            "pod": "web-0",
            "podUID": "uid-victim",
            "from": "n1",
            "controllerUID": "uid-rs",
            "landedOn": "n7",
            "outcome": "Worse",
            "evictedAt": "2026-11-18T12:00:02.000000Z",
            "closedAt": "2026-11-18T12:01:00.000000Z",
            "scoreBefore": 500,
            "scoreAfter": 420,
            "timeToReady": 4,
            "blockUntil": "2026-11-18T12:31:00Z",
        }
    ]


def test_a_move_that_ended_before_its_eviction_blocks_nothing() -> None:
    closed = accepted(close_move(with_move(Phase.NOTED), "m1", Ending(Outcome.UNKNOWN), now=NOW))

    (ended,) = closed.status.past or ()
    assert (ended.evicted_at, ended.block_until) == (None, None)


@pytest.mark.parametrize(
    ("expires", "expired"), [("2026-11-18T12:00:01Z", False), ("2026-11-18T12:00:00Z", True), ("soon", True)]
)
def test_a_move_is_expired_from_its_expiry_on(expires: str, *, expired: bool) -> None:
    assert is_expired(move(expires_at=expires), NOW) == expired


@pytest.mark.parametrize(
    ("times", "cost"), [([], None), ([None], None), ([5], 5), ([1, None, 9, 4], 4), ([2, 4], 3)]
)
def test_the_median_time_to_ready_is_the_cost(times: list[int | None], cost: float | None) -> None:
    ended = tuple(past(Outcome.BETTER, id=f"m{n}", time_to_ready=time) for n, time in enumerate(times))

    assert learn_cost(with_past(*ended)) == cost


def with_past(*ended: Any, **status: Any) -> EvictionHistory:
    return msgspec.structs.replace(empty_history(), status=HistoryStatus(past=ended, **status))


def test_the_newest_past_moves_are_kept() -> None:
    history = empty_history()
    for number in range(MOST_PAST + 5):
        history = after_move(history, f"m{number:02}", Outcome.BETTER, closed=NOW + number * MINUTE)

    assert [one.id for one in history.status.past or ()] == [f"m{n:02}" for n in range(5, MOST_PAST + 5)]


def test_many_refusals_do_not_push_out_outcomes_that_still_count() -> None:
    history = after_move(empty_history(), "bad", Outcome.WORSE, closed=NOW)
    for number in range(50):
        history = after_move(history, f"m{number:02}", Outcome.REFUSED, closed=NOW + MINUTE * (number + 1))

    kept = [one.id for one in history.status.past or ()]
    assert len(kept) == MOST_PAST
    assert kept[0] == "bad"
    assert kept[-1] == "m49"


def test_outcomes_past_their_time_are_dropped_oldest_first() -> None:
    old = past(Outcome.WORSE, ago=3 * DAY)
    newer = [past(Outcome.BETTER, ago=n * MINUTE) for n in range(MOST_PAST)]

    kept = review(with_past(old, *newer), NOW).status.past or ()

    assert old not in kept
    assert list(kept) == newer[::-1]


def test_giving_up_is_a_condition_that_ends_with_time() -> None:
    history = empty_history()
    for number in range(3):
        history = after_move(history, f"m{number}", Outcome.SAME, closed=NOW + number * HOUR)
    again = review(history, NOW + 3 * HOUR)
    over = review(history, NOW + 2 * HOUR + DAY)

    assert again == history
    assert conditions(history) == [("GivenUp", "True", "FruitlessMoves", "2026-11-18T14:00:00Z")]
    assert conditions(over) == [("GivenUp", "False", "TimeOver", "2026-11-19T14:00:00Z")]
    assert over.status.given_up_until is None
    assert review(over, NOW + 9 * DAY) == over


def conditions(history: EvictionHistory) -> list[tuple[str, str, str | None, str | None]]:
    found = history.status.conditions or ()
    return [(one.type, one.status, one.reason, one.last_transition_time) for one in found]


def test_conditions_of_others_stay() -> None:
    other = Condition("Other", "True")
    given_up = review(with_past(given_up_until="2026-11-18T13:00:00Z", conditions=(other,)), NOW)

    assert (given_up.status.conditions or ())[0] == other
    assert len(given_up.status.conditions or ()) == 2
    assert review(with_past(conditions=(other,)), NOW).status.conditions == (other,)


def test_a_giving_up_is_never_shortened() -> None:
    far = "2026-12-24T00:00:00Z"
    history = with_past(*(past(Outcome.SAME, ago=n * MINUTE) for n in (10, 20, 30)), given_up_until=far)

    assert after_move(history, "m1", Outcome.SAME, closed=NOW).status.given_up_until == far


def test_an_outcome_of_a_newer_version_is_unknown() -> None:
    text = msgspec.json.encode(with_past(past(Outcome.BETTER))).replace(b"Better", b"Splendid")

    (ended,) = msgspec.json.decode(text, type=EvictionHistory).status.past or ()

    assert ended.outcome is Outcome.UNKNOWN


def test_an_unknown_phase_is_an_error_that_names_its_field() -> None:
    text = msgspec.json.encode(with_move()).replace(b"Noted", b"Dreamt")

    with pytest.raises(msgspec.ValidationError, match=r"\$\.status\.open\[0\]\.phase"):
        msgspec.json.decode(text, type=EvictionHistory)


steps = st.tuples(
    st.sampled_from(["open", *Outcome]), st.sampled_from(["m1", "m2", "m3"]), st.integers(0, 1000)
)


def taken(history: EvictionHistory, step: str, move_id: str, now: float) -> EvictionHistory | Refused:
    if step == "open":
        return open_move(history, move(move_id, planned=now))
    return close_move(history, move_id, Ending(Outcome(step)), now=now)


@given(st.lists(steps, max_size=60))
def test_any_sequence_of_steps_stays_bounded_and_idempotent(
    steps: list[tuple[str, str, int]],
) -> None:
    history, now = empty_history(), NOW
    for number, (step, name, wait) in enumerate(steps):
        now += wait
        move_id = f"{name}-{number // 20}"
        after = taken(history, step, move_id, now)
        if isinstance(after, Refused):
            continue
        assert taken(after, step, move_id, now) == after
        opened = {one.id for one in after.status.open or ()}
        closed = {one.id for one in after.status.past or ()}
        assert not opened & closed
        assert opened | closed >= {one.id for one in history.status.open or ()}
        assert len(closed) <= MOST_PAST
        history = after


@given(st.lists(st.sampled_from(list(Outcome)), max_size=40))
def test_a_history_survives_the_wire(outcomes: list[Outcome]) -> None:
    history = empty_history()
    for number, outcome in enumerate(outcomes):
        history = after_move(history, f"m{number}", outcome, closed=NOW + number * HOUR)

    assert msgspec.json.decode(msgspec.json.encode(history), type=EvictionHistory) == history


@pytest.mark.parametrize(
    ("least", "progress_deadline", "times", "given"),
    [
        (300.0, 0.0, (), 300.0),
        (60.0, 0.0, (), 300.0),
        (900.0, 0.0, (), 900.0),
        (300.0, 600.0, (), 600.0),
        (300.0, 600.0, (20.0, 480.0, 90.0), 960.0),
        (300.0, 600.0, (20.0,), 600.0),
        (300.0, 2147483647.0, (), 3600.0),
        (300.0, 0.0, (3000.0,), 3600.0),
        (7200.0, 600.0, (3000.0,), 7200.0),
    ],
)
def test_a_replacement_has_the_longest_of_the_times_to_become_ready(
    least: float, progress_deadline: float, times: tuple[float, ...], given: float
) -> None:
    history = empty_history()
    for number, seconds in enumerate(times):
        name = f"m-{number}"
        history = after_move(history, name, Outcome.SAME, closed=NOW - HOUR, time_to_ready=seconds)
    asked = move(life=330.0)
    for stays in (0.0, 900.0):
        awaited = await_ready(asked, history, least=least, progress_deadline=progress_deadline, stays=stays)
        assert end_readiness(awaited) == NOW + 30 + given + stays
        assert awaited.expires_at == asked.expires_at  # it draws no longer for that
