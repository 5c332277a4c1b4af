"""A cluster with real nodes for the tests of a file; nodes that are away are noticed within seconds."""

from collections.abc import AsyncIterator

import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS
from localcluster.realnodes.node_files import NodeShape
from localcluster.state_dir import running

QUICK = NodeShape(
    kubelet={
        "nodeLeaseDurationSeconds": 4,
        "nodeStatusUpdateFrequency": "1s",
        "nodeStatusReportFrequency": "2s",
    }
)
NOTICE_SOON = {CONTROLLERS: ["--node-monitor-grace-period=6s", "--node-monitor-period=1s"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def real() -> AsyncIterator[Cluster]:
    """Two real nodes and 30 of kwok."""
    async with running(real=2, real_shape=QUICK, nodes=30, flags=NOTICE_SOON) as cluster:
        yield cluster
