"""From 100 nodes on a move may miss its destination, as often as forecast; never if all are searched."""

import pytest

from tests.live.forecast.support.drawn_clusters import Landings, draws

pytestmark = [pytest.mark.live, pytest.mark.asyncio]

POINTS = 0.03
STARTS, PODS = 30, 20
ALL_NODES, AS_IT_COMES = 100, 0


async def prove(nodes: int, starts: int, pods: int) -> tuple[Landings, Landings]:
    """Land pods with a sample of the nodes, then with all of them."""
    async with draws(f"drawn-{nodes}", nodes) as begun:
        sampled = await begun.make_forecast(AS_IT_COMES)
        whole = await begun.make_forecast(ALL_NODES, sampled.destinations)
        await begun.open_move(sampled.destinations)
        some, every = Landings(), Landings()
        for _ in range(starts):
            await begun.land(pods, sampled, AS_IT_COMES, some)
        await begun.land(pods, whole, ALL_NODES, every)
    print(f"\n{nodes} nodes, {len(sampled.destinations)} destinations")
    print(f"forecast {sampled.on_list:.2%} on the list, {sampled.on_first:.2%} on the first: {some}")
    print(f"all nodes searched, forecast {whole.on_first:.0%} on the first: {every}")
    assert abs(some.on_list / some.pods - sampled.on_list) <= POINTS
    assert abs(some.on_first / some.pods - sampled.on_first) <= POINTS
    assert whole.on_first == 1.0
    assert every.on_first == every.pods
    return some, every


@pytest.mark.soak
async def test_at_five_thousand_nodes_pods_land_on_their_destinations_as_often_as_forecast() -> None:
    some, every = await prove(5000, STARTS, PODS)
    assert some.seconds / some.pods < every.seconds / every.pods
