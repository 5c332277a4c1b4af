"""Long thoughts in a thread of their own: neither the lease nor an answer waits for a plan.

The thread is a daemon: whoever is cancelled goes on at once, and so may the whole process, while the thread
thinks to the end for nobody.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

R = TypeVar("R")


class Offload(Protocol):
    """Where a thought is thought."""

    async def __call__(self, about: Callable[[], R], /) -> R: ...


async def run_inline(about: Callable[[], R], /) -> R:
    """Think in the event loop, which waits: for short thoughts, and where nothing else is on."""
    return about()


class WorkerThread:
    """Thinks one thought at a time: of many, each has the processor to itself and the event loop its turn."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def __call__(self, about: Callable[[], R], /) -> R:
        async with self._turn:
            return await run_in_thread(about)


async def run_in_thread(about: Callable[[], R]) -> R:
    """Give what a function returns or raises, once it has in its thread."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()

    def deliver(put: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(lambda: None if answer.done() else put())
        except RuntimeError:
            return  # the loop is closed: nobody waits

    def run() -> None:
        try:
            found = about()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the one who waits gets it
            failure = error
            deliver(lambda: answer.set_exception(failure))
        else:
            deliver(lambda: answer.set_result(found))

    threading.Thread(target=run, name="thinking", daemon=True).start()
    return await answer
