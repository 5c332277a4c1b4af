"""What effects make of a body on its way: bytes go in, steps come out, the exchange does them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from localcluster.faults.body_cursor import Mark
from localcluster.faults.effects import Cut, Duplicate, Ending, ErrorEvent, Record, Remember, Slow, Stall
from localcluster.faults.recordings import Memory, Tape
from localcluster.faults.request_info import Asked
from localcluster.faults.rules import Act, Rule
from localcluster.faults.status_bodies import Reply

_TICKS_PER_SECOND = 20


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Hold:
    """Wait until the rule is lifted."""

    rule: Rule


@dataclass(frozen=True)
class Finish:
    ending: Ending


Step = bytes | Pause | Hold | Finish


class Bend(Protocol):
    def feed(self, data: bytes) -> Iterator[Step]: ...

    def flush(self) -> Iterator[Step]:
        """Pass what is still held back: the body has ended."""


def bend_by(act: Act, asked: Asked, reply: Reply) -> Bend | None:
    """Make the bend of the act's effect for an answer that begins like `reply`; None for other effects."""
    bend: Bend | None = None
    match act.rule.effect:
        case Slow(rate):
            bend = _Slowing(act, rate)
        case Cut(after, ending):
            bend = _Interruption(act, after, [Finish(ending)])
        case Stall(after) if after is not None:
            bend = _Interruption(act, after, [Hold(act.rule)])
        case ErrorEvent(status, after):
            bend = _Interruption(act, after, [status.event(), Finish(Ending.CLEAN)])
        case Duplicate():
            bend = _Duplication(act)
        case Record(tape):
            bend = _Recording(act, tape)
        case Remember(memory):
            bend = _Remembering(act, memory, asked, reply)
    return bend


def begin(bends: Sequence[Bend]) -> Iterator[Step]:
    """Let each bend act before the body's first byte, if its place is there."""
    for number, bend in enumerate(bends, 1):
        yield from _through(bends[number:], bend.feed(b""))


def feed(bends: Sequence[Bend], data: bytes) -> Iterator[Step]:
    """Send data through all the bends; the first of them gets it as it came."""
    if not bends:
        yield data
        return
    yield from _through(bends[1:], bends[0].feed(data))


def flush(bends: Sequence[Bend]) -> Iterator[Step]:
    """End the body: each bend passes on what it held back, through those that come after it."""
    for number, bend in enumerate(bends, 1):
        yield from _through(bends[number:], bend.flush())


def _through(bends: Sequence[Bend], steps: Iterator[Step]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, bytes):
            yield from feed(bends, step)
        else:
            yield step


class _Slowing:
    def __init__(self, act: Act, rate: float) -> None:
        self._act = act
        self._rate = rate

    def feed(self, data: bytes) -> Iterator[Step]:
        piece = max(1, int(self._rate / _TICKS_PER_SECOND))
        for start in range(0, len(data), piece):
            if self._act.rule.lifted:
                yield data[start:]
                return
            part = data[start : start + piece]
            self._act.happen()
            yield Pause(len(part) / self._rate)
            yield part

    def flush(self) -> Iterator[Step]:
        yield from ()


class _Interruption:
    """Steps at a mark. Whether anything passes after them is up to the steps."""

    def __init__(self, act: Act, mark: Mark, steps: Sequence[Step]) -> None:
        self._act = act
        self._cursor = mark.cursor()
        self._steps = steps
        self._is_over = False

    def feed(self, data: bytes) -> Iterator[Step]:
        if self._is_over:
            yield data
        else:
            yield from self._pass(*self._cursor.advance(data))

    def flush(self) -> Iterator[Step]:
        if not self._is_over:
            yield from self._pass(*self._cursor.end())

    def _pass(self, before: bytes, after: bytes | None) -> Iterator[Step]:
        yield before
        if after is not None:
            self._is_over = True
            self._act.happen()
            yield from self._steps
            yield after


class _Duplication:
    def __init__(self, act: Act) -> None:
        self._act = act
        self._splitter = _LineSplitter()

    def feed(self, data: bytes) -> Iterator[Step]:
        for line in self._splitter.split(data):
            self._act.happen()
            yield line + line

    def flush(self) -> Iterator[Step]:
        yield self._splitter.rest


class _Recording:
    def __init__(self, act: Act, tape: Tape) -> None:
        self._act = act
        self._tape = tape
        self._splitter = _LineSplitter()

    def feed(self, data: bytes) -> Iterator[Step]:
        for line in self._splitter.split(data):
            self._act.happen()
            self._tape.lines.append(line)
        yield data

    def flush(self) -> Iterator[Step]:
        yield from ()


class _Remembering:
    def __init__(self, act: Act, memory: Memory, asked: Asked, reply: Reply) -> None:
        self._act = act
        self._memory = memory
        self._asked = asked
        self._reply = reply
        self._body = bytearray()

    def feed(self, data: bytes) -> Iterator[Step]:
        self._body += data
        yield data

    def flush(self) -> Iterator[Step]:
        reply = Reply(self._reply.code, self._reply.headers, bytes(self._body))
        if self._memory.remember(self._asked, reply):
            self._act.happen()
        yield from ()


class _LineSplitter:
    """Cuts whole lines out of a stream; `rest` is the begun one."""

    def __init__(self) -> None:
        self.rest = b""

    def split(self, data: bytes) -> list[bytes]:
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [line + b"\n" for line in whole]
