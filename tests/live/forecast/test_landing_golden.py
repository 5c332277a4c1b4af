"""The test harness itself: it reads known decisions from the scheduler, without a forecast."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from localcluster.build.products import kubernetes
from reberth.cluster.pods.requests import read_version
from tests.live.forecast.support.oracle import Oracle, asking
from tests.live.forecast.support.truth import Truth
from tests.support.builders import Object, container, node, pod
from tests.support.forecast.cases.cases import GATE, Case

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

SCORES_IMPROVEMENT = read_version(kubernetes().version) >= (1, 36)
_MEBIBYTE = 1 << 20
_seeds = iter(range(10_000))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def oracle() -> AsyncIterator[Oracle]:
    async with asking("golden") as oracle:
        yield oracle


async def ask(oracle: Oracle, objects: Sequence[Object], probe: Object) -> Truth:
    """What the scheduler says of a pod in a cluster of these objects."""
    probe["spec"]["schedulingGates"] = [{"name": GATE}]
    last = pod("last", node="nobody-knows")
    made = [_stripped(one) for one in (*objects, probe, last)]
    recorded = await oracle.ask(Case(next(_seeds), tuple(made[:-2]), (), (made[-2],), made[-1]))
    return recorded[0].truth


def _stripped(made: Object) -> Object:
    """Without what the API server gives."""
    meta = {key: value for key, value in made["metadata"].items() if key != "uid"}
    return {**made, "metadata": meta}


def small(name: str, **fields: Any) -> Object:
    return node(name, cpu="4000m", memory="8Gi", **fields)


@pytest.mark.parametrize(
    ("used", "asked", "fit", "balance"),
    [
        ([], ("10m", "10Mi"), 99, (74, 99)),
        ([("1500m", "2Gi")], ("500m", "1Gi"), 56, (75, 93)),
        ([(None, None)] * 3, ("500m", None), 85, (71, 93)),
        ([("1000m", "6Gi")], ("1000m", "256Mi"), 35, (80, 85)),
        ([("3800m", "7Gi")], (None, None), 6, (0, 0)),
    ],
)
async def test_room_is_scored_as_known(
    oracle: Oracle, used: list[tuple[str, str]], asked: tuple[str, str], fit: int, balance: tuple[int, int]
) -> None:
    bound = [pod(f"b{at}", node="a", cpu=cpu, memory=memory) for at, (cpu, memory) in enumerate(used)]
    truth = await ask(oracle, [small("a"), small("b"), *bound], pod("p", cpu=asked[0], memory=asked[1]))
    scores = truth.plugins["a"]
    assert truth.feasible == ["a", "b"]
    assert scores["NodeResourcesFit"] == fit
    assert scores.get("NodeResourcesBalancedAllocation", 0) == balance[not SCORES_IMPROVEMENT]


async def test_default_spreading_is_scored_as_known(oracle: Oracle) -> None:
    nodes = [small("a", zone="x"), small("b", zone="x"), small("c", zone="y"), small("d")]
    labels = {"app": "web"}
    bound = [pod(f"b{at}", node=name, labels=labels) for at, name in enumerate("aac")]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    }
    truth = await ask(oracle, [*nodes, *bound, service], pod("p", labels=labels))
    scores = [truth.plugins[name]["PodTopologySpread"] for name in "abcd"]
    assert scores == [30, 92, 92, 200]


async def test_taints_are_scored_as_known(oracle: Oracle) -> None:
    taints = [{"key": key, "effect": "PreferNoSchedule"} for key in "st"]
    nodes = [node(name, taints=taints[:count]) for count, name in enumerate("abc")]
    truth = await ask(oracle, nodes, pod("p"))
    assert [truth.plugins[name]["TaintToleration"] for name in "abc"] == [300, 150, 0]
    assert truth.bound == "a"


async def test_images_are_scored_as_known(oracle: Oracle) -> None:
    images = {"app:1": 400 * _MEBIBYTE}
    nodes = [node(f"n{at}", images=images if at < 3 else {}) for at in range(10)]
    one = pod("p", containers=[container(image="app:1")])
    two = pod("q", containers=[container(image="app:1"), container("side", image="other:1")])
    scores = [(await ask(oracle, nodes, probe)).plugins["n0"]["ImageLocality"] for probe in (one, two)]
    assert scores == [9, 4]


async def test_reasons_are_counted_although_a_node_is_left(oracle: Oracle) -> None:
    nodes = [node("a"), node("b", cpu="1", memory="1Gi"), node("c", unschedulable=True)]
    truth = await ask(oracle, nodes, pod("p", cpu="2", memory="2Gi"))
    assert truth.feasible == ["a"]
    assert truth.bound == "a"
    assert truth.total == {}
    reasons = {"Insufficient cpu": 1, "Insufficient memory": 1, "node(s) were unschedulable": 1}
    assert truth.refusals == reasons


async def test_a_pod_that_fits_nowhere_has_a_message(oracle: Oracle) -> None:
    truth = await ask(oracle, [node("a"), node("b")], pod("p", cpu="200"))
    assert truth.bound is None
    assert truth.feasible == []
    assert truth.message is not None
    assert truth.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert truth.refusals == {"Insufficient cpu": 2}
