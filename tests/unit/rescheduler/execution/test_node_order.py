"""Moves that share a node keep the order of the plan."""

import asyncio

import pytest

from rescheduler.execution.node_order import NodeOrder, Turn

pytestmark = pytest.mark.asyncio


async def see(turn: Turn) -> bool:
    """Whether its turn comes without anybody else's doing."""
    try:
        async with asyncio.timeout(0.01):
            await turn.come()
    except TimeoutError:
        return False
    return True


@pytest.mark.looptime
async def test_only_moves_that_share_a_node_wait_for_each_other() -> None:
    turns = NodeOrder()
    first, second, apart, third = (
        turns.take(nodes) for nodes in (("a", "b"), ("a", "c"), ("d", "e"), ("c", "f"))
    )
    assert [await see(turn) for turn in (first, second, apart, third)] == [True, False, True, False]
    assert turns.waiting == 2
    first.pass_on()
    assert [await see(turn) for turn in (second, third)] == [True, False]
    second.pass_on()
    second.pass_on()
    assert await see(third)
    assert turns.waiting == 0


@pytest.mark.looptime
async def test_a_move_that_has_landed_holds_up_no_other() -> None:
    turns = NodeOrder()
    turns.take(("a",)).pass_on()
    assert await see(turns.take(("a",)))


@pytest.mark.looptime
async def test_an_evicted_move_whose_replacement_does_not_land_holds_up_no_other_for_long() -> None:
    turns = NodeOrder()
    first, second = turns.take(("a",)), turns.take(("a",))
    first.pass_on_soon()
    assert not await see(second)
    began = asyncio.get_running_loop().time()
    await second.come()
    assert 9.0 < asyncio.get_running_loop().time() - began < 11.0


@pytest.mark.looptime
async def test_when_a_waiting_move_gives_up_the_next_one_still_waits_for_the_first() -> None:
    turns = NodeOrder()
    first, second, third = (turns.take(("a",)) for _ in range(3))
    assert not await see(second)
    second.pass_on()
    assert not await see(third)
    first.pass_on()
    assert await see(third)
