from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from reberth.cluster.pods.health import find_problems
from reberth.cluster.rows import PHASES, PodRow, make_node_row, make_pod_row, trim
from reberth.cluster.templates import Templates, pack
from reberth.records import Node, ObjectMeta, Pod
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import parse_time
from tests.support.builders import Object, as_record, node, owner, pod
from tests.support.cluster.strategies import (
    NODE_NAMES,
    TIMES,
    node_record,
    nodes,
    pinned_to,
    pod_record,
    pods,
)

TEMPLATES = Templates(version=(1, 36))


def row_of(built: Object) -> PodRow:
    return make_pod_row(pod_record(built), TEMPLATES)


def time_of(text: str | None) -> float | None:
    return parse_time(text) if text else None


@given(pods())
def test_a_pod_row_has_the_values_of_its_pod(built: Object) -> None:
    record = pod_record(built, 42)
    row = make_pod_row(record, TEMPLATES)
    meta, status = record.metadata, record.status
    assert (row.namespace, row.name, row.uid, row.version) == (meta.namespace, meta.name, meta.uid, 42)
    assert (row.node, row.nominated_node) == (record.spec.node_name, status.nominated_node_name)
    assert row.labels == (meta.labels or {})
    assert row.annotations.items() <= (meta.annotations or {}).items()
    assert row.created == time_of(meta.creation_timestamp)
    assert row.started == time_of(status.start_time)
    assert row.deleted == time_of(meta.deletion_timestamp)
    assert row.phase == status.phase
    assert row.is_finished == (status.phase in ("Succeeded", "Failed"))
    assert row.is_terminating == (meta.deletion_timestamp is not None)
    conditions = {condition.type: condition for condition in status.conditions or ()}
    ready = conditions.get("Ready")
    assert row.is_ready == (ready is not None and ready.status == "True")
    assert row.ready_changed == (time_of(ready.last_transition_time) if ready else None)
    assert row.problems == find_problems(status, conditions)
    assert row.spec.containers == record.spec.containers
    assert row.spec.affinity == record.spec.affinity


def test_a_pod_may_leave_nearly_everything_open() -> None:
    row = make_pod_row(Pod(ObjectMeta("one", "default", "uid", resource_version="1")), TEMPLATES)
    assert (row.phase, row.created, row.started, row.deleted) == ("Pending", 0.0, None, None)
    assert (row.node, row.nominated_node, row.labels, row.annotations) == (None, None, {}, {})
    assert (row.is_ready, row.is_finished, row.is_terminating) == (False, False, False)


def test_a_terminating_pod_row_has_the_grace_period() -> None:
    built = pod("one", deleted=TIMES[1])
    built["metadata"]["deletionGracePeriodSeconds"] = 30
    assert row_of(built).grace == 30


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_is_kept(phase: str) -> None:
    assert row_of(pod("one", phase=phase)).phase == phase


def test_a_phase_that_does_not_exist_is_unknown() -> None:
    assert row_of(pod("one", phase="Dreaming")).phase == "Unknown"


def test_a_pod_row_keeps_the_own_volumes_and_affinity_of_its_pod() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-1"}}]
    built = pod("a", node="n1", owned_by=owner("DaemonSet", "a"), affinity=pinned_to("n1"), volumes=volumes)
    assert row_of(built).spec == pod_record(built).spec


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cpu": "much"}, "spec.containers[0].resources.requests.cpu"),
        ({"overhead": {"memory": "1Q"}}, "spec.overhead.memory"),
        ({"created": "yesterday"}, "metadata.creationTimestamp"),
        ({"deleted": "soon"}, "metadata.deletionTimestamp"),
        ({"status": {"startTime": "now"}}, "status.startTime"),
        (
            {"status": {"conditions": [{"type": "Ready", "lastTransitionTime": "2026"}]}},
            "status.conditions[0].lastTransitionTime",
        ),
        (
            {"status": {"containerStatuses": [{"lastState": {"terminated": {"finishedAt": "x"}}}]}},
            "status.containerStatuses[0].lastState.terminated.finishedAt",
        ),
        ({"priority": 2**31}, "spec.priority"),
    ],
)
def test_an_unreadable_pod_field_is_named_in_the_error(fields: Any, field: str) -> None:
    with pytest.raises(ObjectError) as caught:
        row_of(pod("one", **fields))
    assert (caught.value.kind, caught.value.name, caught.value.field) == ("Pod", "default/one", field)


@given(nodes())
def test_a_node_row_keeps_the_fields_that_the_scheduler_reads(built: Object) -> None:
    record = node_record(built)
    kept = make_node_row(record).record
    assert (kept.metadata, kept.spec) == (replace(record.metadata, annotations=None), record.spec)
    assert kept.status.allocatable == record.status.allocatable
    assert kept.status.images == (record.status.images or None)


def test_a_node_offers_its_allocatable() -> None:
    row = make_node_row(node_record(node("n1", cpu="1500m", memory="1Ki", pods=7, extended={"a.com/b": "3"})))
    assert (row.main, row.extended) == (pack(1500, 1024, 100 * 2**30, 7), {"a.com/b": 3})


def test_a_node_without_a_status_offers_nothing() -> None:
    assert make_node_row(Node(ObjectMeta("n1"))).main == pack(0, 0, 0, 0)


def test_unreadable_allocatable_of_a_node_is_named_in_the_error() -> None:
    with pytest.raises(ObjectError, match=r"^Node n1: status.allocatable.memory: .*invalid quantity 'lots'"):
        make_node_row(node_record(node("n1", memory="lots")))


def test_nodes_have_their_images_in_common() -> None:
    one, other = (
        make_node_row(node_record(node(name, images={"registry.example.com/app:1": 1000}))).record
        for name in NODE_NAMES[:2]
    )
    assert one.status.images
    assert other.status.images
    assert one.status.images[0] is other.status.images[0]


def test_messages_of_a_node_are_not_kept() -> None:
    built = node("n1")
    built["status"]["conditions"][0]["message"] = "kubelet is posting ready status"
    conditions = make_node_row(node_record(built)).record.status.conditions
    assert conditions
    assert (conditions[0].reason, conditions[0].message) == ("KwokReady", None)


def test_the_notes_on_a_node_are_kept() -> None:
    notes = {"scheduler.alpha.kubernetes.io/preferAvoidPods": "{}", "node.alpha.kubernetes.io/ttl": "0"}
    kept = make_node_row(node_record(node("n1", annotations=notes))).record.metadata.annotations
    assert kept == {"scheduler.alpha.kubernetes.io/preferAvoidPods": "{}"}


def test_an_object_without_annotations_stays_the_same_object() -> None:
    record = as_record(Pod, {"metadata": {"name": "one"}})
    assert trim(record) is record
