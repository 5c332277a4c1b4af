"""The API server's time: what all processes of Reberth write and judge times by.

The clocks of two machines differ, so a time that one of them wrote cannot be judged by the other's. But all
of them talk to the API server, and each of its answers carries a `Date`. So the time is that of the API
server, estimated from its answers and from the time that has passed here since then; this machine's own clock
may be set to anything, and may be changed at any moment.

A `Date` has whole seconds, and an answer takes a while. So each answer bounds the difference between the two
clocks, and all answers together bound it ever more narrowly. What is guaranteed: from the first answer on the
estimate is wrong by less than a second and the time that this answer took. Later answers make it better. This
machine's own clock is believed while no answer contradicts it, which is usual: then nothing jumps.

An answer that contradicts the earlier ones is not believed, for another API server with another clock, or a
proxy, may have sent it. If for half a minute the answers that follow confirm it and none confirms the earlier
ones, it was the API server's clock that was changed, and the estimate begins anew. Where several API servers
differ, it is the time of one of them.
"""

import time
from collections.abc import Callable
from typing import NamedTuple, Self

from reberth.values.timestamp import TimeError, parse_http_date

CONTRADICTIONS = 3
"""So many answers in a row that contradict the earlier ones, and agree with each other, are believed."""

CONTRADICTED_FOR = 30.0
"""But only after so many seconds without an answer that confirms the earlier ones, if as many answers have
confirmed those: API servers with different clocks may be behind one address, and the time must not jump."""

_RESOLUTION = 1.0  # of the header, in seconds
# By so much per second the bounds become wider: each of two clocks may be slewed by 500 ppm.
_DRIFT = 0.001
_PASSING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # time passes while the machine is suspended


def measure_elapsed() -> float:
    """Give the seconds since some moment, whatever this machine's clock is set to."""
    return time.clock_gettime(_PASSING)


class _Bounds(NamedTuple):
    """The least and the most that the API server's time is ahead of the time that has passed here."""

    least: float
    most: float
    known_at: float

    def narrow(self, later: Self) -> Self | None:
        """Give what both of two bounds allow; None if they contradict each other."""
        drift = _DRIFT * (later.known_at - self.known_at)
        least, most = max(self.least - drift, later.least), min(self.most + drift, later.most)
        return self._replace(least=least, most=most, known_at=later.known_at) if least <= most else None

    def choose(self, guess: float) -> float:
        return guess if self.least <= guess <= self.most else (self.least + self.most) / 2


class ServerClock:
    """Estimates the time of one API server; all clients of a process that ask it share one.

    Before the first answer it is this machine's time: nothing is known of the cluster yet, and so nothing is
    judged by it.
    """

    def __init__(
        self, *, elapsed: Callable[[], float] = measure_elapsed, wall: Callable[[], float] = time.time
    ) -> None:
        self.elapsed = elapsed
        self._wall = wall
        self._guess = self._ahead = wall() - elapsed()
        self._bounds: _Bounds | None = None
        self._contradiction: _Bounds | None = None
        self._contradictions = 0
        self._contradicted_since = 0.0
        self._confirmations = 0

    def now(self) -> float:
        """Give the API server's time, as seconds since the epoch."""
        return self.elapsed() + self._ahead

    def find_offset(self) -> float:
        """Give the seconds that the API server's clock is ahead of this machine's."""
        return self.now() - self._wall()

    def hear(self, date: str | None, *, sent: float) -> None:
        """Learn from the `Date` of an answer that has just arrived, and from when its request was sent.

        An answer without a readable date teaches nothing.
        """
        try:
            said = parse_http_date(date or "")
        except TimeError:
            return
        received = self.elapsed()
        self._learn(_Bounds(said - received, said + _RESOLUTION - sent, received))

    def _learn(self, heard: _Bounds) -> None:
        agreed = self._bounds.narrow(heard) if self._bounds else heard
        if agreed:
            self._confirmations += 1
        else:
            agreed = self._contradict(heard)
        if agreed:
            self._bounds, self._ahead = agreed, agreed.choose(self._guess)
            self._contradiction, self._contradictions = None, 0

    def _contradict(self, heard: _Bounds) -> _Bounds | None:
        """Count an answer that contradicts the earlier ones; give what to believe once there are enough."""
        confirmed = self._contradiction.narrow(heard) if self._contradiction else None
        if confirmed is None:
            self._contradicted_since = heard.known_at
        self._contradictions = self._contradictions + 1 if confirmed else 1
        self._contradiction = confirmed or heard
        has_lasted = heard.known_at - self._contradicted_since >= CONTRADICTED_FOR
        is_certain = has_lasted or self._confirmations < CONTRADICTIONS
        if self._contradictions < CONTRADICTIONS or not is_certain:
            return None
        self._confirmations = self._contradictions
        return self._contradiction
