"""A cluster with real nodes for the tests of a file; nodes that are away are noticed within seconds."""

from collections.abc import AsyncIterator

import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.state_dir import running
from tests.live.support.real_pods import NOTICE_SOON, QUICK


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real() -> AsyncIterator[Cluster]:
    """Two real nodes and 30 of kwok."""
    async with running(real=2, real_shape=QUICK, nodes=30, flags=NOTICE_SOON) as cluster:
        yield cluster
