from typing import Any

import msgspec
import pytest

from federation.api import APPLIED_PLACEMENT, Cluster, ResourceBinding
from federation.objects.template import Object
from federation.propagation.schedule_result import (
    change_clusters,
    change_schedule_status,
    is_scheduled_by_us,
    list_events,
    priority_rank,
    write_placement,
)
from federation.scheduling import Decision, Fleet, decide
from federation.scheduling.demand import SCHEDULE_NOTE
from tests.support.federation.objects import NOW, bare_cluster, claimed_binding, given

APIS = {
    "apiEnablements": [
        {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}
    ]
}


def decided(one: ResourceBinding, *clusters: Cluster) -> Decision:
    return decide(one, Fleet(clusters), now=NOW)


def ready(name: str) -> Cluster:
    return bare_cluster(name, status=APIS)


def written(one: ResourceBinding, *patches: Object | None) -> ResourceBinding:
    """What the API server keeps after these merge patches, as far as they go here."""
    wire: Object = msgspec.to_builtins(one)
    for patch in patches:
        for part, change in (patch or {}).items():
            wire[part] = {
                **wire.get(part, {}),
                **{key: value for key, value in change.items() if value is not None},
            }
    return msgspec.convert(wire, ResourceBinding)


def test_a_success_is_written_once_with_one_event() -> None:
    new = claimed_binding()
    decision = decided(new, ready("m1"), ready("m2"))
    clusters = change_clusters(new, decision)
    assert clusters == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {APPLIED_PLACEMENT: "{}", SCHEDULE_NOTE: '{"time":"2027-01-15T08:00:00Z"}'},
        },
        "spec": {"clusters": given(m1=3, m2=3)},
    }
    placed = written(new, clusters)
    status = change_schedule_status(placed, decision, was_changed=True, now=NOW)
    assert status is not None
    assert status["status"]["schedulerObservedGeneration"] == 2
    assert status["status"]["lastScheduledTime"] == "2027-01-15T08:00:00Z"
    condition = status["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Scheduled", "True", "Success")
    (event,) = list_events(new, decision, was_changed=True)
    assert (event.reason, event.is_failure) == ("ScheduleBindingSucceed", False)
    assert event.note == "Binding has been scheduled successfully. Result: {m1:3, m2:3}"

    after = written(placed, status)
    again = decided(after, ready("m1"), ready("m2"))
    assert change_clusters(after, again) is None
    assert change_schedule_status(after, again, was_changed=False, now=NOW + 60) is None
    assert not list(list_events(after, again, was_changed=False))


def test_a_failure_keeps_the_clusters_and_makes_one_event() -> None:
    new = claimed_binding(clusters=given(m1=3))
    decision = decided(new)
    assert change_clusters(new, decision) is None
    status = change_schedule_status(new, decision, was_changed=False, now=NOW)
    assert status is not None
    assert "lastScheduledTime" not in status["status"]
    assert status["status"]["conditions"][0]["reason"] == "NoClusterFit"
    (event,) = list_events(new, decision, was_changed=False)
    assert (event.reason, event.is_failure) == ("ScheduleBindingFailed", True)
    assert event.note == "0/0 clusters are available: no cluster exists."
    assert not list(list_events(written(new, status), decision, was_changed=False))


def test_a_trigger_that_changes_nothing_is_noted_as_handled() -> None:
    done = {"lastScheduledTime": "2026-01-01T00:00:00Z", "schedulerObservedGeneration": 1}
    one = claimed_binding(clusters=given(m1=3), rescheduleTriggeredAt="2026-06-01T00:00:00Z", status=done)
    one = written(one, {"metadata": {"annotations": {APPLIED_PLACEMENT: "{}"}}})
    decision = decided(one, ready("m1"))
    assert change_clusters(one, decision) is None
    status = change_schedule_status(one, decision, was_changed=False, now=NOW)
    assert status is not None
    assert status["status"]["lastScheduledTime"] == "2027-01-15T08:00:00Z"


def test_a_suspended_binding_is_looked_at_but_not_judged() -> None:
    one = claimed_binding(suspension={"scheduling": True})
    decision = decided(one, ready("m1"))
    assert change_clusters(one, decision) is None
    status = change_schedule_status(one, decision, was_changed=False, now=NOW)
    assert status is not None
    assert status["status"] == {"schedulerObservedGeneration": 2}


def test_the_conditions_of_others_stay_and_times_tell_of_changes_alone() -> None:
    other = {"type": "FullyApplied", "status": "True", "reason": "A", "message": "b"}
    old = {"type": "Scheduled", "status": "True", "reason": "Old", "message": "", "lastTransitionTime": "T"}
    one = claimed_binding(status={"conditions": [old, other]})
    status = change_schedule_status(one, decided(one, ready("m1")), was_changed=True, now=NOW)
    assert status is not None
    kept, new = status["status"]["conditions"]
    assert kept == other
    assert (new["reason"], new["lastTransitionTime"]) == ("Success", "T")


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (claimed_binding(), True),
        (claimed_binding(schedulerName="default-scheduler"), True),
        (claimed_binding(schedulerName="other"), False),
    ],
)
def test_bindings_of_another_scheduler_are_left_alone(one: ResourceBinding, *, wanted: bool) -> None:
    assert is_scheduled_by_us(one) is wanted


@pytest.mark.parametrize("change", [{"labels": None}, {"deletion_timestamp": "2026-01-01T00:00:00Z"}])
def test_unclaimed_and_deleted_bindings_are_not_scheduled(change: Any) -> None:
    meta = msgspec.structs.replace(claimed_binding().metadata, **change)
    assert not is_scheduled_by_us(msgspec.structs.replace(claimed_binding(), metadata=meta))


def test_the_higher_priority_comes_first() -> None:
    assert (
        priority_rank(claimed_binding(schedulePriority={"priority": 5}))
        < priority_rank(claimed_binding())
        == priority_rank(None)
    )


def test_the_applied_placement_is_written_in_the_order_of_its_fields() -> None:
    placement = {"clusterTolerations": [{"key": "a"}], "clusterAffinity": {"clusterNames": ["m1"]}}
    text = write_placement(claimed_binding(placement=placement))
    assert text == '{"clusterAffinity":{"clusterNames":["m1"]},"clusterTolerations":[{"key":"a"}]}'


def test_the_observed_group_is_written_and_groups_that_failed_are_events() -> None:
    names = (
        {"affinityName": "near", "clusterNames": ["m9"]},
        {"affinityName": "far", "clusterNames": ["m1"]},
    )
    one = claimed_binding(placement={"clusterAffinities": names})
    decision = decided(one, ready("m1"))
    status = change_schedule_status(one, decision, was_changed=True, now=NOW)
    assert status is not None
    assert status["status"]["schedulerObservingAffinityName"] == "far"
    events = list(list_events(one, decision, was_changed=True))
    assert [told.is_failure for told in events] == [True, True, False]
    assert events[1].note == "The placement names clusters that do not exist: m9"
