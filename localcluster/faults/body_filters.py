"""Filters that apply effects to a body: bytes go in, steps come out, the exchange executes them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from localcluster.faults.body_cursor import Mark
from localcluster.faults.effects import Cut, Duplicate, Ending, ErrorEvent, Record, Remember, Slow, Stall
from localcluster.faults.recordings import Memory, Tape
from localcluster.faults.request_info import RequestInfo
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


class BodyFilter(Protocol):
    def feed(self, data: bytes) -> Iterator[Step]: ...

    def flush(self) -> Iterator[Step]:
        """Pass what is still held back: the body has ended."""


def create_filter(act: Act, request: RequestInfo, reply: Reply) -> BodyFilter | None:
    """Create the filter of an act's effect for a response like `reply`; None for other effects."""
    body_filter: BodyFilter | None = None
    match act.rule.effect:
        case Slow(rate):
            body_filter = _Slowing(act, rate)
        case Cut(after, ending):
            body_filter = _Interruption(act, after, [Finish(ending)])
        case Stall(after) if after is not None:
            body_filter = _Interruption(act, after, [Hold(act.rule)])
        case ErrorEvent(status, after):
            body_filter = _Interruption(act, after, [status.event(), Finish(Ending.CLEAN)])
        case Duplicate():
            body_filter = _Duplication(act)
        case Record(tape):
            body_filter = _Recording(act, tape)
        case Remember(memory):
            body_filter = _Remembering(act, memory, request, reply)
    return body_filter


def begin(filters: Sequence[BodyFilter]) -> Iterator[Step]:
    """Let each filter act before the body's first byte, if its mark is there."""
    for number, body_filter in enumerate(filters, 1):
        yield from _through(filters[number:], body_filter.feed(b""))


def feed(filters: Sequence[BodyFilter], data: bytes) -> Iterator[Step]:
    """Send data through all filters in order."""
    if not filters:
        yield data
        return
    yield from _through(filters[1:], filters[0].feed(data))


def flush(filters: Sequence[BodyFilter]) -> Iterator[Step]:
    """End the body: each filter passes on what it held back, through those after it."""
    for number, body_filter in enumerate(filters, 1):
        yield from _through(filters[number:], body_filter.flush())


def _through(filters: Sequence[BodyFilter], steps: Iterator[Step]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, bytes):
            yield from feed(filters, step)
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
    def __init__(self, act: Act, memory: Memory, request: RequestInfo, reply: Reply) -> None:
        self._act = act
        self._memory = memory
        self._request = request
        self._reply = reply
        self._body = bytearray()

    def feed(self, data: bytes) -> Iterator[Step]:
        self._body += data
        yield data

    def flush(self) -> Iterator[Step]:
        reply = Reply(self._reply.code, self._reply.headers, bytes(self._body))
        if self._memory.remember(self._request, reply):
            self._act.happen()
        yield from ()


class _LineSplitter:
    """Cuts whole lines out of a stream; `rest` is the begun one."""

    def __init__(self) -> None:
        self.rest = b""

    def split(self, data: bytes) -> list[bytes]:
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [line + b"\n" for line in whole]
