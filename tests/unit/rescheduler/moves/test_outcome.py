"""Which pod is the replacement, and how the move ended."""

from typing import Any

import pytest
from msgspec.structs import replace

from reberth.cluster.rows import PodRow, make_pod_row
from reberth.cluster.templates import Templates
from reberth.memory.history import Ending
from reberth.records import OpenMove, Outcome, Owner, Phase
from reberth.values.timestamp import write_time
from rescheduler.model.plan import LandingScores
from rescheduler.moves.outcome import (
    ControllerState,
    find_deadline,
    find_replacement,
    judge_replacement,
    observe_controller,
)
from tests.support import builders
from tests.support.memory.objects import NOW, move, web_pod

TEMPLATES = Templates(version=(1, 36))
END = NOW + 330
MOVED = move("m1", phase=Phase.EVICTED, evicted_at=write_time(NOW + 1), known_pods=("uid-known",))


def row(name: str, *, born: float = 1.0, ready: float | None = None, **fields: Any) -> PodRow:
    """A pod that was born so many seconds after the plan, and Ready so many."""
    at = None if ready is None else write_time(NOW + ready)
    status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}]} if at else None
    made = web_pod(name, age=-born, status=status, **fields)
    with_version = replace(made.metadata, resource_version="1")
    return make_pod_row(replace(made, metadata=with_version), TEMPLATES)


def names(found: PodRow | None) -> str | None:
    return found.name if found else None


@pytest.mark.parametrize(
    ("pods", "replacement"),
    [
        ([], None),
        ([row("old", born=-10, node="n1")], None),
        ([row("known", uid="uid-known", node="n1")], None),
        ([row("known", uid="uid-known", node="n1"), row("new")], "new"),
        ([row("new")], "new"),
        ([row("clock-behind", born=-9)], "clock-behind"),
        ([row("late", born=9, node="n2"), row("early", born=5)], "late"),
        ([row("b", born=5), row("a", born=5)], "a"),
        ([row("victim", uid="uid-victim", node="n1")], None),
        ([row("dying", deleted="2026-11-18T12:00:09Z", node="n2"), row("next")], "next"),
        ([row("failed", phase="Failed", node="n2")], None),
    ],
)
def test_the_replacement_is_the_first_one_that_was_not_known(
    pods: list[PodRow], replacement: str | None
) -> None:
    assert names(find_replacement(MOVED, [MOVED], pods)) == replacement


def test_earlier_moves_choose_first_and_each_pod_serves_one_of_them() -> None:
    earlier = move("m0", planned=NOW - 10, pod_uid="uid-gone")
    noted = move("m2", planned=NOW - 20, pod_uid="uid-alive")
    pods = [row("first", node="n2"), row("second", born=2, node="n3"), row("alive", born=-60, node="n1")]
    assert names(find_replacement(MOVED, [earlier, noted, MOVED], pods)) == "second"
    assert names(find_replacement(earlier, [earlier, noted, MOVED], pods)) == "first"
    assert names(find_replacement(MOVED, [earlier, MOVED], [])) is None


def judged(
    replacement: PodRow | None, *, now: float = NOW + 9, scores: LandingScores | None = None, **seen: Any
) -> Ending | None:
    sighting = ControllerState([replacement] if replacement else [])._replace(**seen)
    is_over = now >= find_deadline(MOVED, has_landed=False)
    lasts = replacement is not None and replacement.is_ready
    return judge_replacement(MOVED, replacement, sighting, scores=scores, lasts=lasts, is_over=is_over)


READY = row("new", node="n2", ready=4)


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        (None, Outcome.UNKNOWN),
        (LandingScores(600, 620), Outcome.SAME),
        (LandingScores(600, 580), Outcome.SAME),
        (LandingScores(600, 621), Outcome.BETTER),
        (LandingScores(600, 579), Outcome.WORSE),
        (LandingScores(None, 579), Outcome.BETTER),
    ],
)
def test_the_outcome_of_a_landing_follows_from_its_scores(
    scores: LandingScores | None, outcome: Outcome
) -> None:
    ending = judged(READY, scores=scores)
    assert ending is not None
    assert (ending.outcome, ending.landed_on, ending.time_to_ready) == (outcome, "n2", 3)
    assert (ending.score_before, ending.score_after) == (scores or (None, None))


def test_a_replacement_that_is_not_ready_is_awaited_until_the_move_expires() -> None:
    for pod, outcome in ((row("new"), Outcome.PENDING), (row("new", node="n2"), Outcome.NOT_READY)):
        assert judged(pod, now=END - 1) is None
        ending = judged(pod, now=END)
        assert ending is not None
        assert ending.outcome == outcome
        assert ending.replacement_uid == (None if pod.node else pod.uid)
    assert judged(None, now=END - 1) is None
    assert judged(None, now=END) == Ending(Outcome.PENDING)


def test_a_pod_that_returned_has_returned_whether_ready_or_not() -> None:
    back = judged(row("new", node="n1", ready=4), scores=LandingScores(1, 100))
    assert back == Ending(Outcome.RETURNED, "n1", time_to_ready=3)
    assert judged(row("new", node="n1"), now=END) == Ending(Outcome.RETURNED, "n1")


def test_a_job_pod_that_succeeded_has_arrived() -> None:
    assert judged(row("new", node="n2", phase="Succeeded")) == Ending(Outcome.UNKNOWN, "n2")


def test_no_replacement_is_awaited_if_the_controller_needs_none() -> None:
    siblings = [row("a", born=-90, node="n2"), row("b", born=-90, node="n3")]
    gone = Ending(Outcome.GONE)
    assert judged(None, is_gone=True) == gone
    assert judged(None, pods=siblings, replicas=2) == gone
    assert judged(None, pods=siblings, replicas=3) is None
    assert judged(None, pods=siblings, replicas=None) is None
    assert judged(None, replicas=0) == gone
    victim = row("victim", uid="uid-victim", born=-90, node="n1")
    assert judged(None, pods=[*siblings, victim], replicas=3) is None


def test_a_controller_has_only_its_own_pods() -> None:
    owner = builders.as_record(Owner, {"metadata": builders.meta("web", "shop"), "spec": {"replicas": 3}})
    mine, other = row("mine"), row("other", owned_by=builders.owner("ReplicaSet", "api", uid="uid-api"))
    assert observe_controller([mine, other], MOVED, owner) == ControllerState([mine], replicas=3)
    assert observe_controller([mine], MOVED, None) == ControllerState([mine])


def test_an_unreadable_expiry_is_in_the_past() -> None:
    broken: OpenMove = replace(MOVED, expires_at="never")
    assert find_deadline(broken, has_landed=False) <= NOW


def test_a_replacement_that_has_landed_may_take_longer_to_be_ready() -> None:
    slow: OpenMove = replace(MOVED, awaited_until=write_time(END + 300))
    assert find_deadline(slow, has_landed=False) == END
    assert find_deadline(slow, has_landed=True) == END + 300
    assert find_deadline(MOVED, has_landed=True) == END
