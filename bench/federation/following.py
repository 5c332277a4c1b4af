"""Follows a run: the time of each milestone, and the cost until then.

A look may cost the API servers something, too. So after each there is a pause that is several times as long.
"""

import asyncio
import datetime as dt
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from bench.extender.bursting import read_cpu, read_resident
from bench.federation.counting import Calls, count_calls, part_reports
from bench.reading.arms import Failed
from tests.live.support.hub_and_members import Place

_SHORTEST_PAUSE, _PAUSES_A_LOOK = 0.1, 4


class Moment(msgspec.Struct, frozen=True):
    """Seconds since the beginning, and the hub's calls until then."""

    seconds: float
    calls: Calls


class Run(msgspec.Struct, frozen=True):
    """One run of a part: of how many objects, at how many calls a second, and how it went."""

    part: str
    size: int
    rate: int
    moments: dict[str, Moment]
    cpu: float
    resident: int
    ended: str = ""


class Follower:
    """Records the milestones of one run and prints each of them.

    `count_told` counts the bindings that tell of their copies already: each has been written to for that.
    """

    def __init__(self, place: Place, *, patience: float, count_told: Callable[[], int] = lambda: 0) -> None:
        self._place = place
        self._patience = patience
        self._count_told = count_told
        self._before: Counter[str] = Counter()
        self._began = 0.0
        self._used = 0.0
        self.moments: dict[str, Moment] = {}

    async def begin(self) -> None:
        self._before, self._used = await count_calls(self._place.hub), read_cpu(self._process)
        self._began = time.monotonic()

    async def reach(self, name: str, is_so: Callable[[], Awaitable[object]]) -> None:
        """Wait until it is so. Raises Failed when the patience of the run is over, or the federation ends."""
        while True:
            began = time.monotonic()
            if await is_so():
                break
            self._check(name)
            await asyncio.sleep(max(_SHORTEST_PAUSE, _PAUSES_A_LOOK * (time.monotonic() - began)))
        await self.take(name)

    async def take(self, name: str) -> None:
        """Take down that it has come to this point now."""
        seconds = time.monotonic() - self._began
        told = self._count_told()
        calls = await count_calls(self._place.hub) - self._before
        self.moments[name] = Moment(seconds, part_reports(calls, told))
        sys.stderr.write(f"  {name} after {seconds:.1f} s\n")

    def finish(self, part: str, *, size: int, rate: int) -> Run:
        cpu = read_cpu(self._process) - self._used
        ended = f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M}"
        return Run(part, size, rate, self.moments, cpu, read_resident(self._process), ended)

    @property
    def _process(self) -> int:
        if self._place.process is None:
            raise Failed("the federation does not run")
        return self._place.process.pid

    def _check(self, name: str) -> None:
        if self._place.process is None or self._place.process.returncode is not None:
            raise Failed("the federation has ended")
        if time.monotonic() - self._began > self._patience:
            raise Failed(f"not {name} after {self._patience:g} s")
