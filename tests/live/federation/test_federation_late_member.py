"""A member named before it can be reached gets its replicas as soon as it has reported its APIs."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from federation.scheduling.unreported_clusters import UNREPORTED_CLUSTERS
from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy, weighted
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, SECRETS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]
WITHIN = 120


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place() -> AsyncIterator[Place]:
    async with federated("federation-late") as place:
        yield place


def shares(found: Any) -> dict[str, int]:
    clusters = (found or {}).get("spec", {}).get("clusters", ())
    return {each["name"]: each["replicas"] for each in clusters}


async def test_a_divided_workload_is_divided_again_when_a_late_member_speaks(
    place: Place, tmp_path: Path
) -> None:
    hub = place.hub
    secret = await hub.get(f"{SECRETS}/member2")
    await hub.delete(f"{SECRETS}/member2")
    await place.start(tmp_path)
    await eventually(
        hub, f"{CLUSTERS}/member1", lambda one: one.get("status", {}).get("apiEnablements"), within=WITHIN
    )
    await hub.create(DEPLOYMENTS, deployment("web", 4))
    await hub.create(POLICIES, policy("web", replicaScheduling=weighted(member1=1, member2=1)))
    path = f"{BINDINGS}/web-deployment"
    alone = await eventually(hub, path, lambda one: shares(one) == {"member1": 4}, within=WITHIN)
    assert alone["metadata"]["annotations"][UNREPORTED_CLUSTERS] == "member2"

    marks = secret["metadata"]["annotations"]  # they say to which Cluster it belongs
    kept = {"metadata": {"name": "member2", "annotations": marks}, "data": secret["data"]}
    await hub.create(SECRETS, kept)
    both = await eventually(hub, path, lambda one: shares(one) == {"member1": 2, "member2": 2}, within=WITHIN)
    assert UNREPORTED_CLUSTERS not in both["metadata"]["annotations"]
    old = both["spec"]["handover"]["clusters"]
    assert old == [{"name": "member1", "replicas": 4}]
    await eventually(
        place.members["member2"],
        f"{DEPLOYMENTS}/web",
        lambda one: one and one["spec"]["replicas"] == 2,
        within=WITHIN,
    )
    assert (await place.members["member1"].get(f"{DEPLOYMENTS}/web"))["spec"]["replicas"] == 4
