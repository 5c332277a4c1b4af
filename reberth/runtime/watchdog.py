"""Ends a process that leads while its event loop stands still: it neither renews the lease nor answers.

Only another thread can notice that, and only one that does not need the interpreter: whatever blocks the loop
may hold it. `faulthandler` has such a thread. It writes where every thread stands, and ends the process, so
that a restart does what nothing in the process could.
"""

import asyncio
import faulthandler
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_PARTS = 10


@asynccontextmanager
async def ending_when_stuck(seconds: float) -> AsyncIterator[None]:
    """End the process, with exit code 1, if the event loop stands still for so long meanwhile."""
    _arm(seconds)
    arming = asyncio.create_task(_keep_arming(seconds))
    try:
        yield
    finally:
        arming.cancel()
        faulthandler.cancel_dump_traceback_later()


async def _keep_arming(seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds / _PARTS)
        _arm(seconds)


def _arm(seconds: float) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True)
