"""Moves that ask at the same time are answered on one snapshot, which is newer than their questions."""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import TypeVar

import pytest

from reberth.cluster.snapshot import Snapshot
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.validation import MoveValidator, Survey
from tests.support.rescheduler.crash_simulator import FakeApi, World, make_context

pytestmark = pytest.mark.looptime
R = TypeVar("R")


class SlowWorker:
    """A worker that takes a second for whatever it is given, and counts."""

    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self, function: Callable[[], R], /) -> R:
        self.runs += 1
        await asyncio.sleep(1)
        return function()


def make_validator(worker: SlowWorker) -> tuple[MoveValidator, ExecutionContext]:
    world = World()
    context = dataclasses.replace(make_context(world, FakeApi(world)), offload=worker)
    return MoveValidator(context), context


def see(survey: Survey) -> Snapshot:
    return survey.snapshot


async def test_who_waits_while_an_answer_is_being_found_is_answered_on_the_next_snapshot() -> None:
    worker = SlowWorker()
    validator, context = make_validator(worker)
    first = asyncio.create_task(validator.ask(see))
    await asyncio.sleep(0.1)
    others = [asyncio.create_task(validator.ask(see)) for _ in range(20)]
    await asyncio.sleep(0.1)
    before = context.mirror.cache.contents()
    seen = await asyncio.gather(first, *others)
    assert worker.runs == 2
    assert seen[0] is not seen[1]
    assert all(each is seen[1] for each in seen[1:])
    assert seen[1].contents == before


async def test_questions_are_answered_in_the_order_in_which_they_were_asked() -> None:
    validator, _ = make_validator(SlowWorker())
    said: list[int] = []
    await asyncio.gather(
        *(validator.ask(lambda _, number=number: said.append(number)) for number in range(9))
    )
    assert said == list(range(9))


async def test_snapshots_are_taken_some_time_apart_but_the_first_at_once() -> None:
    world = World()
    validator = MoveValidator(make_context(world, FakeApi(world)))
    loop, times = asyncio.get_running_loop(), []
    for _ in range(3):
        await validator.ask(see)
        times.append(loop.time())
    await asyncio.sleep(5)
    await validator.ask(see)
    times.append(loop.time())
    assert [round(time - times[0], 2) for time in times] == [0, 0.5, 1.0, 6.0]


async def test_an_error_in_one_question_leaves_the_others_their_answers() -> None:
    validator, _ = make_validator(SlowWorker())

    def fail(_: Survey) -> None:
        raise ZeroDivisionError

    found = await asyncio.gather(
        validator.ask(see), validator.ask(fail), validator.ask(see), return_exceptions=True
    )
    assert [type(each) for each in found] == [Snapshot, ZeroDivisionError, Snapshot]


async def test_an_error_of_the_worker_reaches_everybody_and_the_next_question_is_answered() -> None:
    worker = SlowWorker()
    validator, context = make_validator(worker)
    whole, broken = context.mirror.cache, dataclasses.replace(context)
    context.mirror.cache = None  # type: ignore[misc,assignment] # so that no snapshot can be taken
    found = await asyncio.gather(validator.ask(see), validator.ask(see), return_exceptions=True)
    assert [type(each) for each in found] == [AttributeError] * 2
    broken.mirror.cache = whole  # type: ignore[misc]
    assert isinstance(await validator.ask(see), Snapshot)


@pytest.mark.parametrize("cancelled", [0, 1, 3])
async def test_who_is_cancelled_takes_no_answer_from_the_others(cancelled: int) -> None:
    validator, _ = make_validator(SlowWorker())
    asked = [asyncio.create_task(validator.ask(see)) for _ in range(4)]
    await asyncio.sleep(0.5)
    asked[cancelled].cancel()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(each, Snapshot) for each in found] == [each != cancelled for each in range(4)]
