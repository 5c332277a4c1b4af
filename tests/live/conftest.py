"""One cluster for all live tests of a run; a test that breaks things brings its own."""

from collections.abc import AsyncIterator

import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.folders import running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[Cluster]:
    """A whole control plane with 50 nodes in 3 zones; leave nothing in it."""
    async with running("shared", nodes=50) as cluster:
        yield cluster
