"""The recorder beside a real API server."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from localcluster.cluster import Cluster
from localcluster.components import API_SERVER
from localcluster.recorder import recording
from tests.live.support.real_pods import PODS
from tests.support.builders import pod

pytestmark = pytest.mark.live


async def test_a_recording_begins_only_when_nothing_is_missed_any_more(shared: Cluster) -> None:
    async with AsyncExitStack() as stack:
        shared.freeze(API_SERVER)
        try:
            beginning = asyncio.create_task(stack.enter_async_context(recording(shared, ["pods"])))
            ended, _ = await asyncio.wait([beginning], timeout=0.5)
        finally:
            shared.thaw(API_SERVER)
        assert not ended
        recorder = await beginning
        async with shared.client() as client:
            await client.create(PODS, pod("recorded", node="node-00000"))
            await client.wait(PODS, lambda _: recorder.states_of("recorded"))
            await client.delete(f"{PODS}/recorded", {"gracePeriodSeconds": 0})
        first = recorder.states_of("recorded")[0]
        assert (first.type, "conditions" in first.object["status"]) == ("ADDED", False)
