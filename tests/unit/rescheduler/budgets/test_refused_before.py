"""Moves that were refused before are not planned again until it is time, and then by one who asks."""

import dataclasses
from typing import Any

import pytest

from reberth.memory.refusals import note_refusal
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time
from rescheduler.budgets.limits import CandidateMove, Limits, begin_limits
from rescheduler.budgets.refused_before import list_waiting
from rescheduler.model.guardrails import LimitSettings, ProtectionSettings
from rescheduler.model.refusal_memory import KnownRefusal, RefusalMemory, WorkloadName
from rescheduler.model.standing import TriesLeft
from rescheduler.observe.rule_context import RuleContext
from tests.support.builders import node, owner
from tests.support.rescheduler.guardrails import (
    NOW,
    Object,
    context_of,
    history,
    open_move,
    past_move,
    place_of,
    replica,
)

MINUTE = 60.0
LIMITS = LimitSettings(per_workload=None)


def noted(
    rule: str = "EvictionRefused", key: str = "", *, ago: float = 30, lasts: float = 60, **more: Any
) -> Object:
    at = NOW - ago
    given = {
        "rule": rule,
        "refusedAt": write_micro_time(at),
        "until": write_micro_time(at + lasts),
        "reason": "no",
    }
    return given | ({"key": key} if key else {}) | more


def pods(*names: str) -> list[Object]:
    """Two pods of each workload; `web-1` is on n1, as all others."""
    return [
        replica(f"{name}-{number}", owned_by=owner("ReplicaSet", name), uid=f"uid-{name}-{number}")
        for name in names
        for number in (1, 2)
    ]


def cluster(*objects: Object, memory: RefusalMemory | None = None, now: float = NOW) -> RuleContext:
    free = ProtectionSettings(last_ready=False)
    context = context_of(*objects, now=now, limits=LIMITS, protections=free)
    return dataclasses.replace(context, refusals=memory or RefusalMemory())


def ask(context: RuleContext, name: str = "web-1", limits: Limits | None = None) -> Refused | None:
    move = CandidateMove(place_of(context, name), 0, "brokenRules")
    return (limits or begin_limits(context)).refuse(move)


def spend(context: RuleContext, *names: str) -> list[str | None]:
    """Plan one move after another; gives the rule that refuses each."""
    limits, found = begin_limits(context), []
    for name in names:
        after = limits.spend(CandidateMove(place_of(context, name), 0, "brokenRules"))
        found.append(after.rule if isinstance(after, Refused) else None)
        limits = limits if isinstance(after, Refused) else after
    return found


def test_a_refused_workload_waits_and_the_reason_says_for_what() -> None:
    context = cluster(*pods("web", "db"), history(refused=[noted(count=3, lasts=240)]))
    refused = ask(context)
    assert refused == Refused(
        "RefusedBefore",
        "EvictionRefused has refused such a move 3 times in a row: it is not tried before "
        "2027-01-15T08:03:30Z; no",
        NOW + 210,
    )
    assert ask(context, "web-2") == refused
    assert ask(context, "db-1") is None
    assert [one.rule for one in list_waiting(context)] == ["EvictionRefused"]


@pytest.mark.parametrize("ago", [60, 3600])
def test_it_is_tried_again_when_its_time_has_come(ago: float) -> None:
    context = cluster(*pods("web"), history(refused=[noted(ago=ago)]))
    assert ask(context) is None
    assert list_waiting(context) == []


def test_a_rule_about_one_pod_keeps_no_other() -> None:
    context = cluster(*pods("web"), history(refused=[noted("PodMoved", "uid-web-1")]))
    assert (ask(context) or Refused("", "")).rule == "RefusedBefore"
    assert ask(context, "web-2") is None


@pytest.mark.parametrize(
    ("rule", "key", "kept"),
    [
        ("NodeMarked", "n1", ["RefusedBefore", "RefusedBefore"]),
        ("NodeMarked", "n2", [None, None]),
        ("Forbidden", "default", ["RefusedBefore", "RefusedBefore"]),
        ("Forbidden", "shop", [None, None]),
        ("NotSeen", "", ["RefusedBefore", "RefusedBefore"]),
        ("WebhookFailing", "hook.example", ["RefusedBefore", None]),
    ],
)
def test_a_refusal_reaches_as_far_as_it_is_true(rule: str, key: str, kept: list[str | None]) -> None:
    """A webhook stands before the workloads that have met it, and of others nothing is known."""
    context = cluster(*pods("web", "db"), node("n2"), history(refused=[noted(rule, key)]))
    assert spend(context, "web-1", "db-1") == kept


def test_workloads_behind_a_webhook_wait_together_and_one_asks_again() -> None:
    behind = [history("web", refused=[noted("WebhookFailing", "hook.example", ago=30, lasts=120)])]
    behind += [history("db", refused=[noted("WebhookFailing", "hook.example", ago=90)])]
    waiting = cluster(*pods("web", "db"), *behind)
    assert spend(waiting, "web-1", "db-1") == ["RefusedBefore", "RefusedBefore"]
    assert "hook.example" in (ask(waiting, "db-1") or Refused("", "")).reason
    due = cluster(*pods("web", "db"), *behind, now=NOW + 2 * MINUTE)
    assert spend(due, "web-1", "db-1") == [None, "RefusedBefore"]


def test_while_one_asks_the_others_wait() -> None:
    met = noted("WebhookFailing", "hook.example", ago=90)
    asking = history("web", open=[open_move("web-1", podUID="uid-web-1")], refused=[met])
    context = cluster(*pods("web", "db"), asking, history("db", refused=[met]))
    assert spend(context, "db-1") == ["RefusedBefore"]
    evicted = history(
        "web",
        open=[open_move("web-1", podUID="uid-web-1", phase="Evicted", evictedAt="2027-01-15T07:59:00Z")],
        refused=[met],
    )
    assert spend(cluster(*pods("web", "db"), evicted, history("db", refused=[met])), "db-1") == [None]


def test_a_webhook_that_has_answered_since_keeps_nobody() -> None:
    met = history("db", refused=[noted("WebhookFailing", "hook.example", ago=30)])
    answered = RefusalMemory(answered={"hook.example": NOW - 10})
    assert ask(cluster(*pods("web", "db"), met, memory=answered), "db-1") is None
    before = RefusalMemory(answered={"hook.example": NOW - 40})
    assert ask(cluster(*pods("web", "db"), met, memory=before), "db-1") is not None


@pytest.mark.parametrize(("rule", "key"), [("NotSeen", ""), ("Forbidden", "default")])
@pytest.mark.parametrize(("granted", "keeps"), [("07:59:45", False), ("07:59:15", True)])
def test_an_eviction_that_was_granted_since_disproves_it(
    rule: str, key: str, granted: str, *, keeps: bool
) -> None:
    other = history("db", past=[past_move("Better", evictedAt=f"2027-01-15T{granted}.000000Z")])
    context = cluster(*pods("web", "cache"), history(refused=[noted(rule, key)]), other)
    assert (ask(context, "cache-1") is not None) == keeps


def test_the_memory_of_the_process_counts_until_the_cache_has_seen_the_history() -> None:
    newer = note_refusal(Refused("EvictionRefused", "no"), key="", before=(), now=NOW - 1)
    memory = RefusalMemory((KnownRefusal(WorkloadName("default", "ReplicaSet/web"), newer),))
    for before in ((), (history(refused=[noted(ago=900)]),)):
        refused = ask(cluster(*pods("web"), *before, memory=memory))
        assert refused is not None
        assert refused.until == pytest.approx(NOW + 59)


def test_a_check_without_the_memory_refuses_nothing_by_it() -> None:
    """Right before its eviction a move is itself the next try."""
    context = cluster(*pods("web"), history(refused=[noted()]))
    assert ask(dataclasses.replace(context, refusals=None, _known={})) is None


def test_entries_that_cannot_be_read_and_old_ones_keep_nobody() -> None:
    old = noted(ago=3 * 24 * 3600, lasts=3600)
    unreadable = {"rule": "EvictionRefused", "refusedAt": "?", "until": "soon"}
    assert ask(cluster(*pods("web"), history(refused=[old, unreadable]))) is None


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        (TriesLeft(), [None, None, None]),
        (TriesLeft(repeated=False), [None, None, "RefusalRate"]),
        (TriesLeft(unknown=False, repeated=False), [None, "RefusalRate", "RefusalRate"]),
        (TriesLeft(unknown=False, repeated=False, trusts_proven=False), ["RefusalRate"] * 3),
    ],
)
def test_moves_that_may_be_refused_are_planned_while_tries_are_left(
    left: TriesLeft, kept: list[str | None]
) -> None:
    proven = history("proven", past=[past_move("Better", closed_at="2027-01-13T07:50:00.000000Z")])
    before = history("before", refused=[noted(ago=900)])
    context = cluster(*pods("proven", "new", "before"), proven, before, memory=RefusalMemory(left=left))
    assert spend(context, "proven-1", "new-1", "before-1") == kept


def test_one_of_those_that_were_refused_before_is_planned_and_any_number_of_others() -> None:
    before = [history(name, refused=[noted(ago=900)]) for name in ("a", "b")]
    context = cluster(*pods("a", "b", "c", "d"), *before)
    assert spend(context, "a-1", "b-1", "c-1", "d-1") == [None, "RefusalRate", None, None]
