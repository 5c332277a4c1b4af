"""What a Work tells of pods without a node, and for how long they have had none."""

from typing import Any

import msgspec
from msgspec.structs import replace

from federation.failover.pending_replicas import (
    PendingRules,
    PendingTold,
    WaitingPods,
    WaitingSince,
    list_taken,
    read_pending,
    tell_pending,
    write_taken,
)
from reberth.records import Condition
from tests.support.federation.objects import NOW, claimed_binding

WHY = "1 Insufficient cpu."
RULES = PendingRules(300, block_for=600)


def told(*pods: WaitingPods) -> tuple[Condition, ...]:
    has: tuple[Condition, ...] = ()
    for each in pods:
        said = tell_pending(has, each, lambda: WHY, longer_than=300)
        has = (said,) if said else has
    return has


def test_a_pod_counts_from_the_second_look_and_is_stuck_after_so_long() -> None:
    since = WaitingSince()
    since.observe(["a"], now=0)
    assert since.count(["a"], longer_than=300) == WaitingPods(1, 0, 0, 1)
    since.observe(["a", "b"], now=10)
    assert since.count(["a", "b"], longer_than=300) == WaitingPods(2, 1, 0, 1)
    since.observe(["a", "b"], now=300)
    assert since.count(["a", "b"], longer_than=300) == WaitingPods(2, 2, 1, 1)
    since.observe(["b"], now=305)
    since.observe(["a", "b"], now=310)
    assert since.count(["a", "b"], longer_than=300) == WaitingPods(2, 1, 1), "a had a node meanwhile"


def test_the_work_tells_how_many_have_no_node_and_why() -> None:
    assert told(WaitingPods()) == ()
    assert told(WaitingPods(2)) == (), "most get one in a moment"
    assert read_pending(told(WaitingPods(2, 2), WaitingPods(2))) == PendingTold(2, 0, WHY)
    assert read_pending(told(WaitingPods(2, 2))) == PendingTold(2, 0, WHY)
    assert read_pending(told(WaitingPods(2, 2), WaitingPods(2, 2, 1))) == PendingTold(1, 1, WHY)
    (over,) = told(WaitingPods(2, 2, 2), WaitingPods())
    assert (over.status, over.reason) == ("False", "Scheduled")
    assert read_pending((over,)) == PendingTold()


def test_another_process_does_not_begin_anew_while_as_many_wait() -> None:
    assert read_pending(told(WaitingPods(3, 3, 2), WaitingPods(3, first=3))).stuck == 2
    assert read_pending(told(WaitingPods(3, 3, 2), WaitingPods(1, first=1))).stuck == 1


def test_pods_that_came_later_begin_anew_whatever_is_told_of_others() -> None:
    assert read_pending(told(WaitingPods(3, 3, 2), WaitingPods(3))).stuck == 0
    assert read_pending(told(WaitingPods(3, 3, 2), WaitingPods(3, first=1))).stuck == 1


def test_the_same_numbers_are_told_once_and_not_explained_again() -> None:
    has = told(WaitingPods(2, 2, 2))
    asked: list[str] = []
    assert tell_pending(has, WaitingPods(2, 2, 2), lambda: asked.append("why") or "", longer_than=300) is None
    assert asked == []


def test_odd_conditions_of_others_tell_nothing() -> None:
    for odd in ("", "many of its pods have no node: why", "9" * 5000 + " of its pods have no node: why"):
        assert read_pending((Condition("Unschedulable", "True", "Stuck", odd),)) == PendingTold()


def test_where_replicas_were_taken_is_noted_for_a_while() -> None:
    def noted(annotation: Any) -> Any:
        one = claimed_binding()
        return replace(one, metadata=replace(one.metadata, annotations=annotation))

    one = noted(write_taken({"m1": NOW, "m2": NOW - 700}))
    assert list_taken(one, RULES, now=NOW + 100) == {"m1": NOW}
    assert list_taken(noted(write_taken({"m1": NOW + 50})), RULES, now=NOW) == {"m1": NOW}
    assert list_taken(noted({"reberth.dev/replicas-taken": '{"m1": "long ago"}'}), RULES, now=NOW) == {}
    assert list_taken(noted({"reberth.dev/replicas-taken": "{"}), RULES, now=NOW) == {}
    assert msgspec.json.decode(write_taken({"b": NOW, "a": NOW})["reberth.dev/replicas-taken"]).keys() == {
        "a",
        "b",
    }
