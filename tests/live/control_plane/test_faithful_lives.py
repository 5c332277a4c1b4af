"""kwok's faithful lives beside recordings of a real kubelet, field by field.

What is listed here differs for a reason; everything else has to be equal.
"""

from collections.abc import AsyncIterator
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
CASES = {
    "c04-never-ready": ("faithful-never-ready", {}),
    "c01-crash-exit1": ("faithful-crash-loop", {"restarts-every": "1s", "runs-for": "300ms"}),
    "c02-v2-oom-main": ("faithful-oom-killed", {"restarts-every": "1s", "runs-for": "300ms"}),
    "c03-outofcpu": ("faithful-rejected", {}),
    "c06-pressure-hog": ("faithful-evicted", {}),
    "c05-evict-polite": ("faithful", {}),
    "c05-evict-stubborn": ("faithful-stubborn", {}),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with running(nodes=1) as cluster:
        yield cluster


@pytest.mark.parametrize("case", CASES)
async def test_a_faithful_life_is_the_recorded_one(cluster: Cluster, case: str) -> None:
    life, more = CASES[case]
    expected = merge_repeats(read_recordings()[case], but_for=ACKNOWLEDGED)
    async with cluster.client() as client, recording(cluster, ["pods"]) as recorder:
        await play(client, case, life, more, evict=expected[-1]["deleted"])
        await client.wait(PODS, lambda _: len(played(recorder, case)) >= len(expected))
        found = played(recorder, case)
        if not expected[-1]["deleted"]:
            await client.delete(f"{PODS}/{case}", {"gracePeriodSeconds": 0})
        await client.wait(PODS, is_gone(case))
    assert {
        number: differences
        for number, (recorded, mine) in enumerate(zip(expected, found, strict=False))
        if (differences := find_differences(recorded, mine))
    } == {}


def played(recorder: Recorder, name: str) -> list[State]:
    return merge_repeats(describe_changes(recorder.states_of(name)), but_for=ACKNOWLEDGED)


async def play(client: Client, name: str, life: str, more: dict[str, str], *, evict: bool) -> None:
    marks = {f"{PREFIX}{key}": value for key, value in {"life": life, **more}.items()}
    body: dict[str, Any] = pod(name, node="node-00000", annotations=marks, terminationGracePeriodSeconds=5)
    await client.create(PODS, body)
    if evict:
        await client.wait(f"{PODS}/{name}", lambda found: found["status"]["phase"] == "Running")
        eviction = {**EVICTION, "metadata": {"name": name}}
        await client.create(f"{PODS}/{name}/eviction", eviction)
