"""kwok's faithful lives beside recordings of a real kubelet, field by field.

What is listed here differs for a reason; everything else has to be equal.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK
from localcluster.kwok import PREFIX
from localcluster.nodes import find_again, is_ready, lose
from localcluster.recorder import Recorder, recording
from localcluster.state_dir import running
from tests.live.support.pod_lives import (
    State,
    describe_changes,
    find_differences,
    merge_repeats,
    read_recordings,
)
from tests.live.support.real_pods import PODS, is_gone
from tests.support.builders import pod

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

# Fields that no state compares, since the stages do not write them: nothing of ours reads qosClass from kwok,
# volumeMounts, user, image, or the resources in the status.
ACKNOWLEDGED = "observedGeneration"
"""A kubelet acknowledges a deletion with a write of its own, kwok with its next one: the terminal phase."""
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}
NODE = "node-00000"
QUICK = {"restarts-every": "1s", "runs-for": "300ms"}
PROBE = {"readinessProbe": {"exec": {"command": ["true"]}}}
# A kubelet that is away is noticed within seconds.
NOTICE_SOON = {
    KWOK: ["--node-lease-duration-seconds=16"],
    CONTROLLERS: ["--node-monitor-grace-period=14s", "--node-monitor-period=1s"],
}


async def evict(client: Client, name: str) -> None:
    await client.wait(f"{PODS}/{name}", lambda found: found["status"]["phase"] == "Running")
    await client.create(f"{PODS}/{name}/eviction", {**EVICTION, "metadata": {"name": name}})


async def lose_node_for_a_while(client: Client, name: str) -> None:
    await lose_node(client, name, until=lambda found: not is_ready(found))


async def lose_node_until_deleted(client: Client, name: str) -> None:
    await lose_node(client, name, until=lambda found: "deletionTimestamp" in found["metadata"])


async def lose_node(client: Client, name: str, *, until: Callable[[Any], bool]) -> None:
    await client.wait(f"{PODS}/{name}", is_ready)
    await lose(client, NODE)
    try:
        await client.wait(f"{PODS}/{name}", until, seconds=60)
    finally:
        await find_again(client, NODE)


@dataclass(frozen=True)
class Case:
    life: str
    marks: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    container: dict[str, Any] = field(default_factory=dict)
    happening: Callable[[Client, str], Awaitable[None]] | None = None


INIT = [{"name": "init", "image": "registry.example/init:1"}]
LEAVES_SOON = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    for what in ("unreachable", "not-ready")
]
CASES = {
    "c04-never-ready": Case("faithful-never-ready"),
    "c01-crash-exit1": Case("faithful-crash-loop", QUICK),
    "c01-init-crash": Case("faithful-init-crash-loop", QUICK, {"initContainers": INIT}),
    "c02-v2-oom-main": Case("faithful-oom-killed", QUICK),
    "c03-outofcpu": Case("faithful-rejected"),
    "c04-liveness": Case("faithful-liveness-killed", QUICK),
    "c05-evict-polite": Case("faithful", happening=evict),
    "c05-evict-stubborn": Case("faithful-stubborn", happening=evict),
    "c06-pressure-hog": Case("faithful-evicted"),
    "c09-http-404": Case("faithful-image-pull-error", QUICK, container={"image": "127.0.0.1:5000/none:1"}),
    "c10-node-lost-goes": Case(
        "faithful", spec={"tolerations": LEAVES_SOON}, happening=lose_node_until_deleted
    ),
    "c10-node-lost-stays": Case("faithful", container=PROBE, happening=lose_node_for_a_while),
    "c11-reboot-never": Case("faithful-rebooted", spec={"restartPolicy": "Never"}),
    "c11-reboot-probe": Case("faithful-rebooted", container=PROBE),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    # Where all nodes are lost, the controllers believe that they are cut off themselves, and delete no pod.
    async with running(nodes=2, flags=NOTICE_SOON) as cluster:
        yield cluster


@pytest.mark.parametrize("name", CASES)
async def test_a_faithful_life_is_the_recorded_one(cluster: Cluster, name: str) -> None:
    case, expected = CASES[name], merge_repeats(read_recordings()[name], but_for=ACKNOWLEDGED)
    async with cluster.client() as client, recording(cluster, ["pods"]) as recorder:
        await client.wait(f"/api/v1/nodes/{NODE}", is_usable, seconds=60)
        await play(client, name, case)
        await client.wait(PODS, lambda _: len(played(recorder, name)) >= len(expected))
        found = played(recorder, name)
        if not expected[-1]["deleted"]:
            await client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        await client.wait(PODS, is_gone(name))
    assert {
        number: differences
        for number, (recorded, mine) in enumerate(zip(expected, found, strict=False))
        if (differences := find_differences(recorded, mine))
    } == {}


def played(recorder: Recorder, name: str) -> list[State]:
    return merge_repeats(describe_changes(recorder.states_of(name)), but_for=ACKNOWLEDGED)


def is_usable(node: Any) -> bool:
    return is_ready(node) and not node["spec"].get("taints")


async def play(client: Client, name: str, case: Case) -> None:
    marks = {f"{PREFIX}{key}": value for key, value in {"life": case.life, **case.marks}.items()}
    body: dict[str, Any] = pod(
        name, node=NODE, annotations=marks, terminationGracePeriodSeconds=5, **case.spec
    )
    body["spec"]["containers"][0] |= {"name": "main", **case.container}
    await client.create(PODS, body)
    if case.happening:
        await case.happening(client, name)
