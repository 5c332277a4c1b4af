"""Three hundred Deployments move at once, for every cause there is; none is ever below its replicas."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.live.support.many_moves import BREAK_FIRST, CAUSES, ManyMoves, many_moves
from tests.live.support.ready_fleet import NO_SHORTAGE
from tests.live.support.rebalancing_members import rebalancing
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]

WORKLOADS = 300
API = {"requestsPerSecond": 400, "burst": 600}
QUICK = {
    "api": API,
    "sessions": {"api": API},
    "lease": {"namespace": "reberth-system", "duration": "30s", "renewDeadline": "20s"},
    "tainting": {"evictionsPerSecond": 50},
    "failback": {"atOnce": 50, "lookAgain": "500ms"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def moves(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ManyMoves]:
    folder = tmp_path_factory.mktemp("federation")
    async with (
        rebalancing("many-moves", folder, cpu="1000", **QUICK) as place,
        many_moves(place, WORKLOADS) as made,
    ):
        yield made


@pytest.mark.parametrize("number", range(len(CAUSES)), ids=[each.name for each in CAUSES])
async def test_three_hundred_deployments_are_never_below_desired(moves: ManyMoves, number: int) -> None:
    proof = Proof("many-moves")
    for each in proof.remaining([number]):
        moved = await moves.make(CAUSES[each])
        print(moved.describe())
        assert moved.shortage == NO_SHORTAGE
        proof.note([each])


async def test_the_count_sees_workloads_that_are_taken_away_first(moves: ManyMoves) -> None:
    moved = await moves.make(BREAK_FIRST)
    print(moved.describe())
    assert moved.shortage.workloads == WORKLOADS
