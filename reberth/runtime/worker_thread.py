"""Runs long computations in a thread, so that the event loop can renew the lease and serve meanwhile.

The thread is a daemon thread: a caller that is cancelled continues at once, and the process can exit while
the thread is still computing.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

R = TypeVar("R")


class Offload(Protocol):
    """Runs a function somewhere and gives its result."""

    async def __call__(self, function: Callable[[], R], /) -> R: ...


async def run_inline(function: Callable[[], R], /) -> R:
    """Run in the event loop, which waits: for short functions, and where nothing else runs."""
    return function()


class WorkerThread:
    """Runs one function at a time: several would leave the event loop too little of the interpreter."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, function: Callable[[], R], /) -> R:
        async with self._turn:
            return await run_in_thread(function)


async def run_in_thread(function: Callable[[], R]) -> R:
    """Run a function in a new thread, and give what it returns or raise what it raises."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()

    def deliver(put: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(lambda: None if answer.done() else put())
        except RuntimeError:
            return  # the loop is closed: no caller waits

    def run() -> None:
        try:
            found = function()
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is
            failure = error
            deliver(lambda: answer.set_exception(failure))
        else:
            deliver(lambda: answer.set_result(found))

    threading.Thread(target=run, name="worker", daemon=True).start()
    return await answer
