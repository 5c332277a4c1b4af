"""Requests of bound pods during an in-place resize: a table for each rule of kube-scheduler."""

import pytest

from reberth.cluster.pods.requests import Version
from tests.support.cluster.requests import (
    MI,
    VERSIONS,
    Object,
    asking,
    bound,
    container,
    load,
    pending,
    spec,
    state,
)

every_version = pytest.mark.parametrize("version", VERSIONS)


# Containers that are being resized


@every_version
@pytest.mark.parametrize(
    ("actual", "allocated", "cpu"),
    [
        (asking(cpu="1"), "1", 2000),
        (asking(cpu="3"), "1", 3000),
        (asking(cpu="1"), "4", 4000),
        (asking(cpu="2"), "2", 2000),
    ],
)
def test_the_largest_of_asked_actual_and_allocated_counts(
    actual: Object, allocated: str, cpu: int, version: Version
) -> None:
    demand = bound(
        spec(container("c", cpu="2")), version, containerStatuses=[state("c", actual, cpu=allocated)]
    )
    assert demand.amounts == {"cpu": cpu}


@every_version
def test_a_status_may_know_more_resources_than_the_spec(version: Version) -> None:
    statuses = [state("c", asking(memory="1Mi"), cpu="1")]
    demand = bound(spec(container("c")), version, containerStatuses=statuses)
    assert demand.amounts == {"cpu": 1000, "memory": MI}


def test_up_to_1_36_a_status_without_resources_does_not_count() -> None:
    asked, statuses = spec(container("c", cpu="1")), [state("c", None, cpu="2")]
    cpu = [bound(asked, version, containerStatuses=statuses).amounts["cpu"] for version in VERSIONS]
    assert cpu == [1000, 1000, 2000]


def test_up_to_1_36_the_largest_is_taken_per_container_and_from_1_37_of_the_sums() -> None:
    asked = spec(container("a", cpu="1"), container("b", cpu="2"))
    statuses = [state("a", asking(cpu="2"), cpu="2"), state("b", asking(cpu="1"), cpu="1")]
    cpu = [bound(asked, version, containerStatuses=statuses).amounts["cpu"] for version in VERSIONS]
    assert cpu == [4000, 4000, 3000]


def test_from_1_37_a_missing_actual_falls_back_to_allocated_and_that_to_the_spec() -> None:
    asked = spec(*(container(name, cpu="1") for name in "abc"))
    statuses = [state("a", {}, cpu="2"), state("b", asking(cpu="4")), state("c")]
    # actual 2 + 4 + 1, allocated 2 + 1 + 1, asked 1 + 1 + 1
    assert bound(asked, (1, 37), containerStatuses=statuses).amounts == {"cpu": 7000}


@every_version
def test_sidecars_are_resized_like_containers(version: Version) -> None:
    asked = spec(container("c", cpu="1"), init=(container("s", stays=True, cpu="1"),))
    demand = bound(asked, version, initContainerStatuses=[state("s", asking(cpu="5"), cpu="5")])
    assert demand.amounts == {"cpu": 6000}


def test_ordinary_init_containers_are_resized_only_from_1_37_on() -> None:
    asked = spec(container("c", cpu="1"), init=(container("i", cpu="2"),))
    statuses = [state("i", asking(cpu="5"), cpu="5")]
    cpu = [bound(asked, version, initContainerStatuses=statuses).amounts["cpu"] for version in VERSIONS]
    assert cpu == [2000, 2000, 5000]


@every_version
@pytest.mark.parametrize(
    ("conditions", "cpu"),
    [
        ([], 3000),
        ([pending("Deferred")], 3000),
        ([pending("Infeasible")], 1000),
        ([pending("Infeasible", status="False")], 1000),
        ([pending("Deferred"), pending("Infeasible")], 3000),
        ([{"type": "Ready", "reason": "Infeasible"}], 3000),
        ([{"type": "Ready"}, pending("Infeasible"), pending("Deferred")], 1000),
    ],
)
def test_an_infeasible_resize_does_not_count_its_desired_requests(
    conditions: list[Object], cpu: int, version: Version
) -> None:
    statuses = [state("c", asking(cpu="1"), cpu="500m")]
    demand = bound(spec(container("c", cpu="3")), version, conditions=conditions, containerStatuses=statuses)
    assert demand.amounts == {"cpu": cpu}


def test_from_1_37_an_infeasible_container_without_status_counts_nothing() -> None:
    asked = spec(container("c", cpu="3"))
    cpu = [dict(bound(asked, version, conditions=[pending("Infeasible")]).amounts) for version in VERSIONS]
    assert cpu == [{"cpu": 3000}, {"cpu": 3000}, {}]


def test_from_1_37_a_resource_missing_in_one_report_gets_the_assumed_load() -> None:
    statuses = [state("c", asking(cpu="3", memory="5Mi"), cpu="1")]
    asked = spec(container("c", cpu="2", memory="1Mi"))
    memory = [bound(asked, version, containerStatuses=statuses).load_memory for version in VERSIONS]
    assert memory == [5 * MI, 5 * MI, 200 * MI]


@every_version
def test_the_load_of_a_resized_pod_counts_its_resizing(version: Version) -> None:
    statuses = [state("c", asking(cpu="3", memory="5Mi"), cpu="1", memory="1Mi")]
    demand = bound(spec(container("c", cpu="2", memory="1Mi")), version, containerStatuses=statuses)
    assert load(demand) == (3000, 5 * MI)


# Requests of the pod as a whole


@pytest.mark.parametrize(("version", "cpu"), list(zip(VERSIONS, [1000, 3000, 3000], strict=True)))
def test_resizing_of_the_whole_counts_from_1_36_on(version: Version, cpu: int) -> None:
    asked = spec(container("c"), resources=asking(cpu="1"))
    demand = bound(asked, version, resources=asking(cpu="2"), allocatedResources={"cpu": "3"})
    assert demand.amounts == {"cpu": cpu}


@every_version
def test_an_allocation_of_the_whole_alone_does_not_count(version: Version) -> None:
    asked = spec(container("c"), resources=asking(cpu="1"))
    assert bound(asked, version, allocatedResources={"cpu": "3"}).amounts == {"cpu": 1000}


@pytest.mark.parametrize(
    ("version", "amounts"),
    [
        ((1, 35), {"cpu": 5000, "memory": MI}),
        ((1, 36), {"cpu": 2000, "memory": 0}),
        ((1, 37), {"cpu": 2000}),
    ],
)
def test_an_infeasible_pod_level_resize_counts_the_reported_requests(
    version: Version, amounts: dict[str, int]
) -> None:
    asked = spec(container("c"), resources=asking(cpu="5", memory="1Mi"))
    demand = bound(asked, version, conditions=[pending("Infeasible")], resources=asking(cpu="2"))
    assert demand.amounts == amounts


@pytest.mark.parametrize(("version", "memory"), list(zip(VERSIONS, [MI, MI, 3 * MI], strict=True)))
def test_from_1_37_the_node_may_report_more_resources_of_the_whole(version: Version, memory: int) -> None:
    asked = spec(container("c", memory="1Mi"), resources=asking(cpu="5"))
    demand = bound(asked, version, resources=asking(cpu="5", memory="3Mi", ephemeral_storage="1k"))
    assert demand.amounts == {"cpu": 5000, "memory": memory}


@pytest.mark.parametrize(("version", "cpu"), list(zip(VERSIONS, [8000, 8000, 3000], strict=True)))
def test_from_1_37_complete_sums_of_the_node_replace_the_containers_statuses(
    version: Version, cpu: int
) -> None:
    demand = bound(
        spec(container("c", cpu="1")),
        version,
        containerStatuses=[state("c", asking(cpu="8"), cpu="8")],
        resources=asking(cpu="2"),
        allocatedResources={"cpu": "3"},
    )
    assert demand.amounts == {"cpu": cpu}


@pytest.mark.parametrize("reported", [{"resources": asking(cpu="2")}, {"allocatedResources": {"cpu": "2"}}])
def test_from_1_37_half_of_the_nodes_sums_replaces_nothing(reported: Object) -> None:
    statuses = [state("c", asking(cpu="8"), cpu="8")]
    demand = bound(spec(container("c", cpu="1")), (1, 37), containerStatuses=statuses, **reported)
    assert demand.amounts == {"cpu": 8000}
