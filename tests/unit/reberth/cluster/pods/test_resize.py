import pytest

from reberth.cluster.pods.resize import keep_differing
from tests.support.builders import Object, pod
from tests.support.cluster.strategies import pod_record

ASKED = {"cpu": "1", "memory": "1Gi"}
MORE = {"cpu": "2", "memory": "1Gi"}


def keep(status: Object, **spec: Object) -> Object:
    record = pod_record(pod("web", cpu="1", memory="1Gi", status={"qosClass": "Burstable", **status}, **spec))
    kept = keep_differing(record)
    assert kept.qos_class == "Burstable"
    return {
        name: value
        for name in kept.__struct_fields__
        if (value := getattr(kept, name)) and name != "qos_class"
    }


def running(**fields: Object) -> Object:
    return {"containerStatuses": [{"name": "main", "ready": True, "restartCount": 3, **fields}]}


@pytest.mark.parametrize(
    "status",
    [
        {},
        running(),
        running(resources={"requests": ASKED, "limits": MORE}),
        running(resources={"requests": ASKED}, allocatedResources=ASKED),
        running(allocatedResources=ASKED),
        {"conditions": [{"type": "Ready", "status": "True"}]},
    ],
)
def test_a_status_that_repeats_the_spec_leaves_nothing(status: Object) -> None:
    assert keep(status) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": {"requests": MORE}},
        {"resources": {}},
        {"resources": {"requests": ASKED}, "allocatedResources": MORE},
        {"allocatedResources": MORE},
    ],
)
def test_resources_in_the_status_that_differ_from_the_spec_are_kept(fields: Object) -> None:
    (kept,) = keep(running(**fields))["container_statuses"]
    assert kept.name == "main"
    assert (kept.ready, kept.restart_count) == (False, 0)
    assert (kept.allocated_resources or {}) == fields.get("allocatedResources", {})


def test_while_a_resize_waits_everything_counts() -> None:
    waiting = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "no room"}
    kept = keep({"conditions": [waiting], **running(resources={"requests": ASKED})})
    (condition,) = kept["conditions"]
    assert (condition.type, condition.reason) == ("PodResizePending", "Infeasible")
    assert len(kept["container_statuses"]) == 1


TWICE = {"cpu": "2", "memory": "2Gi"}
SIDE = {"name": "side", "resources": {"requests": ASKED}}


@pytest.mark.parametrize(
    ("reported", "spec"),
    [
        (ASKED, {}),
        ({"cpu": "790m", "memory": "1Gi"}, {}),  # a reading of the cgroup loses some
        ({"cpu": "1000m", "memory": "1024Mi"}, {}),
        (TWICE, {"containers": [{"name": "main", "resources": {"requests": ASKED}}, SIDE]}),
        (ASKED, {"initContainers": [{"name": "init", "resources": {"requests": {"cpu": "500m"}}}]}),
        (TWICE, {"initContainers": [{**SIDE, "restartPolicy": "Always"}]}),
    ],
)
def test_the_sum_that_a_kubelet_reports_for_every_pod_adds_nothing(reported: Object, spec: Object) -> None:
    whole = {"resources": {"requests": reported, "limits": TWICE}, "allocatedResources": reported}
    assert keep({**running(resources={"requests": ASKED}, allocatedResources=ASKED), **whole}, **spec) == {}


@pytest.mark.parametrize(
    "whole",
    [
        {"resources": {"requests": MORE}, "allocatedResources": ASKED},
        {"resources": {"requests": ASKED}, "allocatedResources": MORE},
        {"resources": {"requests": {"example.com/toy": "0"}}},
        {"resources": {"requests": {"cpu": "many"}}},
    ],
)
def test_a_sum_that_is_more_than_the_containers_request_is_kept(whole: Object) -> None:
    assert set(keep(whole)) >= {"resources"}


def test_pod_level_resources_are_compared_too() -> None:
    whole = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}
    assert keep(whole, resources={"requests": {"cpu": "1"}}) == {}
    assert set(keep(whole, resources={"requests": {"cpu": "2"}})) == {"resources", "allocated_resources"}


def test_init_containers_are_compared_too() -> None:
    init = [{"name": "init", "resources": {"requests": {"cpu": "1"}}}]
    status = {"initContainerStatuses": [{"name": "init", "resources": {"requests": {"cpu": "3"}}}]}
    assert set(keep(status, initContainers=init)) == {"init_container_statuses"}


def test_a_container_that_the_spec_does_not_know_differs() -> None:
    assert keep({"containerStatuses": [{"name": "other", "resources": {"requests": ASKED}}]})
