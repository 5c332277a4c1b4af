"""Replacements land on a forecast node, whether the old pod is gone, terminating or unnoticed."""

import pytest

from tests.live.forecast.support.replacements import Landing, evictions

pytestmark = [pytest.mark.live, pytest.mark.asyncio]

_BUSY = 4
"""On a busy machine the scheduler is behind with the end of every so many-th pod that ends at once."""


async def landings(graces: tuple[int, ...], rounds: int) -> list[Landing]:
    async with evictions() as evicting:
        workloads = await evicting.lay_out(graces)
        return [await evicting.evict_one(workload, seed) for seed in range(rounds) for workload in workloads]


def judge(seen: list[Landing], *, most_rare: int) -> None:
    wrong = [landing for landing in seen if not landing.is_as_forecast]
    assert not wrong, "\n".join(map(str, wrong))
    rare = [landing for landing in seen if landing.is_rare]
    print(f"\n{len(rare)} of {len(seen)} the rare way")
    assert len(rare) <= most_rare, "\n".join(map(str, rare))


async def test_replacements_land_on_a_forecast_node() -> None:
    seen = await landings((0, 60), rounds=3)
    judge(seen, most_rare=len(seen) // _BUSY)


@pytest.mark.soak
async def test_two_hundred_replacements_land_on_a_forecast_node() -> None:
    seen = await landings((0, 60), rounds=50)
    judge(seen, most_rare=len(seen) // 20)
    returned = sum(landing.landed_on == landing.came_from for landing in seen)
    choices = sum(len(landing.expected["best"]) for landing in seen) / len(seen)
    rare = sum(landing.is_rare for landing in seen)
    print(
        f"\n{len(seen)} as forecast, {rare} the rare way; {returned} came back; {choices:.2f} nodes in a set"
    )
