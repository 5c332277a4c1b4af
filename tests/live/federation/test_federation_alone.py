"""The federation's kinds on a real API server without a webhook, and on one whose webhook is unreachable."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from localcluster.client import Client
from localcluster.cluster import Cluster
from tests.live.support.webhook_hub import (
    CONFIGURATIONS,
    aimed,
    collection_of,
    defined,
    keep,
    refusal,
    register,
    tidy,
)
from tests.support.builders import Object
from tests.support.federation.crds import EXAMPLES, example, failing_over, name_of, values

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hub(bare: Cluster) -> AsyncIterator[Client]:
    async with defined(bare) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def client(hub: Client) -> AsyncIterator[Client]:
    yield hub
    await tidy(hub)


@pytest_asyncio.fixture(loop_scope="session")
async def away(bare: Cluster, client: Client) -> AsyncIterator[Client]:
    """A client of a cluster whose webhook is registered, but not there."""
    authority = bare.design.path("pki", "ca.crt").read_bytes()
    async with register(client, [aimed(one, bare.spare_port(), authority) for one in CONFIGURATIONS]):
        yield client


@pytest.mark.parametrize("one", EXAMPLES, ids=name_of)
async def test_a_documented_object_is_taken_without_the_webhook_too(client: Client, one: Object) -> None:
    assert values(one).items() <= values(await keep(client, one)).items()


async def test_the_rules_of_the_definitions_hold_without_the_webhook(client: Client) -> None:
    one = example("PropagationPolicy")
    one["spec"]["placement"]["clusterAffinity"] = {}
    refused = await refusal(client, one)
    assert refused.status == 422
    assert "clusterAffinities cannot co-exist with clusterAffinity" in str(refused)


async def test_old_spellings_stay_without_the_webhook(client: Client) -> None:
    kept = await keep(client, failing_over("Graciously"))
    assert kept["spec"]["failover"]["application"]["purgeMode"] == "Graciously"


@pytest.mark.parametrize(
    "kind", ["Cluster", "PropagationPolicy", "ClusterPropagationPolicy", "ResourceBinding"]
)
async def test_nothing_is_written_while_the_webhook_is_away(away: Client, kind: str) -> None:
    refused = await refusal(away, example(kind))
    assert refused.status == 500
    assert 'failed calling webhook "complete.federation.reberth.dev"' in str(refused)


async def test_rebalancers_and_deletions_are_admitted_while_the_webhook_is_away(away: Client) -> None:
    one = example("WorkloadRebalancer")
    assert await keep(away, one)
    assert await away.delete(f"{collection_of(one)}/{one['metadata']['name']}")
