"""A member with a real node: what its kubelet does reaches the hub."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from localcluster.components import KWOK
from tests.live.support.hub_and_members import Place, eventually, federated
from tests.live.support.hub_paths import DEPLOYMENTS, POLICIES
from tests.live.support.propagated_objects import on, selecting
from tests.live.support.real_pods import real_deployment

pytestmark = [pytest.mark.live, pytest.mark.real_nodes, pytest.mark.asyncio(loop_scope="module")]

CRASHES = "sleep 1; exit 1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place() -> AsyncIterator[Place]:
    async with federated("real-member", ["member1"], without=[KWOK], real=1) as place:
        yield place


@pytest_asyncio.fixture(loop_scope="module")
async def federation(place: Place, tmp_path: Path) -> AsyncIterator[Place]:
    await place.start(tmp_path)
    yield place
    assert await place.stop() == 0


async def test_a_deployment_runs_on_the_real_node_of_a_member(federation: Place) -> None:
    await propagate(federation, "steady", "sleep 1000")
    await eventually(federation.hub, f"{DEPLOYMENTS}/steady", lambda found: available(found) == 1)
    pods = await federation.members["member1"].get("/api/v1/namespaces/default/pods?labelSelector=app=steady")
    assert [each["spec"]["nodeName"] for each in pods["items"]] == ["real-1"]


async def test_a_pod_that_crashes_is_not_available_for_longer_than_it_runs(federation: Place) -> None:
    await propagate(federation, "crashing", CRASHES)
    path = "/api/v1/namespaces/default/pods?labelSelector=app=crashing"
    await eventually(federation.members["member1"], path, lambda found: restarts(found) >= 2)
    await eventually(federation.hub, f"{DEPLOYMENTS}/crashing", lambda found: available(found) == 0)


async def propagate(federation: Place, name: str, command: str) -> None:
    await federation.hub.create(DEPLOYMENTS, real_deployment(name, command))
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    await federation.hub.create(POLICIES, selecting(name, selector, placement=on("member1")))


def available(found: Any) -> int:
    count: int = found["status"].get("availableReplicas", 0) if found else -1
    return count


def restarts(found: Any) -> int:
    statuses = (each["status"].get("containerStatuses") or () for each in found["items"])
    return sum(status["restartCount"] for each in statuses for status in each)
