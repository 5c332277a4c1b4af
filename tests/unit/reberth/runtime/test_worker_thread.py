"""Long computations run in a thread of their own."""

import asyncio
import threading
import time

import pytest

from reberth.runtime.worker_thread import WorkerThread, run_in_thread, run_inline


async def test_the_answer_comes_from_another_thread() -> None:
    assert await run_in_thread(threading.get_ident) != threading.get_ident()


async def test_an_exception_in_the_thread_is_raised_in_the_caller() -> None:
    def fail() -> None:
        raise ValueError("a bad thought")

    with pytest.raises(ValueError, match="a bad thought"):
        await run_in_thread(fail)


async def test_a_cancelled_caller_continues_at_once() -> None:
    release, done = threading.Event(), threading.Event()

    def compute() -> None:
        release.wait(10)
        done.set()

    task = asyncio.create_task(run_in_thread(compute))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not done.is_set()
    release.set()
    assert done.wait(10)


def test_closing_the_loop_meanwhile_does_no_harm() -> None:
    release, threads = threading.Event(), threading.active_count()

    async def leave() -> None:
        task = asyncio.create_task(run_in_thread(lambda: release.wait(10)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leave())
    release.set()
    for thread in threading.enumerate():
        if thread.name == "worker":
            thread.join(10)
    assert threading.active_count() <= threads


async def test_a_worker_thread_runs_one_function_at_a_time() -> None:
    worker, at_once, most = WorkerThread(), 0, 0

    def compute() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.01)
        at_once -= 1

    await asyncio.gather(*(worker(compute) for _ in range(5)))
    assert most == 1


async def test_a_function_that_runs_inline_needs_no_thread() -> None:
    assert await run_inline(threading.get_ident) == threading.get_ident()
