import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects.names import Key
from reberth.client.lease import LeaseLost
from reberth.records import ObjectMeta
from reberth.values.duration import Duration
from reberth.values.errors import Conflict, TooManyRequests
from reberth.values.object_error import ObjectError

pytestmark = pytest.mark.looptime

A, B, C = (Key("v1", "ConfigMap", "default", name) for name in "abc")


class Work:
    """Takes a second for each key, and notes which key was reconciled when."""

    def __init__(self, answer: Callable[[Key], float | None] = lambda _: None) -> None:
        self.done: list[tuple[float, str]] = []
        self.at_once: list[str] = []
        self._answer = answer

    async def settle(self, key: Key) -> float | None:
        assert key.name not in self.at_once
        self.at_once.append(key.name)
        self.done.append((asyncio.get_running_loop().time(), key.name))
        try:
            await asyncio.sleep(1)
            return self._answer(key)
        finally:
            self.at_once.remove(key.name)


@asynccontextmanager
async def running(queue: WorkQueue) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def queue_of(work: Work, *, workers: int = 1, rank: Callable[[Key], int] = lambda _: 0) -> WorkQueue:
    settings = QueueSettings(workers=workers, first_pause=Duration(1), longest_pause=Duration(4))
    return WorkQueue("test", work.settle, settings, rank=rank)


async def test_a_key_that_waits_is_there_once_and_the_most_urgent_is_first() -> None:
    work = Work()
    queue = queue_of(work, rank=lambda key: -ord(key.name))
    for key in (A, B, A, C, B):
        queue.add(key)
    assert len(queue) == 3
    async with running(queue):
        await asyncio.sleep(9)
    assert work.done == [(0, "c"), (1, "b"), (2, "a")]
    assert len(queue) == 0


async def test_a_key_is_never_settled_twice_at_once_but_again_if_it_changed_meanwhile() -> None:
    work = Work()
    queue = queue_of(work, workers=4)
    async with running(queue):
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(0.5)
        queue.add(A)
        queue.add(A)
        await asyncio.sleep(9)
    assert work.done == [(0, "a"), (0, "b"), (1, "a")]


async def test_a_delayed_key_is_handled_in_time_and_a_change_comes_first() -> None:
    answers = iter([10.0, 10.0, None])
    work = Work(lambda _: next(answers))
    queue = queue_of(work)
    async with running(queue):
        queue.add(A)
        await asyncio.sleep(5)
        queue.add(A)
        await asyncio.sleep(90)
    assert [at for at, _ in work.done] == [0, 5, 16]


async def test_the_sooner_of_two_times_counts() -> None:
    work = Work()
    queue = queue_of(work)
    async with running(queue):
        queue.add_later(A, 5)
        queue.add_later(A, 9)
        queue.add_later(B, 9)
        queue.add_later(B, 7)
        await asyncio.sleep(30)
    assert work.done == [(5, "a"), (7, "b")]


@pytest.mark.parametrize("error", [Conflict("patch", "old"), RuntimeError("ours")])
async def test_a_failed_key_is_retried_with_backoff_and_other_keys_go_on(
    error: Exception, faults: list[str]
) -> None:
    def answer(key: Key) -> None:
        if key is A:
            raise error

    work = Work(answer)
    queue = queue_of(work)
    async with running(queue):
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(40)
    times = [at for at, name in work.done if name == "a"]
    gaps = [later - sooner - 1 for sooner, later in pairwise(times)]
    assert (1, "b") in work.done
    assert 0.5 <= gaps[0] <= 1 <= gaps[1] + 0.001
    assert all(2 <= gap <= 4 for gap in gaps[2:])
    assert 0 <= len(times) - len(faults) <= 1 or not isinstance(error, RuntimeError)  # one may be under way
    assert bool(faults) == isinstance(error, RuntimeError)
    faults.clear()


async def test_retry_after_of_the_server_is_respected() -> None:
    def answer(_: Key) -> None:
        raise TooManyRequests("patch", "busy", retry_after=8)

    work = Work(answer)
    queue = queue_of(work)
    async with running(queue):
        queue.add(A)
        await asyncio.sleep(10.5)
    assert [at for at, _ in work.done] == [0, 9]


async def test_an_unusable_object_is_not_retried_before_it_changes() -> None:
    def answer(_: Key) -> None:
        raise ObjectError("ConfigMap", ObjectMeta("a"), field="data", reason="is odd")

    work = Work(answer)
    queue = queue_of(work)
    async with running(queue):
        queue.add(A)
        await asyncio.sleep(90)
        queue.add(A)
        await asyncio.sleep(9)
    assert [at for at, _ in work.done] == [0, 90]


async def test_without_the_lease_nothing_goes_on() -> None:
    def answer(_: Key) -> None:
        raise LeaseLost("gone")

    queue = queue_of(Work(answer))
    queue.add(A)
    with pytest.raises(ExceptionGroup) as several:
        await queue.run()
    assert several.group_contains(LeaseLost)


async def test_others_have_their_turn_between_keys_that_need_no_call() -> None:
    """A lease must be renewed, and calls go on, whatever number of keys is looked at."""
    done: list[str] = []
    seen: list[int] = []

    async def settle(key: Key) -> None:
        done.append(key.name)

    queue = WorkQueue("test", settle, QueueSettings(workers=4))
    for number in range(200):
        queue.add(A._replace(name=f"{number:03}"))
    async with running(queue):
        while len(done) < 200:
            await asyncio.sleep(0)
            seen.append(len(done))
    assert done == sorted(done)
    longest = max(later - sooner for sooner, later in pairwise([0, *seen]))
    assert longest <= 8 + 4, "a row, and a key for each worker that gives way"


async def test_a_lane_that_is_slow_leaves_workers_to_the_others() -> None:
    done: list[tuple[float, str]] = []

    async def settle(key: Key) -> None:
        await asyncio.sleep(30 if key.namespace == "slow" else 0.1)
        done.append((asyncio.get_running_loop().time(), key.namespace))

    queue = WorkQueue(
        "test", settle, QueueSettings(workers=4), lane=lambda key: key.namespace, per_lane=2, rank=lambda _: 0
    )
    for number in range(20):
        queue.add(A._replace(namespace="slow", name=f"s{number}"))
    for number in range(100):
        queue.add(A._replace(namespace="quick", name=f"q{number}"))
    assert len(queue) == 120
    async with running(queue):
        await asyncio.sleep(29)
        assert len(done) == 100, "two workers for 100 keys of 0.1 s"
        assert done[-1][0] < 5.5
        await asyncio.sleep(31 + 9 * 30)
        assert len(done) == 120, "and the slow ones are not forgotten"
        assert len(queue) == 0
        queue.add(A._replace(namespace="slow"))
        await asyncio.sleep(31)
        assert len(done) == 121


async def test_within_a_lane_the_most_urgent_key_goes_first() -> None:
    work = Work()
    queue = WorkQueue(
        "test",
        work.settle,
        QueueSettings(workers=4),
        rank=lambda key: -ord(key.name),
        lane=lambda key: key.namespace,
        per_lane=1,
    )
    for key in (A, B, C, A):
        queue.add(key)
    async with running(queue):
        await asyncio.sleep(3.5)
    assert [name for _, name in work.done] == ["a", "c", "b"], "the first one had its worker already"
