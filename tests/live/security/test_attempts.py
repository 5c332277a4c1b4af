"""Every account that somebody may have, what it tries, and the API server's words of refusal."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from localcluster.client import Refused
from localcluster.cluster import Cluster
from tests.live.support.accounts import Impersonator
from tests.live.support.hostile_accounts import ALLOWED, ATTEMPTS, Attempt, defended, is_as_expected

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with defended() as cluster:
        await until_in_force(cluster)
        yield cluster


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=[f"{one.who.user}: {one.tries}" for one in ATTEMPTS])
async def test_each_attempt_ends_as_documented(cluster: Cluster, attempt: Attempt) -> None:
    said = await answer(cluster, attempt)
    assert is_as_expected(attempt, said), said


async def answer(cluster: Cluster, attempt: Attempt) -> str:
    """Give the words of the API server. A dry run is authorized and admitted as everything else is."""
    path = attempt.path if attempt.method == "GET" else f"{attempt.path}?dryRun=All"
    async with Impersonator(cluster.design, attempt.who.user, attempt.who.groups) as client:
        try:
            await client.request(attempt.method, path, attempt.body)
        except Refused as refused:
            return str(refused)
    return ALLOWED


async def until_in_force(cluster: Cluster) -> None:
    """The API server takes a moment to learn of new policies: wait for what the last ones refuse."""
    late = [one for one in ATTEMPTS if one.words.startswith(("only subjects", "the federation", "the resch"))]
    async with asyncio.timeout(60):
        for attempt in late:
            for _ in count():
                if is_as_expected(attempt, await answer(cluster, attempt)):
                    break
                await asyncio.sleep(0.1)
