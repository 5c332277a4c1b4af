"""The pod that a controller creates is the one that was foretold, whatever has changed since."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from localcluster.client import Client
from localcluster.state_dir import running
from reberth.values.refusal import Refused
from tests.live.forecast.support.changes import CLASSES, ChangeClass
from tests.live.forecast.support.next_pods import list_faults, replace_all
from tests.support.builders import node

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

NAMES = [each.name for each in CLASSES]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    """A control plane of its own: a default PriorityClass is for the whole cluster."""
    async with running("next-pods") as cluster, cluster.client() as client:
        made = [node(f"n{number:02d}", cpu="64", zone="abc"[number % 3]) for number in range(6)]
        await client.create_all("/api/v1/nodes", made)
        yield client


@pytest.mark.parametrize("each", CLASSES, ids=NAMES)
async def test_the_pod_that_comes_is_the_one_that_was_foretold(client: Client, each: ChangeClass) -> None:
    found = await replace_all(client, each, count=2)
    assert len(found) == 2
    assert list_faults(each, found) == []


@pytest.mark.soak
@pytest.mark.parametrize("each", CLASSES, ids=NAMES)
async def test_a_hundred_pods_of_each_class_come_as_foretold(client: Client, each: ChangeClass) -> None:
    found = await replace_all(client, each._replace(name=f"{each.name}-100"), count=100)
    faults = list_faults(each, found)
    refused = sum(isinstance(one.foretold, Refused) for one in found)
    print(f"\n{each.name}: {len(found)} pods, {refused} refused, {len(faults)} wrong")
    assert faults == []
