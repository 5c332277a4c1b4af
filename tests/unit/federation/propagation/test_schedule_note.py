"""A scheduling decision of a process that crashed is reported by the next one."""

from typing import Any

import msgspec
import pytest

from federation.api import ResourceBinding
from federation.objects.template import Object
from federation.propagation.schedule_note import apply_note, resume
from federation.propagation.schedule_result import change_clusters, change_schedule_status, list_events
from federation.scheduling import Fleet, decide
from federation.scheduling.demand import SCHEDULE_NOTE
from tests.support.federation.objects import NOW, bare_cluster, claimed_binding

APIS = {
    "apiEnablements": [
        {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}
    ]
}
GROUPS = (
    {"affinityName": "near", "clusterNames": ["m9"]},
    {"affinityName": "far", "clusterNames": ["m1", "m2"]},
)
DIVIDED = {
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    "clusterAffinities": GROUPS,
}
OLD, NEW = "2026-01-01T00:00:00Z", "2027-01-15T08:00:00Z"


def clusters(*names: str) -> Fleet:
    return Fleet(bare_cluster(name, status=APIS) for name in names)


def merged(one: ResourceBinding, patch: Object, *, generation: int = 3) -> ResourceBinding:
    wire: Object = msgspec.to_builtins(one)
    for part, change in patch.items():
        wire[part] = {**wire.get(part, {}), **change}
    wire["metadata"]["generation"] = generation
    return msgspec.convert(wire, ResourceBinding)


def half_written(**spec: Any) -> ResourceBinding:
    """As the process leaves it that dies between its two writes."""
    new = claimed_binding(**{"placement": DIVIDED, **spec})
    decision = decide(new, clusters("m1", "m2"), now=NOW)
    patch = change_clusters(new, decision)
    assert patch is not None
    return merged(new, patch)


def test_an_unreported_decision_is_reported_and_not_made_again() -> None:
    left = half_written()
    known = apply_note(left)
    assert (known.status.observed_affinity, known.status.last_scheduled_time) == ("far", NEW)
    fleet = clusters("m1", "m2", "m9")  # by now it could be in the first group
    decision = resume(left, known, decide(known, fleet, now=NOW + 60))
    assert decision.clusters == left.spec.clusters
    assert change_clusters(left, decision) is None
    status = change_schedule_status(left, decision, was_changed=True, now=NOW + 60)
    assert status is not None
    told = status["status"]
    assert told["schedulerObservingAffinityName"] == "far"
    assert told["lastScheduledTime"] == NEW
    assert told["schedulerObservedGeneration"] == 3
    assert [(each["type"], each["status"]) for each in told["conditions"]] == [("Scheduled", "True")]
    (event,) = list_events(left, decision, was_changed=True)
    shares = ", ".join(f"{each.name}:{each.replicas}" for each in decision.clusters)
    assert event.note == f"Binding has been scheduled successfully. Result: {{{shares}}}"

    done = merged(left, {"status": told})
    assert apply_note(done) is done
    again = decide(apply_note(done), fleet, now=NOW + 90)
    assert resume(done, done, again) is again
    assert change_schedule_status(done, again, was_changed=False, now=NOW + 90) is None


def test_a_handled_trigger_is_not_handled_again() -> None:
    done = {"lastScheduledTime": OLD, "schedulerObservedGeneration": 1}
    left = half_written(rescheduleTriggeredAt=NEW, status=done)
    known = apply_note(left)
    assert decide(known, clusters("m1", "m2", "m9"), now=NOW + 60).clusters == left.spec.clusters
    later = merged(left, {"spec": {"rescheduleTriggeredAt": "2027-01-15T08:00:00.5Z"}}, generation=4)
    assert apply_note(later).status.scheduler_observed_generation == 1


@pytest.mark.parametrize("note", ["", "{", "[]", '{"time": "yesterday"}', '{"affinityName": "a"}'])
def test_an_invalid_schedule_note_is_ignored(note: str) -> None:
    left = half_written()
    odd = merged(
        left, {"metadata": {**msgspec.to_builtins(left.metadata), "annotations": {SCHEDULE_NOTE: note}}}
    )
    assert apply_note(odd) is odd


def test_a_schedule_note_older_than_the_status_is_ignored() -> None:
    left = half_written()
    later = merged(left, {"status": {"lastScheduledTime": "2027-01-15T08:00:01Z"}})
    assert apply_note(later) is later


def test_a_status_of_the_same_second_counts_where_nothing_has_changed_since() -> None:
    left = half_written()
    same = {"lastScheduledTime": NEW, "schedulerObservingAffinityName": "near"}
    told = merged(left, {"status": {**same, "schedulerObservedGeneration": 3}})
    assert apply_note(told) is told
    changed = merged(left, {"status": {**same, "schedulerObservedGeneration": 2}})
    assert apply_note(changed).status.observed_affinity == "far"


def test_a_scheduling_failure_is_cleared_once_its_cause_is_gone() -> None:
    """Replicas that found no room, and are not wanted any more."""
    failed = {"type": "Scheduled", "status": "False", "reason": "Unschedulable", "message": "too little"}
    told = {"lastScheduledTime": NEW, "schedulerObservedGeneration": 3, "conditions": [failed]}
    one = merged(half_written(), {"status": {**told, "schedulerObservingAffinityName": "far"}})
    decision = decide(one, clusters("m1", "m2"), now=NOW + 60)
    status = change_schedule_status(one, decision, was_changed=False, now=NOW + 60)
    assert status is not None
    assert [each["status"] for each in status["status"]["conditions"]] == ["True"]
