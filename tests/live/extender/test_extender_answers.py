"""The extender's responses decide where a real kube-scheduler places pods."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client, Object, all_of
from localcluster.components import SCHEDULER
from localcluster.state_dir import running
from tests.live.support.extender_process import Extending, extending
from tests.live.support.written_memory import (
    DEPLOYMENTS,
    HISTORIES,
    PODS,
    SCORES,
    note,
    open_move,
    score,
    sign,
)
from tests.support.builders import deployment, pdb, pod
from tests.support.extender.calls import captured

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

NODES = [f"node-{number:05d}" for number in range(12)]
BEST = NODES[0]
LIKES_BEST = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "preference": {
                    "matchExpressions": [
                        {"key": "kubernetes.io/hostname", "operator": "In", "values": [BEST]}
                    ]
                },
            }
        ]
    }
}
SETTINGS: Object = {
    "scores": {"scores": [{"source": "load", "name": "cpu", "weight": 3, "least": -10, "most": 10}]},
    "preempt": {"budgets": "strict"},
}
ROUNDS = pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.soak)])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def extender() -> AsyncIterator[Extending]:
    """An extender behind a scheduler, and nodes that are all alike."""
    async with (
        running(nodes=len(NODES)) as cluster,
        extending(cluster, settings=SETTINGS) as extender,
    ):
        await extender.schedule()
        yield extender


@pytest_asyncio.fixture(loop_scope="module")
async def client(extender: Extending) -> AsyncIterator[Client]:
    """Leaves nothing behind that would speak in the next test."""
    async with extender.cluster.client() as client:
        yield client
        for path in (DEPLOYMENTS, PODS, "/apis/policy/v1/namespaces/default/poddisruptionbudgets"):
            await client.delete(path)
        await client.delete(HISTORIES)
        await client.delete(SCORES)
        await client.wait(PODS, lambda found: not found["items"])
        annotation = {"scheduler.alpha.kubernetes.io/preferAvoidPods": None}
        await all_of(
            client.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotation}}) for node in NODES
        )


async def deployed(client: Client, name: str, replicas: int = 1, **fields: Any) -> list[Object]:
    await client.create(DEPLOYMENTS, deployment(name, replicas=replicas, **fields))
    return await placed(client, name, replicas)


async def placed(client: Client, name: str, count: int, *, besides: str = "") -> list[Object]:
    """Wait until so many pods have a node; one that was there before does not count."""

    def right(found: Any) -> list[Object]:
        return [
            item
            for item in found["items"]
            if item["spec"].get("nodeName")
            and item["metadata"]["uid"] != besides
            and "deletionTimestamp" not in item["metadata"]
        ]

    path = f"{PODS}?labelSelector=app%3D{name}"
    return right(await client.wait(path, lambda found: len(right(found)) == count, every=0.02))


async def replace(client: Client, name: str, old: Object) -> Object:
    """Throw a pod out; gives the one that comes for it."""
    await client.delete(f"{PODS}/{old['metadata']['name']}")
    (new,) = await placed(client, name, 1, besides=old["metadata"]["uid"])
    return new


async def known(extender: Extending, name: str) -> None:
    """Wait until the extender has the pod in its mirror."""
    async with asyncio.timeout(10):
        while (await extender.ask(f"/explain?pod=default/{name}"))[0] == 404:
            await asyncio.sleep(0.02)


def node_of(item: Object) -> str:
    return str(item["spec"]["nodeName"])


@pytest.mark.parametrize(
    ("path", "name", "status"),
    [
        ("/avoid/filter", "filter-cache", 200),
        ("/avoid/prioritize", "prioritize-cache", 200),
        ("/scores/prioritize", "prioritize-cache", 200),
        ("/avoid/preempt", "preempt-cache", 200),
        ("/avoid/filter", "filter-nocache", 400),
        ("/avoid/prioritize", "prioritize-nocache", 400),
        ("/avoid/preempt", "preempt-nocache", 400),
        ("/avoid/bind", "bind", 404),
    ],
)
async def test_recorded_scheduler_requests_get_their_status(
    extender: Extending, path: str, name: str, status: int
) -> None:
    body = captured(name)
    found, text = await extender.ask(path, method="POST", data=body)
    assert found == status
    if status == 200:
        json.loads(text)


@ROUNDS
async def test_a_pod_is_drawn_to_the_first_destination_that_it_fits(
    extender: Extending, client: Client, rounds: int
) -> None:
    (old,) = await deployed(client, "drawn", cpu="3", affinity=LIKES_BEST)
    assert node_of(old) == BEST
    who = await sign(client, "drawn")
    await client.create(PODS, pod("filler", cpu="7", nodeName=NODES[3]))
    before = await extender.said("reberth_extender_nodes_total", said="drawn")
    for number in range(rounds):
        first, second = (NODES[5], NODES[7]) if number % 2 else (NODES[3], NODES[9])  # the first one is full
        await extender.sees("evictionhistories", await open_move(client, who, old, [first, second]))
        old = await replace(client, "drawn", old)
        assert node_of(old) == (first if number % 2 else second)
    assert await extender.said("reberth_extender_nodes_total", said="drawn") == before + rounds


async def test_a_scale_up_beside_an_open_move_has_one_pod_drawn(extender: Extending, client: Client) -> None:
    (old,) = await deployed(client, "grown", affinity=LIKES_BEST, cpu="1m")
    who = await sign(client, "grown")
    await extender.sees("evictionhistories", await open_move(client, who, old, [NODES[6]]))
    before = await extender.said("reberth_extender_nodes_total", said="drawn")
    extender.cluster.freeze(SCHEDULER)  # who is drawn is told by all the replicas: they are to be seen first
    try:
        await client.patch(f"{DEPLOYMENTS}/grown", {"spec": {"replicas": 101}})
        grown = await client.wait(
            f"{PODS}?labelSelector=app%3Dgrown", lambda found: len(found["items"]) == 101
        )
        for item in grown["items"]:
            await known(extender, item["metadata"]["name"])
    finally:
        extender.cluster.thaw(SCHEDULER)
    assert NODES[6] in map(node_of, await placed(client, "grown", 101))
    assert await extender.said("reberth_extender_nodes_total", said="drawn") == before + 1


@ROUNDS
async def test_a_noted_node_is_left_alone_until_the_note_ends(
    extender: Extending, client: Client, rounds: int
) -> None:
    (old,) = await deployed(client, "noted", affinity=LIKES_BEST)
    who = await sign(client, "noted")
    old = await replace(client, "noted", old)
    assert node_of(old) == BEST  # without a note it returns
    (node,) = await note(client, who, [BEST], life=3600.0)
    await extender.sees("nodes", node)
    for _ in range(rounds):
        old = await replace(client, "noted", old)
        assert node_of(old) != BEST
    await extender.sees("nodes", (await note(client, who, [BEST]))[0])
    assert node_of(await replace(client, "noted", old)) == BEST


async def test_a_note_ends_at_its_instant(extender: Extending, client: Client) -> None:
    (old,) = await deployed(client, "ended", affinity=LIKES_BEST)
    who = await sign(client, "ended")
    await extender.sees("nodes", (await note(client, who, [BEST], life=2.0))[0])
    old = await replace(client, "ended", old)
    assert node_of(old) != BEST
    await asyncio.sleep(2.0)
    assert node_of(await replace(client, "ended", old)) == BEST


async def test_a_rollout_is_free_of_a_template_s_note_and_not_of_a_service_s(
    extender: Extending, client: Client
) -> None:
    await deployed(client, "rolled", affinity=LIKES_BEST)
    who = await sign(client, "rolled")
    for for_service, round_name in ((False, "one"), (True, "two")):
        (node,) = await note(client, who, [BEST], life=3600.0, for_service=for_service)
        await extender.sees("nodes", node)
        (old,) = await placed(client, "rolled", 1)
        again = {"spec": {"template": {"metadata": {"annotations": {"round": round_name}}}}}
        await client.patch(f"{DEPLOYMENTS}/rolled", again)
        (new,) = await placed(client, "rolled", 1, besides=old["metadata"]["uid"])
        assert (node_of(new) == BEST) is not for_service


async def test_a_pod_is_placed_even_if_every_node_is_avoided(extender: Extending, client: Client) -> None:
    (old,) = await deployed(client, "anywhere")
    for node in await note(client, await sign(client, "anywhere"), NODES, life=3600.0):
        await extender.sees("nodes", node)
    assert node_of(await replace(client, "anywhere", old)) in NODES


async def test_strict_notes_on_every_node_keep_the_pod_waiting_quietly(
    extender: Extending, client: Client
) -> None:
    (old,) = await deployed(client, "kept-off")
    who = await sign(client, "kept-off")
    freed, *others = NODES
    ends = time.time() + 25
    noted = await note(client, who, [freed], life=25.0, strict=True)
    for node in [*noted, *await note(client, who, others, life=3600.0, strict=True)]:
        await extender.sees("nodes", node)
    before = await extender.said("reberth_extender_requests_total", verb="filter")
    await client.delete(f"{PODS}/{old['metadata']['name']}")
    await asyncio.sleep(10)
    assert 1 <= await extender.said("reberth_extender_requests_total", verb="filter") - before <= 5
    waiting = [
        item
        for item in (await client.get(f"{PODS}?labelSelector=app%3Dkept-off"))["items"]
        if "deletionTimestamp" not in item["metadata"]
    ]
    (said,) = [one for one in waiting[0]["status"]["conditions"] if one["type"] == "PodScheduled"]
    assert said["reason"] == "Unschedulable"
    assert f"{len(NODES)} reberth keeps this workload off the node" in said["message"]
    await asyncio.sleep(ends - time.time())
    await note(client, who, [freed])  # as the leader does with a note whose time is over
    (new,) = await placed(client, "kept-off", 1)
    assert (node_of(new), time.time() - ends < 15) == (freed, True)


async def test_scores_are_followed_at_once(extender: Extending, client: Client) -> None:
    async def where(weight: int) -> str:
        name = f"scored-{time.monotonic_ns()}"
        chosen = {"reberth.dev/score-weights": f"load/cpu={weight}"}
        (one,) = await deployed(client, name, annotations=chosen, cpu="1m")
        await client.delete(f"{DEPLOYMENTS}/{name}")
        await client.wait(PODS, lambda found: not found["items"], every=0.02)
        return node_of(one)

    async def told(count: int) -> None:
        async with asyncio.timeout(5):
            while await extender.said("reberth_extender_scores", state="valid") != count:
                await asyncio.sleep(0.01)

    await score(client, NODES[8], 100)
    await score(client, NODES[2], -100)
    await told(2)
    assert [await where(weight) for weight in (3, -3)] == [NODES[8], NODES[2]]
    assert len({await where(0) for _ in range(5)}) > 1
    await score(client, NODES[8], 100, life=1.5)
    await told(2)
    assert await where(3) == NODES[8]
    await told(1)  # nothing has happened but time
    assert len({await where(3) for _ in range(5)}) > 1
    await score(client, NODES[10], 100, source="other")
    await score(client, NODES[10], 90)
    await told(3)  # one of a source that does not count
    assert await where(3) == NODES[10]
    await score(client, NODES[10], None)
    await told(2)
    assert len({await where(3) for _ in range(5)} - {NODES[10]}) > 1


async def test_a_refused_candidate_is_not_preempted(extender: Extending, client: Client) -> None:
    await client.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "high"}, "value": 1000},
    )
    await client.create_all(
        PODS, [pod(f"low-{number}", cpu="6", nodeName=name) for number, name in enumerate(NODES)]
    )
    for number in range(len(NODES)):  # all but one are guarded
        guarded = {"metadata": {"labels": {"app": "free" if number == 5 else "guarded"}}}
        await client.patch(f"{PODS}/low-{number}", guarded)
    await client.create(
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets", pdb("guarded", min_available=11)
    )
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/guarded"
    await client.wait(path, lambda found: found["status"].get("currentHealthy") == 11)
    before = {item["metadata"]["name"] for item in (await client.get(PODS))["items"]}
    await client.create(PODS, pod("high-0", cpu="6", priorityClassName="high"))
    found = await client.wait(f"{PODS}/high-0", lambda item: item["spec"].get("nodeName"))
    assert node_of(found) == NODES[5]
    left = {item["metadata"]["name"] for item in (await client.get(PODS))["items"]}
    assert before - left == {"low-5"}
    await client.create(PODS, pod("high-1", cpu="6", priorityClassName="high"))
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    said = await client.wait(
        events, lambda found: [one for one in found["items"] if one["reason"] == "BudgetWouldBreak"]
    )
    (event,) = [one for one in said["items"] if one["reason"] == "BudgetWouldBreak"]
    assert event["regarding"]["name"] == "high-1"
    assert event["note"].startswith(
        "no candidate node is left for the preemption: a PodDisruptionBudget protects"
    )
    assert await extender.said("reberth_extender_preemptions_exhausted_total") >= 1
    assert {item["metadata"]["name"] for item in (await client.get(PODS))["items"]} == left | {"high-1"}


async def test_explain_lists_the_reasons_for_every_node(extender: Extending, client: Client) -> None:
    (old,) = await deployed(client, "asked")
    await extender.sees("nodes", (await note(client, await sign(client, "asked"), [BEST], life=3600.0))[0])
    path = f"/explain?pod=default/{old['metadata']['name']}"
    async with asyncio.timeout(5):
        while (found := await extender.ask(path))[0] == 404:
            await asyncio.sleep(0.02)
    told = json.loads(found[1])
    assert told["known"]["root"]["name"] == "asked"
    first, *others = told["nodes"]
    assert (first["node"], first["avoid"], len(first["reasons"])) == (BEST, 0, 2)
    assert "by policy test: tested" in first["reasons"][0]
    assert [one["avoid"] for one in others] == [10] * 11
    given = await extender.ask("/explain", method="POST", data=json.dumps(old))
    assert json.loads(given[1])["nodes"] == told["nodes"]
