"""The effects of rules on the requests that they pick: values that the exchange and its filters read.

`Answer`, `Bomb`, `Reset`, `Replay` and `Stale` replace the server: the request is never sent to it, and the
first of them wins. `Detain` comes before the server is asked; `Delay`, `LoseAnswer` and `Stall` without a
mark come before the answer's first byte. All others filter the body, one after the other in the order in
which their rules were added.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from localcluster.faults.body_cursor import Mark
from localcluster.faults.recordings import Memory, Tape
from localcluster.faults.status_bodies import PlainText, Status


class Ending(Enum):
    """How a body ends early."""

    RESET = "the connection is reset"
    BROKEN = "the connection is closed in the middle of the body, as by a server that was killed"
    CLEAN = "the body ends as if it were whole"


@dataclass(frozen=True)
class Answer:
    """Answer with this status; the server is not asked."""

    status: Status | PlainText


@dataclass(frozen=True)
class Bomb:
    """Answer as a hostile member does: with a body that never ends, or with a small one that becomes large.

    `inflated` are the bytes that the compressed body has once it is decompressed; none: it never ends.
    """

    status: int = 200
    inflated: int | None = None


@dataclass(frozen=True)
class Reset:
    """Reset the connection; the server is not asked."""


@dataclass(frozen=True)
class Replay:
    """Answer a watch with these lines, at a rate or as fast as they are read.

    After the last line the watch stays open and silent until the rule is lifted, unless `hold` is false.
    """

    lines: Iterable[bytes]
    rate: float | None = None
    hold: bool = True

    def __post_init__(self) -> None:
        if self.rate is not None:
            _refuse_zero(self.rate, field="Replay.rate")


@dataclass(frozen=True)
class Stale:
    """Answer like an API server with a stale cache: with a remembered response, where a cache may answer.

    Other requests go to the server. For a stale watch use `Replay`.
    """

    memory: Memory


@dataclass(frozen=True)
class Delay:
    """Wait, either before the server is asked or when its answer is there."""

    seconds: float
    of: Literal["request", "answer"] = "request"

    def __post_init__(self) -> None:
        _refuse_zero(self.seconds, field="Delay.seconds")


@dataclass(frozen=True)
class Detain:
    """Keep the request on its way until the rule is lifted; then it arrives, even if its client is gone."""


@dataclass(frozen=True)
class LoseAnswer:
    """Let the server do what is asked, then reset the connection: the client cannot know the result."""


@dataclass(frozen=True)
class Stall:
    """Nothing more from the mark on until the rule is lifted; without a mark not even the headers."""

    after: Mark | None = None


@dataclass(frozen=True)
class Slow:
    """Limit the body to this many bytes per second until the rule is lifted."""

    bytes_per_second: float

    def __post_init__(self) -> None:
        _refuse_zero(self.bytes_per_second, field="Slow.bytes_per_second")


@dataclass(frozen=True)
class Cut:
    """End the body at the mark."""

    after: Mark
    ending: Ending = Ending.RESET


@dataclass(frozen=True)
class Duplicate:
    """Deliver every line twice."""


@dataclass(frozen=True)
class ErrorEvent:
    """End a watch at the mark with an ERROR event, as when its resourceVersion has become too old."""

    status: Status
    after: Mark


@dataclass(frozen=True)
class Record:
    """Keep the lines that pass."""

    tape: Tape


@dataclass(frozen=True)
class Remember:
    """Keep the answers to lists and gets, for `Stale`."""

    memory: Memory


Effect = (
    Answer
    | Bomb
    | Reset
    | Replay
    | Stale
    | Delay
    | Detain
    | LoseAnswer
    | Stall
    | Slow
    | Cut
    | Duplicate
    | ErrorEvent
    | Record
    | Remember
)


def refuse_watch(status: Status) -> Replay:
    """Answer a watch with 200 and one ERROR event, as a server on an old etcd does to WatchList."""
    return Replay((status.event(),), hold=False)


def _refuse_zero(value: float, *, field: str) -> None:
    if not value > 0:
        raise ValueError(f"{field} must be more than 0, not {value}")
