"""Clusters shared by the live tests of a process; a test that breaks its cluster starts its own."""

import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.faults import FaultProxy
from localcluster.state_dir import running
from tests.live.support.audited import audited
from tests.live.support.fault_client import standing_before

# Where a connection is cancelled in the middle of its TLS handshake, asyncio leaves the socket to the garbage
# collector, which then complains in whichever test it runs.
HALF_OPEN = "ignore:Exception ignored in. <(socket.socket|function _SelectorTransport)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(
                pytest.mark.filterwarnings(f"{HALF_OPEN}:pytest.PytestUnraisableExceptionWarning")
            )


@pytest.fixture(scope="session", autouse=True)
def half_open_ones_collected() -> Iterator[None]:
    """Collect the last ones while nobody complains: after the tests they would be an error of the run."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[Cluster]:
    """A whole control plane with 50 nodes in 3 zones; leave nothing in it."""
    async with audited(nodes=50) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bare() -> AsyncIterator[Cluster]:
    """An API server alone, in which nothing happens by itself; leave nothing in it."""
    async with running(without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def proxy(bare: Cluster) -> AsyncIterator[FaultProxy]:
    """Stands before the bare cluster's API server."""
    async with standing_before(bare) as proxy:
        yield proxy
