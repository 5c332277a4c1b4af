"""With more than 100 nodes the scheduler samples nodes: the chances of the forecast must come true."""

import pytest

from reberth.forecast.chances import count_wanted
from tests.live.forecast.support.calibration import Calibration
from tests.live.forecast.support.scheduler_restarts import starts

pytestmark = [pytest.mark.live, pytest.mark.asyncio]

# Nodes, starts, and the tens of percent between which the best node's chance moves.
SIZES = [(150, 36, (7, 8, 9)), (300, 154, (3, 4, 5, 6, 7, 8, 9)), (1000, 28, (3, 4, 5, 6, 7, 8, 9))]
LEAST_PREDICTIONS = 100


async def test_every_landing_was_possible_and_the_sample_has_its_size() -> None:
    async with starts("chances", 150) as begun:
        for seed, percentage in enumerate((70, 95)):
            await begun.run(seed, percentage)
            assert begun.found == {count_wanted(150, percentage)}
        assert begun.calibration.impossible == []


@pytest.mark.soak
async def test_chances_come_true() -> None:
    pooled = Calibration()
    for nodes, rounds, tens in SIZES:
        async with starts(f"chances-{nodes}", nodes) as begun:
            begun.calibration = pooled
            for seed in range(rounds):
                await begun.run(seed, 10 * tens[seed % len(tens)] + 4 + seed % 6)
    print(f"\n{pooled}")
    assert pooled.impossible == []
    assert min(bucket.predictions for bucket in pooled.buckets) >= LEAST_PREDICTIONS
    assert all(bucket.is_plausible for bucket in pooled.buckets), str(pooled)
