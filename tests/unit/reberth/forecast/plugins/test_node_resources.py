"""NodeResourcesFit and NodeResourcesBalancedAllocation: requests, free resources, scores."""

from typing import Any

import pytest

from reberth.cluster.pods.requests import Version
from reberth.forecast.plugins.node_resources import (
    filter_node_resources_fit,
    score_balanced_allocation,
    score_node_resources_fit,
)
from reberth.forecast.state.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from tests.support.builders import container, node, pod
from tests.support.forecast.worlds import asking, everywhere, next_of, place_of, refused, world

LEAST = NodeResourcesFitArgs()
MOST = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type="MostAllocated"))
EVEN = NodeResourcesBalancedAllocationArgs()


def small(name: str, **fields: Any) -> dict[str, Any]:
    return node(name, cpu="4", memory="8Gi", **fields)


def of_requests(**requests: str) -> dict[str, Any]:
    return pod("asking", containers=[{"name": "main", "image": "img", "resources": {"requests": requests}}])


GOLDEN = [
    ({}, {"cpu": "10m", "memory": "10Mi"}, 99, 99, 74),
    ({"cpu": "1500m", "memory": "2Gi"}, {"cpu": "500m", "memory": "1Gi"}, 56, 93, 75),
    ({"cpu": "1", "memory": "6Gi"}, {"cpu": "1", "memory": "256Mi"}, 35, 85, 80),
    ({"cpu": "3800m", "memory": "7Gi"}, {}, 6, None, None),
]


@pytest.mark.parametrize(("used", "asked", "fit", "before", "since"), GOLDEN)
def test_scores_are_those_that_a_real_scheduler_gave(
    used: dict[str, str], asked: dict[str, str], fit: int, before: int | None, since: int | None
) -> None:
    old = [pod("old", node="a", **used)] if used else []
    for version, balance in (((1, 35), before), ((1, 36), since)):
        assert scores_of(small("a"), *old, of_requests(**asked), version=version) == (fit, balance)


@pytest.mark.parametrize(("version", "balance"), [((1, 35), 93), ((1, 36), 71)])
def test_pods_without_requests_weigh_something_and_request_nothing(version: Version, balance: int) -> None:
    idle = [pod(f"old-{number}", node="a") for number in range(3)]
    assert scores_of(small("a"), *idle, of_requests(cpu="500m"), version=version) == (85, balance)


def scores_of(*objects: dict[str, Any], version: Version) -> tuple[int, int | None]:
    view = world(*objects, version=version)
    fit = score_node_resources_fit(asking(view), view, everywhere(view), LEAST)
    even = score_balanced_allocation(asking(view), view, everywhere(view), EVEN)
    return int(fit[0]), None if even is None else int(even[0])


def test_a_node_has_a_reason_for_each_resource_that_it_lacks() -> None:
    view = world(
        node("a", cpu="1", memory="1Gi", pods=1, extended={"example.com/gpu": "1"}),
        node("b", extended={"example.com/gpu": "2"}),
        pod("old", node="a", cpu="600m"),
        of_requests(**{"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "200Gi", "example.com/gpu": "2"}),
    )
    storage = "Insufficient ephemeral-storage"
    assert refused(view, filter_node_resources_fit(asking(view), view, LEAST)) == {
        "a": [
            "Too many pods",
            "Insufficient cpu",
            "Insufficient memory",
            storage,
            "Insufficient example.com/gpu",
        ],
        "b": [storage],
    }


def test_a_pod_without_requests_needs_only_a_pod_slot() -> None:
    view = world(node("a", cpu="0", memory="0", pods=1), node("b", pods=0), pod("asking"))
    assert refused(view, filter_node_resources_fit(asking(view), view, LEAST)) == {"b": ["Too many pods"]}


@pytest.mark.parametrize(
    "arguments",
    [
        NodeResourcesFitArgs(ignored_resources=("example.com/gpu",)),
        NodeResourcesFitArgs(ignored_resource_groups=("example.com",)),
    ],
)
def test_an_extended_resource_can_be_ignored(arguments: NodeResourcesFitArgs) -> None:
    view = world(node("a"), of_requests(**{"example.com/gpu": "2"}))
    assert refused(view, filter_node_resources_fit(asking(view), view, LEAST)) == {
        "a": ["Insufficient example.com/gpu"]
    }
    assert filter_node_resources_fit(asking(view), view, arguments) == ()


def test_native_resources_cannot_be_ignored() -> None:
    arguments = NodeResourcesFitArgs(ignored_resources=("hugepages-2Mi", "kubernetes.io/x"))
    view = world(node("a"), of_requests(**{"hugepages-2Mi": "2Mi", "kubernetes.io/x": "1"}))
    lacking = ["Insufficient hugepages-2Mi", "Insufficient kubernetes.io/x"]
    assert refused(view, filter_node_resources_fit(asking(view), view, arguments)) == {"a": lacking}


def test_most_allocated_prefers_the_fuller_node() -> None:
    view = world(
        small("a"),
        small("b"),
        pod("old", node="a", cpu="2", memory="4Gi"),
        of_requests(cpu="1", memory="1Gi"),
    )
    assert score_node_resources_fit(asking(view), view, everywhere(view), MOST).tolist() == [68, 18]


def test_a_ratio_shape_skips_resources_that_a_node_does_not_offer() -> None:
    shape = RequestedToCapacityRatioParam(
        (UtilizationShapePoint(0, 0), UtilizationShapePoint(50, 10), UtilizationShapePoint(100, 2))
    )
    strategy = ScoringStrategy(
        type="RequestedToCapacityRatio",
        resources=(ResourceSpec("cpu", 3), ResourceSpec("memory"), ResourceSpec("example.com/gpu")),
        requested_to_capacity_ratio=shape,
    )
    view = world(
        small("a", extended={"example.com/gpu": "4"}),
        small("b"),
        of_requests(**{"cpu": "1", "memory": "6Gi", "example.com/gpu": "1"}),
    )
    scores = score_node_resources_fit(
        asking(view), view, everywhere(view), NodeResourcesFitArgs(scoring_strategy=strategy)
    )
    assert scores.tolist() == [52, 53]  # (3 x 50 + 60 + 50) / 5; (3 x 50 + 60) / 4, rounded half up


def test_an_extended_resource_counts_only_for_pods_that_request_it() -> None:
    strategy = ScoringStrategy(resources=(ResourceSpec("cpu"), ResourceSpec("example.com/gpu")))
    offering = small("a", extended={"example.com/gpu": "4"})
    view = world(offering, small("b"), of_requests(cpu="1"))
    fit = NodeResourcesFitArgs(scoring_strategy=strategy)
    assert score_node_resources_fit(asking(view), view, everywhere(view), fit).tolist() == [75, 75]
    view = world(offering, small("b"), of_requests(**{"cpu": "1", "example.com/gpu": "1"}))
    assert score_node_resources_fit(asking(view), view, everywhere(view), fit).tolist() == [75, 75]


def test_evenness_over_three_resources_takes_the_deviation() -> None:
    three = NodeResourcesBalancedAllocationArgs(
        resources=tuple(map(ResourceSpec, ("cpu", "memory", "ephemeral-storage")))
    )
    view = world(small("a"), of_requests(cpu="1", memory="4Gi"), version=(1, 35))
    found = score_balanced_allocation(asking(view), view, everywhere(view), three)
    assert found is not None
    assert found.tolist() == [79]  # parts 0.25, 0.5 and 0


def test_least_allocated_ignores_pod_level_requests() -> None:
    whole = pod("asking", containers=[container()], resources={"requests": {"cpu": "2", "memory": "2Gi"}})
    view = world(small("a"), whole)
    assert score_node_resources_fit(asking(view), view, everywhere(view), LEAST).tolist() == [97]


def test_the_sums_follow_a_planned_move() -> None:
    view = world(small("a"), small("b"), pod("old", node="a", cpu="3"), of_requests(cpu="2"))
    assert list(refused(view, filter_node_resources_fit(asking(view), view, LEAST))) == ["a"]
    moved = view.with_pod_on(place_of(view, "old"), 1)
    assert list(refused(moved, filter_node_resources_fit(asking(moved), moved, LEAST))) == ["b"]
    gone = moved.without(place_of(view, "old"))
    assert filter_node_resources_fit(asking(gone), gone, LEAST) == ()
    assert list(refused(view, filter_node_resources_fit(asking(view), view, LEAST))) == ["a"]


def test_a_replacement_requests_what_the_old_pod_did() -> None:
    view = world(small("a"), pod("old", node="a", cpu="3"))
    assert refused(view, filter_node_resources_fit(next_of(view, "old"), view, LEAST)) == {
        "a": ["Insufficient cpu"]
    }


def test_a_replacement_that_asks_for_what_its_pod_was_never_given_fits_nowhere() -> None:
    """By the node's report of a resize that it cannot carry out, the pod takes less than its spec says."""
    given = {"cpu": "100m"}
    status = {
        "containerStatuses": [
            {"name": "main", "allocatedResources": given, "resources": {"requests": given}}
        ],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    requests = {**given, "example.com/gpu": "1"}
    odd = pod(
        "odd",
        node="a",
        status=status,
        containers=[{"name": "main", "image": "img", "resources": {"requests": requests}}],
    )
    view = world(small("a"), small("b"), odd)
    lacking = ["Insufficient example.com/gpu"]
    found = refused(view, filter_node_resources_fit(next_of(view, "odd"), view, LEAST))
    assert found == {"a": lacking, "b": lacking}
