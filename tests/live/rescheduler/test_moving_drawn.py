"""The whole loop: the extenders have seen the move, and kube-scheduler follows the draw."""

import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.host import processes
from reberth.values.refusal import Refused
from rescheduler.moves.outcome import MoveReport
from tests.live.support.audited import audited
from tests.live.support.extender_process import Extending, extending
from tests.live.support.moves import BRIEF_LEASE, consistent, move, workload

# What stands between kube-scheduler and the extenders lives in the loop of the session.
pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]
CHANGES = {"lease": {"namespace": "reberth-system", **BRIEF_LEASE}, "extender": "required"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    async with audited(nodes=12) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def extender(cluster: Cluster) -> AsyncIterator[Extending]:
    async with extending(cluster, replicas=2) as extender:
        await extender.schedule()
        yield extender


async def test_moves_land_on_the_destination_that_was_asked_for(extender: Extending) -> None:
    """Several in a row, though the scheduler by itself would choose among all twelve."""
    cluster = extender.cluster
    async with workload(cluster, "ballast", replicas=40), workload(cluster, "drawn", replicas=2) as drawn:
        left: set[str] = set()
        for number in range(7):
            victim = await drawn.pick()
            left.add(victim["spec"]["nodeName"])
            to = f"node-{number:05d}"
            if to in left:  # a note keeps the workload away from there
                continue
            came, said = await move(cluster, victim, [to], **settings_of(extender))
            assert isinstance(came, MoveReport), (number, came)
            assert came.refused is None, said
            assert came.ending.landed_on == to, said
            assert "all extenders have acknowledged the move" in said


async def test_a_frozen_extender_makes_the_move_be_refused_as_not_seen(extender: Extending) -> None:
    cluster, frozen = extender.cluster, extender.replicas[1].process
    async with workload(cluster, "waiting", replicas=1) as waiting:
        victim = await waiting.pick()
        to = "node-00000" if victim["spec"]["nodeName"] != "node-00000" else "node-00001"
        processes.send(frozen, signal.SIGSTOP)
        try:
            came, _ = await move(cluster, victim, [to], **settings_of(extender))
        finally:
            processes.send(frozen, signal.SIGCONT)
        assert isinstance(came, MoveReport)
        assert isinstance(came.refused, Refused)
        assert came.refused.rule == "NotSeen"
        assert str(extender.replicas[1].port) in came.refused.reason
        assert await consistent(waiting) == 0


def settings_of(extender: Extending) -> dict[str, object]:
    addresses = [f"127.0.0.1:{replica.port}" for replica in extender.replicas]
    return {**CHANGES, "extenderAccess": {"addresses": addresses}}
