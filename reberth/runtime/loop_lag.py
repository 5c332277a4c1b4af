"""How late the event loop does what is due: while it computes or waits for a CPU, nothing else runs."""

import asyncio
from typing import NoReturn

from reberth.runtime.metrics import EVENT_LOOP_LAG

_EVERY = 0.1


async def measure_lag() -> NoReturn:
    """Sleep again and again, and record how much too long each sleep was."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _EVERY
        await asyncio.sleep(_EVERY)
        EVENT_LOOP_LAG.observe(max(0.0, loop.time() - due))
