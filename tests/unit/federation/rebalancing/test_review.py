"""The result of reviewing a rebalancer: cases R-01 to R-08, their order, and restarts."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from federation.api import ResourceBinding, ResourceSelector, WorkloadRebalancer
from federation.rebalancing.expiry import seconds_left
from federation.rebalancing.progress import WaitingFor
from federation.rebalancing.review import Limits, Review, list_wanted, set_limits
from tests.support.federation.rebalancers import (
    HOUR,
    T,
    at,
    bound,
    entry,
    look,
    rebalancer,
    results,
    well,
    workload,
)

SUCCESS = {"result": "Successful", "health": "Healthy"}
MISSING = {"result": "Failed", "reason": "ReferencedBindingNotFound"}


def seen(one: WorkloadRebalancer, found: Review) -> WorkloadRebalancer:
    """The rebalancer after its status was written."""
    return replace(one, status=found.status)


def test_r_01_a_workload_is_triggered_at_the_creation_time_and_fails_without_a_binding() -> None:
    one = rebalancer("dep2", "dep1")
    asked = look(one, {"dep1": bound({"m1": 3}, trigger=-HOUR, last=-HOUR)})
    assert [(each.workload.name, each.at) for each in asked.triggers] == [("dep1", at(0))]
    assert results(asked) == {"dep1": None, "dep2": "Failed"}
    assert asked.status.finish_time is None

    done = look(seen(one, asked), {"dep1": bound({"m1": 3}, trigger=0, last=2)}, now=3)
    assert not done.triggers
    assert [
        (each.workload.name, each.result, each.reason) for each in done.status.observed_workloads or ()
    ] == [
        ("dep1", "Successful", None),
        ("dep2", "Failed", "ReferencedBindingNotFound"),
    ]
    assert done.status.finish_time == at(3)
    assert done.status.observed_generation == 1


def test_a_workload_has_not_succeeded_before_it_was_rescheduled() -> None:
    one = rebalancer("a")
    first = look(one, {"a": bound({"m1": 3}, last=-HOUR)})
    waiting = look(seen(one, first), {"a": bound({"m1": 3}, trigger=0, last=-HOUR)})
    assert results(waiting) == {"a": None}
    assert waiting.waiting == {WaitingFor.SCHEDULER: 1}
    assert not waiting.triggers


def test_r_04_a_removed_workload_stays_listed_if_it_succeeded() -> None:
    entries = (entry("dep1", **SUCCESS), entry("dep2", **MISSING), entry("dep4", triggeredAt=at(0)))
    found = look(rebalancer("dep3", entries=entries), {"dep3": bound({"m1": 1}, last=-5)})
    assert results(found) == {"dep1": "Successful", "dep3": None}
    assert [each.workload.name for each in found.triggers] == ["dep3"]


def test_r_06_a_workload_named_twice_is_one_entry() -> None:
    assert list(results(look(rebalancer("a", "a"), {}))) == ["a"]


def test_r_08_b_a_missing_workload_is_triggered_when_it_is_created() -> None:
    one = rebalancer("a", entries=(entry("a", **MISSING),))
    assert look(one, {}).waiting == {WaitingFor.BINDING: 1}
    assert "as soon as" in ((look(one, {}).status.observed_workloads or ())[0].message or "")
    found = look(one, {"a": bound({"m1": 1}, last=50)}, now=60)
    assert results(found) == {"a": None}
    assert [each.at for each in found.triggers] == [at(60)]
    assert found.status.finish_time is None


def test_r_15_b_a_workload_scheduled_in_the_same_second_is_triggered_in_the_next() -> None:
    (trigger,) = look(rebalancer("a"), {"a": bound({"m1": 1}, last=0)}, now=0.5).triggers
    assert trigger.at == at(1)


def test_r_16_b_a_workload_added_to_an_old_rebalancer_is_triggered_now() -> None:
    one = rebalancer("a", "b", entries=(entry("a", **SUCCESS),))
    (trigger,) = look(one, {"a": bound({"m1": 1}), "b": bound({"m2": 4}, last=6)}, now=90).triggers
    assert (trigger.workload.name, trigger.at) == ("b", at(90))


@pytest.mark.parametrize("now", [2, 200, 20_000])
def test_a_trigger_keeps_its_time_in_every_review(now: float) -> None:
    one = rebalancer("a")
    asked = look(one, {"a": bound({"m1": 1}, last=0)}, now=1)
    again = look(seen(one, asked), {"a": bound({"m1": 1}, last=0)}, now=now)
    assert again.triggers == asked.triggers
    assert again.status == asked.status


def test_a_trigger_overtaken_by_the_scheduler_gets_a_later_time() -> None:
    one = rebalancer("a")
    asked = look(one, {"a": bound({"m1": 1}, last=-5)})
    (trigger,) = look(seen(one, asked), {"a": bound({"m1": 1}, last=7)}, now=8).triggers
    assert trigger.at == at(8)


def test_a_later_trigger_of_another_rebalancer_is_enough() -> None:
    one = rebalancer("a")
    asked = look(one, {"a": bound({"m1": 1}, last=-5)})
    other = look(seen(one, asked), {"a": bound({"m1": 1}, trigger=4, last=-5)})
    assert not other.triggers
    assert results(look(seen(one, asked), {"a": bound({"m1": 1}, trigger=4, last=5)})) == {"a": "Successful"}


def test_the_status_tells_origin_destination_and_current_health() -> None:
    one = rebalancer("a")
    asked = seen(one, look(one, {"a": bound({"m2": 4}, last=-5)}))
    moved = bound({"m1": 2, "m2": 2}, trigger=0, last=1, status=well(m1=1, m2=4))
    found = look(asked, {"a": moved})
    (told,) = found.status.observed_workloads or ()
    assert [(each.name, each.replicas) for each in told.origin or ()] == [("m2", 4)]
    assert [(each.name, each.replicas) for each in told.to or ()] == [("m1", 2), ("m2", 2)]
    assert (told.result, told.health) == ("Successful", "Progressing")
    assert found.waiting == {WaitingFor.HEALTH: 1}
    ready = look(seen(one, found), {"a": bound({"m1": 2, "m2": 2}, status=well(m1=2, m2=4))}, now=9)
    assert (ready.status.observed_workloads or ())[0].health == "Healthy"
    assert ready.status.finish_time == found.status.finish_time
    assert not ready.waiting
    later = look(seen(one, ready), {"a": bound({"m1": 2, "m2": 2}, status=well(m1=0))}, now=9)
    assert later.status == ready.status
    assert look(seen(one, ready), {}, now=9).status == ready.status


@pytest.mark.parametrize(
    ("more", "reason", "said"),
    [
        ({"suspension": {"scheduling": True}}, WaitingFor.SUSPENDED, "suspended"),
        ({"schedulerName": "other"}, WaitingFor.OTHER_SCHEDULER, "the scheduler other"),
        (
            {"status": {"conditions": [{"type": "Scheduled", "status": "False", "message": "no room"}]}},
            WaitingFor.CLUSTERS,
            "no room",
        ),
        ({}, WaitingFor.SCHEDULER, "scheduler"),
    ],
)
def test_the_status_tells_the_reason_for_waiting(
    more: Mapping[str, object], reason: WaitingFor, said: str
) -> None:
    one = rebalancer("a", entries=(entry("a", triggeredAt=at(0)),))
    found = look(one, {"a": bound({"m1": 1}, trigger=0, last=-5, **more)})
    assert found.waiting == {reason: 1}
    assert said in ((found.status.observed_workloads or ())[0].message or "")


REQUIRED = bound({"m1": 1}, trigger=0, requiredBy=[{"namespace": "default", "name": "web"}])
FOLLOWER = replace(REQUIRED, spec=replace(REQUIRED.spec, placement=None))
UNCLAIMED = bound({"m1": 1}, trigger=0, metadata={"labels": {}})


@pytest.mark.parametrize(
    ("unscheduled", "reason", "said"),
    [
        pytest.param(FOLLOWER, WaitingFor.OTHERS, "follows the workloads", id="a dependency"),
        pytest.param(UNCLAIMED, WaitingFor.POLICY, "No policy", id="its policy is gone"),
    ],
)
def test_a_workload_that_no_scheduler_looks_at_fails_until_one_does(
    unscheduled: ResourceBinding, reason: WaitingFor, said: str
) -> None:
    one = rebalancer("a", ttlSecondsAfterFinished=60, entries=(entry("a", triggeredAt=at(0)),))
    found = look(one, {"a": unscheduled}, now=9)
    (failed,) = found.status.observed_workloads or ()
    assert (failed.result, failed.reason, failed.triggered_at) == ("Failed", "NotScheduled", None)
    assert said in (failed.message or "")
    assert found.status.finish_time == at(9)
    assert seconds_left(seen(one, found), now=T + 9) == 60
    assert found.waiting == {reason: 1}
    assert not found.triggers

    again = look(seen(one, found), {"a": bound({"m1": 1}, last=10)}, now=20)
    assert [each.at for each in again.triggers] == [at(20)]
    assert again.status.finish_time is None


def test_a_binding_that_cannot_be_read_is_left_alone_and_the_others_are_not() -> None:
    broken = bound({"m1": 1}, status={"lastScheduledTime": "yesterday"})
    found = look(rebalancer("a", "b"), {"a": broken, "b": bound({"m1": 1}, last=-5)})
    assert [each.workload.name for each in found.triggers] == ["b"]
    assert found.waiting == {WaitingFor.UNREADABLE: 1, WaitingFor.SCHEDULER: 1}
    assert "lastScheduledTime" in ((found.status.observed_workloads or ())[0].message or "")


BUSY = Limits(patience=600, most_moving=4)


def test_only_so_many_replicas_are_on_their_way_at_once() -> None:
    one = rebalancer("a", "b", "c")
    bindings: dict[str, ResourceBinding] = {name: bound({"m2": 3}, last=-5) for name in "abc"}
    first = look(one, bindings, limits=BUSY)
    assert [each.workload.name for each in first.triggers] == ["a"]
    assert first.waiting == {WaitingFor.SCHEDULER: 1, WaitingFor.BUDGET: 2}

    bindings["a"] = bound({"m1": 3}, trigger=0, last=1, status=well(m1=1))
    second = look(seen(one, first), bindings, limits=BUSY)
    assert not second.triggers
    assert second.look_again == T + 600

    bindings["a"] = bound({"m1": 3}, trigger=0, last=1, status=well(m1=3))
    third = look(seen(one, second), bindings, limits=BUSY)
    assert [each.workload.name for each in third.triggers] == ["b"]


def test_a_workload_that_takes_too_long_does_not_block_others() -> None:
    one = rebalancer("a", "b", entries=(entry("a", triggeredAt=at(0)),))
    bindings = {"a": bound({"m1": 3}, trigger=0, last=1), "b": bound({"m2": 3}, last=-5)}
    waiting = look(one, bindings, limits=BUSY, now=2)
    one = replace(one, status=waiting.status)
    assert [each.workload.name for each in look(one, bindings, limits=BUSY, now=601).triggers] == ["b"]


def test_a_workload_that_does_not_move_uses_no_budget() -> None:
    one = rebalancer(
        "a", "b", entries=(entry("a", triggeredAt=at(0), **{"from": [{"name": "m1", "replicas": 3}]}),)
    )
    bindings = {"a": bound({"m1": 3}, trigger=0, last=1), "b": bound({"m2": 9}, last=-5)}
    assert [each.workload.name for each in look(one, bindings, limits=BUSY).triggers] == ["b"]


def test_limits_are_as_the_rebalancer_wants_them() -> None:
    assert set_limits(rebalancer("a"), timeout=600.0) == Limits(600, 600)
    assert set_limits(rebalancer("a", makeBeforeBreak=False), timeout=600.0) == Limits(None, 600)
    wanted = rebalancer("a", handoverTimeoutSeconds=30, maxMovingReplicas=2)
    assert set_limits(wanted, timeout=600.0) == Limits(30, 30, 2)


def test_selectors_are_asked_once_for_each_generation() -> None:
    selector = ResourceSelector("apps/v1", "Deployment")
    one = rebalancer("a")
    one = replace(one, spec=replace(one.spec, workload_selectors=(selector,)))
    asked: list[str] = []

    def resolve(of: WorkloadRebalancer) -> list[object]:
        asked.append(of.metadata.name)
        return [workload("b")]

    assert [each.name for each in list_wanted(one, resolve)] == ["a", "b"]  # type: ignore[arg-type] # no more is needed
    found = look(one, {})
    one = replace(one, status=replace(found.status, observed_workloads=(entry("b"), entry("c"))))
    assert [each.name for each in list_wanted(one, resolve)] == ["a", "b", "c"]  # type: ignore[arg-type] # likewise
    assert asked == ["demo"]


def test_a_workload_that_had_to_return_has_failed_and_is_not_tried_again() -> None:
    done = entry("a", result="Successful", triggeredAt=at(0), health="Progressing")
    back = bound(
        {"m2": 3}, trigger=0, last=31, handover={"returns": 1, "returnedAt": at(31)}, status=well(m2=3)
    )
    one = rebalancer("a", entries=(done,))
    found = look(one, {"a": back}, now=40)
    (failed,) = found.status.observed_workloads or ()
    assert (failed.result, failed.reason, failed.health) == ("Failed", "NotReadyInTime", None)
    assert failed.message == "The new copies were not ready in time; the workload returned to {m2:3}."
    later = look(seen(one, found), {"a": back}, now=50)
    assert later.status == found.status
    assert not later.triggers
    assert not later.waiting
    earlier = bound(
        {"m1": 3}, trigger=0, last=1, handover={"returns": 1, "returnedAt": at(-5)}, status=well(m1=3)
    )
    assert results(look(one, {"a": earlier}, now=40)) == {"a": "Successful"}
