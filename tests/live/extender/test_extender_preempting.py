"""Preemption with budgets preferred or ignored: the pod gets its node, and metrics count how."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from localcluster.client import Client
from localcluster.state_dir import running
from tests.live.support.extender_process import Extending, extending
from tests.live.support.written_memory import PODS
from tests.support.builders import pdb, pod

pytestmark = [pytest.mark.live, pytest.mark.asyncio]

NODES = [f"node-{number:05d}" for number in range(4)]
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@asynccontextmanager
async def crowded(budgets: str, guarded: int) -> AsyncIterator[tuple[Extending, Client]]:
    """A node has room for one pod; of so many of the nodes' pods a budget lets none go."""
    async with (
        running(nodes=len(NODES)) as cluster,
        extending(cluster, settings={"preempt": {"budgets": budgets}, "deadline": "5s"}) as extender,
        cluster.client() as client,
    ):
        await extender.schedule()
        high = {"metadata": {"name": "high"}, "value": 1000}
        await client.create("/apis/scheduling.k8s.io/v1/priorityclasses", high)
        labels = [{"app": "guarded" if at < guarded else "free"} for at in range(len(NODES))]
        low = [
            pod(f"low-{at}", cpu="6", node=node, labels=labels[at], status={"phase": "Pending"})
            for at, node in enumerate(NODES)
        ]
        await client.create_all(PODS, low)
        await client.create(BUDGETS, pdb("guarded", min_available=guarded))
        await client.wait(f"{BUDGETS}/guarded", lambda it: it["status"].get("currentHealthy") == guarded)
        await extender.ready()
        yield extender, client


async def preempt(client: Client) -> tuple[str, set[str]]:
    """Let an important pod come; gives its node, and who had to go."""
    await client.create(PODS, pod("high-0", cpu="6", priorityClassName="high"))
    placed = await client.wait(f"{PODS}/high-0", lambda it: bool(it["spec"].get("nodeName")))
    left = {item["metadata"]["name"] for item in (await client.get(PODS))["items"]}
    return placed["spec"]["nodeName"], {f"low-{at}" for at in range(len(NODES))} - left


async def counted(extender: Extending) -> dict[str, float]:
    said = extender.said
    return {
        "asked": await said("reberth_extender_requests_total", verb="preempt", result="answered"),
        "refused": await said("reberth_extender_nodes_total", verb="preempt", said="refused"),
        "overruled": await said("reberth_extender_preemptions_overruled_total"),
        "exhausted": await said("reberth_extender_preemptions_exhausted_total"),
    }


@pytest.mark.parametrize(
    ("budgets", "guarded", "refused", "overruled"),
    [("prefer", 4, 0, 1), ("prefer", 3, 3, 0), ("off", 4, 0, 0)],
    ids=["preferred-all-guarded", "preferred-one-free", "off"],
)
async def test_an_important_pod_gets_its_node(
    budgets: str, guarded: int, refused: int, overruled: int
) -> None:
    async with crowded(budgets, guarded) as (extender, client):
        node, gone = await preempt(client)
        assert gone == {f"low-{NODES.index(node)}"}
        assert guarded == len(NODES) or node == NODES[-1]
        expected = {"asked": 1, "refused": refused, "overruled": overruled, "exhausted": 0}
        assert await counted(extender) == expected
