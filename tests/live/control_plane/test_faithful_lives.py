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
from localcluster.kwok import PREFIX
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


async def evict(client: Client, name: str) -> None:
    await client.wait(f"{PODS}/{name}", lambda found: found["status"]["phase"] == "Running")
    await client.create(f"{PODS}/{name}/eviction", {**EVICTION, "metadata": {"name": name}})


@dataclass(frozen=True)
class Case:
    life: str
    marks: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    container: dict[str, Any] = field(default_factory=dict)
    happening: Callable[[Client, str], Awaitable[None]] | None = None


INIT = [{"name": "init", "image": "registry.example/init:1"}]
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
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with running(nodes=1) as cluster:
        yield cluster


@pytest.mark.parametrize("name", CASES)
async def test_a_faithful_life_is_the_recorded_one(cluster: Cluster, name: str) -> None:
    case, expected = CASES[name], merge_repeats(read_recordings()[name], but_for=ACKNOWLEDGED)
    async with cluster.client() as client, recording(cluster, ["pods"]) as recorder:
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


async def play(client: Client, name: str, case: Case) -> None:
    marks = {f"{PREFIX}{key}": value for key, value in {"life": case.life, **case.marks}.items()}
    body: dict[str, Any] = pod(
        name, node=NODE, annotations=marks, terminationGracePeriodSeconds=5, **case.spec
    )
    body["spec"]["containers"][0] |= {"name": "main", **case.container}
    await client.create(PODS, body)
    if case.happening:
        await case.happening(client, name)
