from typing import Any

import msgspec
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from federation.api import Failover, GracefulEvictionTask, ResourceBinding
from federation.failover.eviction_tasks import (
    LEAVING,
    PRODUCER,
    UNTOLERATED,
    Assessment,
    Patience,
    add_tasks_for_leaving,
    change_failover_condition,
    concerns,
    make_task,
    review_tasks,
    write_assessment,
    write_tasks,
)
from federation.rebalancing.replicas import are_ready
from reberth.values.timestamp import write_time
from tests.support.federation.objects import NOW, claimed_binding, given

TIMEOUT = 600.0
MINUTE = 60.0
EVERYWHERE = frozenset({"m1", "m2", "m3"})


def task(name: str = "m1", *, age: float | None = None, **more: Any) -> dict[str, Any]:
    begun = {} if age is None else {"creationTimestamp": write_time(NOW - age)}
    return {"fromCluster": name, "purgeMode": "Gracefully", "producer": PRODUCER, **begun, **more}


def copy(name: str, *, health: str = "Healthy", available: int = 9) -> dict[str, Any]:
    return {
        "clusterName": name,
        "health": health,
        "applied": True,
        "status": {"availableReplicas": available},
    }


def evicted(*tasks: dict[str, Any], copies: Any = (), at: Any = None, seen: int = 2) -> ResourceBinding:
    """A binding that went from m1 to m2, unless it is said to be `at` other places."""
    status = {"aggregatedStatus": list(copies), "schedulerObservedGeneration": seen}
    found = claimed_binding(clusters=given(m2=3) if at is None else at, gracefulEvictionTasks=list(tasks))
    wire = msgspec.to_builtins(found) | {"status": status}
    return msgspec.json.decode(msgspec.json.encode(wire), type=ResourceBinding)


def assessed(
    one: ResourceBinding, *, calm: Any = (), ready: Any = EVERYWHERE, fence: float | None = None
) -> Assessment:
    return review_tasks(one, ready=ready, calm=calm, patience=Patience(TIMEOUT, fence), now=NOW)


def names(tasks: tuple[GracefulEvictionTask, ...]) -> list[str]:
    return [each.from_cluster for each in tasks]


def test_a_task_has_the_workload_the_cluster_and_the_reason() -> None:
    one = claimed_binding(clusters=given(m1=2, m2=1))
    found = make_task(one, "m1", reason=UNTOLERATED, message="taint")
    assert msgspec.to_builtins(found) == {
        "fromCluster": "m1",
        "purgeMode": "Gracefully",
        "replicas": 2,
        "reason": "TaintUntolerated",
        "message": "taint",
        "producer": "taint-manager",
    }


def test_the_purge_mode_of_the_policy_is_used() -> None:
    failover = {"cluster": {"purgeMode": "Directly"}}
    found = make_task(claimed_binding(clusters=given(m1=2), failover=failover), "m1", reason="R", message="")
    assert found is not None
    assert found.purge_mode == "Directly"


def test_a_binding_without_replicas_gets_a_task_without_replicas() -> None:
    found = make_task(claimed_binding(clusters=[{"name": "m1"}]), "m1", reason="R", message="")
    assert found is not None
    assert found.replicas is None


def test_there_is_no_second_task_and_none_for_another_cluster() -> None:
    one = claimed_binding(clusters=given(m1=2), gracefulEvictionTasks=[task()])
    assert make_task(one, "m1", reason="R", message="") is None
    assert make_task(one, "m2", reason="R", message="") is None


def test_f_13_the_grace_period_begins_when_the_cluster_has_been_replaced() -> None:
    waiting = assessed(evicted(task(), at=given(m1=3)))
    assert waiting.kept[0].creation_timestamp is None
    assert waiting.due is None
    started = assessed(evicted(task()))
    assert started.kept[0].creation_timestamp == write_time(NOW)
    assert started.due == NOW + TIMEOUT


@pytest.mark.parametrize(
    ("old", "is_kept"),
    [
        (task(age=MINUTE), True),
        (task(age=TIMEOUT), True),
        (task(age=TIMEOUT + 1), False),
        (task(age=MINUTE, gracePeriodSeconds=30), False),
        (task(age=TIMEOUT + 1, gracePeriodSeconds=900), True),
        (task(age=10 * TIMEOUT, suppressDeletion=True), True),
        (task(age=1, suppressDeletion=False), False),
        (task(suppressDeletion=False), False),
        (task(age=TIMEOUT + 1, purgeMode="Directly"), False),
        (task(age=MINUTE, purgeMode="Directly"), True),
    ],
)
def test_f_14_and_f_16_time_and_people_end_a_task(old: dict[str, Any], is_kept: bool) -> None:  # noqa: FBT001 - of the table
    found = assessed(evicted(old))
    assert (names(found.kept), names(found.ended)) == ((["m1"], []) if is_kept else ([], ["m1"]))


def test_f_17_of_several_tasks_each_is_looked_at() -> None:
    found = assessed(evicted(task("a"), task("b", age=2 * MINUTE), task("c", age=11 * MINUTE)))
    assert (names(found.kept), names(found.ended)) == (["a", "b"], ["c"])
    assert found.due == NOW + TIMEOUT - 2 * MINUTE


@pytest.mark.parametrize(
    ("one", "ready", "is_kept"),
    [
        (evicted(task(age=1), copies=[copy("m2", available=3)]), EVERYWHERE, False),
        (evicted(task(age=1), copies=[copy("m2", available=2)]), EVERYWHERE, True),
        (evicted(task(age=1), copies=[copy("m2", health="Unhealthy")]), EVERYWHERE, True),
        (evicted(task(age=1), copies=[copy("m2", health="Unknown")]), EVERYWHERE, True),
        (evicted(task(age=1), copies=[copy("m2")]), frozenset({"m1"}), True),
        (evicted(task(age=1), copies=[copy("m2")], seen=1), EVERYWHERE, True),
        (evicted(task(age=1), copies=[copy("m1")]), EVERYWHERE, True),
        (evicted(task(age=1), copies=[copy("m2")], at=given(m2=2, m3=1)), EVERYWHERE, True),
        (evicted(task(age=1), copies=[copy("m2"), copy("m3")], at=given(m2=2, m3=1)), EVERYWHERE, False),
        (evicted(task(age=1), at=[]), EVERYWHERE, True),
        (evicted(task(age=1), copies=[{"clusterName": "m2", "health": "Healthy"}]), EVERYWHERE, True),
        (evicted(task(age=1, suppressDeletion=True), copies=[copy("m2")]), EVERYWHERE, True),
        (evicted(task(age=1, purgeMode="Directly"), copies=[copy("m2")]), EVERYWHERE, False),
        (evicted(task(), copies=[copy("m2")]), EVERYWHERE, True),
    ],
)
def test_a_task_ends_when_all_that_take_its_place_are_healthy(
    one: ResourceBinding,
    ready: frozenset[str],
    is_kept: bool,  # noqa: FBT001 - of the table
) -> None:
    assert bool(assessed(one, ready=ready).kept) == is_kept


def test_a_kind_without_replicas_is_healthy_by_its_reported_health_alone() -> None:
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "web"}
    copies = [{"clusterName": "m2", "health": "Healthy", "applied": True}]
    one = msgspec.structs.replace(
        evicted(task(age=1), copies=copies),
        spec=claimed_binding(resource=resource, clusters=given(m2=0)).spec,
    )
    one = msgspec.structs.replace(
        one,
        spec=msgspec.structs.replace(
            one.spec, graceful_eviction_tasks=evicted(task(age=1)).spec.graceful_eviction_tasks
        ),
    )
    assert not assessed(one).kept


@pytest.mark.parametrize(
    ("status", "is_kept"),
    [
        ({"availableReplicas": 1}, True),
        ({"availableReplicas": 3}, False),
        ({"readyReplicas": 2}, True),
        ({"availableReplicas": 2, "readyReplicas": 3}, True),
        ({"phase": "Running"}, False),
        ({"availableReplicas": "all"}, False),
    ],
)
def test_a_copy_of_any_kind_that_grows_replaces_others_when_it_has_its_new_size(
    status: dict[str, Any], *, is_kept: bool
) -> None:
    """Its health is told before its member has noticed that it has to grow."""
    said = {"clusterName": "m2", "health": "Healthy", "applied": True, "status": status}
    one = evicted(task(age=1), copies=[said])
    resource = msgspec.structs.replace(one.spec.resource, api_version="apps.example/v1", kind="CloneSet")
    one = msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, resource=resource))
    assert bool(assessed(one).kept) is is_kept
    assert are_ready(one, one.spec.clusters or ()) is not is_kept


def test_a_copy_whose_member_refuses_its_new_size_replaces_nothing() -> None:
    """It is Healthy, as it was before."""
    refused = evicted(task(age=1), copies=[copy("m2") | {"applied": False}])
    assert names(assessed(refused).kept) == ["m1"]
    assert names(assessed(evicted(task(age=1), copies=[copy("m2")])).ended) == ["m1"]


def test_an_eviction_without_a_cause_any_more_is_withdrawn() -> None:
    found = assessed(evicted(task(), at=given(m1=3)), calm={"m1"})
    assert (names(found.kept), names(found.withdrawn)) == ([], ["m1"])
    assert [each.name for each in found.clusters] == ["m1"]


def test_eviction_tasks_of_other_producers_are_kept() -> None:
    asked = task(producer="somebody")
    assert names(assessed(evicted(asked, at=given(m1=3)), calm={"m1"}).kept) == ["m1"]


def test_a_workload_returns_when_all_that_took_its_place_are_left_too() -> None:
    tasks = (task(age=MINUTE, replicas=3), task("m2"))
    found = assessed(evicted(*tasks), calm={"m1"})
    assert names(found.kept) == ["m2"]
    assert [(each.name, each.replicas) for each in found.clusters] == [("m2", 3), ("m1", 3)]
    patch = write_assessment(evicted(*tasks), found)
    assert patch is not None
    assert patch["spec"]["clusters"] == given(m2=3, m1=3)


@pytest.mark.parametrize(
    ("tasks", "calm", "ready"),
    [
        ((task(age=MINUTE),), {"m1"}, EVERYWHERE),
        ((task(age=MINUTE), task("m2")), set(), EVERYWHERE),
        ((task(age=MINUTE), task("m2")), {"m1"}, frozenset({"m2"})),
        ((task(age=MINUTE, purgeMode="Directly"), task("m2")), {"m1"}, EVERYWHERE),
    ],
)
def test_a_workload_returns_only_to_a_cluster_that_still_has_and_may_have_it(
    tasks: Any, calm: Any, ready: Any
) -> None:
    found = assessed(evicted(*tasks), calm=calm, ready=ready)
    assert not found.withdrawn
    assert [each.name for each in found.clusters] == ["m2"]


def test_where_nothing_has_changed_nothing_is_written() -> None:
    one = evicted(task(age=MINUTE))
    assert write_assessment(one, assessed(one)) is None


def test_the_last_task_takes_the_field_away() -> None:
    one = evicted(task(suppressDeletion=False))
    patch = write_assessment(one, assessed(one))
    assert patch == {"metadata": {"resourceVersion": "7"}, "spec": {"gracefulEvictionTasks": None}}


def test_tasks_are_written_as_they_are_read() -> None:
    one = evicted(task(age=5, suppressDeletion=True), task("m3"))
    patch = write_tasks(one, one.spec.graceful_eviction_tasks or ())
    again = msgspec.convert(patch["spec"]["gracefulEvictionTasks"], tuple[GracefulEvictionTask, ...])
    assert again == one.spec.graceful_eviction_tasks


def test_copies_in_clusters_that_are_deleted_are_held() -> None:
    one = claimed_binding(clusters=given(m1=2, m2=1, m3=1), gracefulEvictionTasks=[task("m0")])
    kept = [each for each in one.spec.clusters or () if each.name == "m2"]
    found = add_tasks_for_leaving(one, kept, {"m1", "m2"})
    assert found is not None
    assert [(each.from_cluster, each.reason) for each in found] == [("m0", ""), ("m1", LEAVING)]
    assert add_tasks_for_leaving(one, kept, ()) is None


@pytest.mark.parametrize(
    ("one", "does"),
    [
        (claimed_binding(clusters=given(m1=1), placement={}), True),
        (claimed_binding(clusters=given(m2=1), placement={}), False),
        (claimed_binding(clusters=given(m1=1)), False),
        (claimed_binding(placement={}, gracefulEvictionTasks=[task()]), True),
        (claimed_binding(placement={}, gracefulEvictionTasks=[task(suppressDeletion=True)]), False),
    ],
)
def test_a_cluster_concerns_bindings_placed_on_or_leaving_it(one: ResourceBinding, does: bool) -> None:  # noqa: FBT001 - of the table
    assert concerns(one, "m1") is does


TASKS = st.builds(
    task,
    st.sampled_from(["m1", "m2", "m3"]),
    age=st.none() | st.floats(0, 2 * TIMEOUT),
    suppressDeletion=st.none() | st.booleans(),
    gracePeriodSeconds=st.none() | st.integers(1, 900),
    producer=st.sampled_from([PRODUCER, "somebody"]),
    replicas=st.integers(1, 5),
)
SUBSETS = st.frozensets(st.sampled_from(["m1", "m2", "m3"]))


@drawn(st.lists(TASKS, max_size=3, unique_by=lambda each: each["fromCluster"]), SUBSETS, SUBSETS, SUBSETS)
def test_no_task_is_lost_and_no_cluster_is_taken_away(
    tasks: list[dict[str, Any]], at: frozenset[str], ready: frozenset[str], calm: frozenset[str]
) -> None:
    one = evicted(*tasks, at=given(**dict.fromkeys(sorted(at), 1)), copies=[copy(name) for name in at])
    found = assessed(one, ready=ready, calm=calm)
    seen = [*names(found.kept), *names(found.ended), *names(found.withdrawn)]
    assert sorted(seen) == sorted(each["fromCluster"] for each in tasks)
    assert found.clusters[: len(at)] == (one.spec.clusters or ())
    assert at.isdisjoint(names(found.ended))
    again = msgspec.structs.replace(
        one,
        spec=msgspec.structs.replace(one.spec, graceful_eviction_tasks=found.kept, clusters=found.clusters),
    )
    assert not assessed(again, ready=ready, calm=frozenset()).withdrawn


def test_a_copy_that_is_purged_directly_is_waited_for_while_its_member_is_lost() -> None:
    """After the grace period there would be two copies when the member comes back."""
    one = evicted(task(age=10 * TIMEOUT, purgeMode="Directly"), copies=[copy("m1")])
    found = assessed(one, ready={"m2", "m3"})
    assert names(found.kept) == ["m1"]
    assert (found.due, found.lost) == (None, ("m1",))
    answers = assessed(one)
    assert (names(answers.kept), answers.due, answers.lost) == (["m1"], None, ())
    gone = assessed(evicted(task(age=10 * TIMEOUT, purgeMode="Directly")))
    assert (names(gone.ended), gone.lost) == (["m1"], ())
    gracefully = assessed(evicted(task(age=10 * TIMEOUT)), ready={"m2", "m3"})
    assert (names(gracefully.ended), gracefully.lost) == (["m1"], ())


def test_a_copy_that_is_purged_directly_and_does_not_end_is_waited_for_by_people_alone() -> None:
    """Its pod may be on a dead node of a Ready member: Terminating, and perhaps still running."""
    for age in (TIMEOUT + 1, 100 * TIMEOUT):
        stuck = evicted(task(age=age, purgeMode="Directly"), copies=[copy("m1")])
        for fence in (None, MINUTE):
            found = assessed(stuck, fence=fence)
            assert (names(found.kept), found.due) == (["m1"], None)
    by_hand = task(age=MINUTE, purgeMode="Directly", suppressDeletion=False)
    assert names(assessed(evicted(by_hand, copies=[copy("m1")])).ended) == ["m1"]


def test_a_fence_ends_the_wait_for_a_lost_member() -> None:
    young, old = (evicted(task(age=age, purgeMode="Directly")) for age in (99, 101))
    found = assessed(young, ready={"m2"}, fence=100)
    assert (names(found.kept), found.due) == (["m1"], NOW + 1)
    assert names(assessed(old, ready={"m2"}, fence=100).ended) == ["m1"]


def test_a_condition_says_which_lost_member_is_waited_for_and_that_it_is_over() -> None:
    one = evicted(task(age=TIMEOUT, purgeMode="Directly"), copies=[copy("m1")])
    patch = change_failover_condition(one, assessed(one, ready={"m2"}), now=NOW)
    assert patch is not None
    (said,) = patch["status"]["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("Failover", "False", "MemberLost")
    assert said["message"].startswith("m1 cannot be reached.")
    assert change_failover_condition(one, assessed(one), now=NOW) is None
    wire = msgspec.json.decode(msgspec.json.encode(one))
    told = msgspec.json.decode(
        msgspec.json.encode({**wire, "status": {**wire["status"], **patch["status"]}}), type=ResourceBinding
    )
    assert change_failover_condition(told, assessed(told, ready={"m2"}), now=NOW + 9) is None
    over = change_failover_condition(told, assessed(told), now=NOW)
    assert over is not None
    (said,) = over["status"]["conditions"]
    assert (said["status"], said["reason"]) == ("True", "Calm")


FAILED = {"reason": "ApplicationFailure", "producer": "somebody", "gracePeriodSeconds": 60, "replicas": 2}


def better(*tasks: dict[str, Any], at: Any, ready: Any = EVERYWHERE, **available: int) -> list[str]:
    """Names the old copies that stay after their grace period, with so many replicas available."""
    copies = [copy(name, available=count, health="Unhealthy") for name, count in available.items()]
    one = evicted(*tasks, at=at, copies=copies)
    said = msgspec.convert({"application": {"decisionConditions": {}}}, Failover)
    one = msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, failover=said))
    return names(assessed(one, ready=ready).kept)


def test_a_copy_that_is_better_stays_until_clusters_that_had_one_have_gained_as_much() -> None:
    left = task(age=MINUTE + 1, clustersBeforeFailover=["m1", "m2"], **FAILED)
    assert better(left, at=given(m2=3), m1=1, m2=1) == ["m1"]
    assert better(left, at=given(m2=3), m1=1, m2=2) == []
    assert better(left, at=given(m2=2, m3=1), m1=2, m2=1, m3=1) == ["m1"]
    assert better(left, at=given(m2=2, m3=1), m1=1, m2=0, m3=1) == []
    assert better(left, at=given(m2=3), m1=0, m2=0) == []


def test_replicas_in_a_member_that_does_not_answer_are_no_gain() -> None:
    left = task(age=MINUTE + 1, clustersBeforeFailover=["m1"], **FAILED)
    assert better(left, at=given(m2=2), m1=1, m2=2) == []
    assert better(left, at=given(m2=2), ready={"m1"}, m1=1, m2=2) == ["m1"]


def test_old_copies_that_are_better_together_stay_together() -> None:
    before = {"clustersBeforeFailover": ["m1", "m2"], **FAILED}
    two = [task(name, age=MINUTE + 1, **before) for name in ("m1", "m2")]
    assert better(*two, at=given(m3=4), m1=1, m2=1, m3=1) == ["m1", "m2"]
    assert better(*two, at=given(m3=4), m1=1, m2=1, m3=2) == []
