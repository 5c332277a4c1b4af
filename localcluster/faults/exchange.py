"""One request: sent to the API server or answered in its place, the response filtered and passed on."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from typing import Any, Self

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict

from localcluster.faults import body_filters
from localcluster.faults.body_filters import BodyFilter, Finish, Hold, Pause, Step
from localcluster.faults.effects import (
    Answer,
    Bomb,
    Delay,
    Detain,
    Ending,
    LoseAnswer,
    Replay,
    Reset,
    Stale,
    Stall,
)
from localcluster.faults.journal import Changes, Entry
from localcluster.faults.link import Link, reset, until_sent
from localcluster.faults.relay import Relayed, Upstream, UpstreamLost, end_to_end
from localcluster.faults.rules import Act, Rule
from localcluster.faults.status_bodies import Reply

_WATCH_HEADERS = {"Cache-Control": "no-cache, private", "Content-Type": "application/json"}
_BATCH = 256

Outlive = Callable[[Coroutine[Any, Any, Reply]], Awaitable[Reply]]
"""Waits for something that goes on when nobody waits for it any more."""


class Severed(Exception):
    """The response ends here, in this way."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending


@dataclass
class Source:
    """A response before its filters; `body` yields its bytes as they arrive."""

    status: int
    headers: CIMultiDict[str]
    body: AsyncIterator[bytes]
    reason: str | None = None


class Exchange:
    def __init__(
        self,
        incoming: web.Request,
        entry: Entry,
        *,
        acts: Sequence[Act],
        link: Link,
        upstream: Upstream,
        changes: Changes,
        outlive: Outlive,
    ) -> None:
        self._incoming = incoming
        self._entry = entry
        self._request = entry.request
        self._acts = acts
        self._link = link
        self._upstream = upstream
        self._changes = changes
        self._outlive = outlive

    async def run(self) -> web.StreamResponse:
        """Answer, or break the client's connection. A client that disconnects cancels it."""
        try:
            return await self._answer()
        except Severed as severed:
            await self._sever(severed.ending)
        except (aiohttp.ClientError, UpstreamLost, ConnectionError) as error:
            # For the client, an API server that is gone is a connection that breaks.
            self._entry.error = repr(error)
            reset(self._incoming.transport)
        finally:
            self._changes.announce()
        return web.Response()  # the connection is already closed

    async def _answer(self) -> web.StreamResponse:
        if self._link.is_cut:  # its TLS handshake was under way when the others were reset
            raise Severed(Ending.RESET)
        body = await self._incoming.content.read()
        await self._link.until_passable()
        await self._delay("request")
        if (source := self._stand_in()) is not None:
            return await self._respond(source)
        if detained := [act for act in self._acts if isinstance(act.rule.effect, Detain)]:
            return await self._respond(_whole(await self._outlive(self._ask_late(body, detained))))
        return await self._pass_on(body)

    async def _delay(self, of: str) -> None:
        for act in self._acts:
            match act.rule.effect:
                case Delay(seconds, of=part) if part == of:
                    act.happen()
                    await asyncio.sleep(seconds)

    def _stand_in(self) -> Source | None:
        """The answer of the first rule that has one."""
        for act in self._acts:
            source: Source | None = None
            match act.rule.effect:
                case Reset():
                    act.happen()
                    raise Severed(Ending.RESET)
                case Answer(status):
                    source = _whole(status.reply(self._request))
                case Bomb(code, inflated):
                    source = _bomb(code, inflated)
                case Stale(memory) if (reply := memory.recall(self._request)) is not None:
                    source = _whole(reply)
                case Replay():
                    source = Source(200, CIMultiDict(_WATCH_HEADERS), self._replay(act, act.rule.effect))
            if source is not None:
                act.happen()
                return source
        return None

    def _replay(self, act: Act, effect: Replay) -> "Paced":
        at_end = partial(self._until_lifted, act.rule) if effect.hold else None
        return Paced(map(_as_line, effect.lines), rate=effect.rate, at_end=at_end)

    async def _pass_on(self, body: bytes) -> web.StreamResponse:
        async with self._upstream.ask(self._incoming, body, plain=bool(self._acts)) as answer:
            self._entry.upstream_status = answer.status
            headers = end_to_end(answer.headers)
            return await self._respond(
                Source(answer.status, headers, answer.content.iter_any(), answer.reason)
            )

    async def _ask_late(self, body: bytes, detained: Iterable[Act]) -> Reply:
        for act in detained:
            act.happen()
            await self._until_lifted(act.rule)
        async with self._upstream.ask(self._incoming, body, plain=True) as answer:
            self._entry.upstream_status = answer.status
            reply = Reply(answer.status, end_to_end(answer.headers), await answer.read())
        self._changes.announce()
        return reply

    async def _respond(self, source: Source) -> web.StreamResponse:
        await self._delay("answer")
        await self._withhold()
        filters = self._filters(source)
        answer = Relayed(source.status, source.reason, source.headers)
        if filters:
            answer.headers.popall(hdrs.CONTENT_LENGTH, None)
            answer.enable_chunked_encoding()
        await self._link.until_passable()
        await answer.prepare(self._incoming)
        self._entry.status = source.status
        self._changes.announce()
        try:
            await self._send(answer, source.body, filters)
        except Severed as severed:
            if severed.ending is not Ending.CLEAN:
                raise
        await answer.write_eof()
        return answer

    async def _withhold(self) -> None:
        for act in self._acts:
            match act.rule.effect:
                case LoseAnswer():
                    act.happen()
                    raise Severed(Ending.RESET)
                case Stall(after=None):
                    act.happen()
                    await self._until_lifted(act.rule)

    def _filters(self, source: Source) -> list[BodyFilter]:
        begun = Reply(source.status, dict(source.headers), b"")
        filters = (body_filters.create_filter(act, self._request, begun) for act in self._acts)
        return [body_filter for body_filter in filters if body_filter is not None]

    async def _send(
        self, answer: web.StreamResponse, body: AsyncIterator[bytes], filters: Sequence[BodyFilter]
    ) -> None:
        await self._do(body_filters.begin(filters), answer)
        async for data in body:
            await self._do(body_filters.feed(filters, data), answer)
        await self._do(body_filters.flush(filters), answer)

    async def _do(self, steps: Iterator[Step], answer: web.StreamResponse) -> None:
        for step in steps:
            match step:
                case bytes():
                    await self._link.until_passable()
                    await answer.write(step)
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Hold(rule):
                    await self._until_lifted(rule)
                case Finish(ending):
                    raise Severed(ending)

    async def _until_lifted(self, rule: Rule) -> None:
        await self._changes.until(lambda: rule.lifted)

    async def _sever(self, ending: Ending) -> None:
        transport = self._incoming.transport
        await until_sent(transport)
        if ending is Ending.RESET:
            reset(transport)
        elif transport is not None:
            transport.abort()


class Paced:
    """Iterates over pieces that are due at a rate; those that are due together come together."""

    def __init__(
        self,
        pieces: Iterable[bytes],
        *,
        rate: float | None = None,
        at_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._pieces = iter(pieces)
        self._rate = rate
        self._at_end = at_end
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        self._given = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        early = self._given / self._rate - self._elapsed() if self._rate else 0.0
        await asyncio.sleep(max(0.0, early))
        batch = list(islice(self._pieces, self._due()))
        if not batch:
            if self._at_end is not None:
                await self._at_end()
            raise StopAsyncIteration
        self._given += len(batch)
        return b"".join(batch)

    def _elapsed(self) -> float:
        return self._clock() - self._start

    def _due(self) -> int:
        if self._rate is None:
            return _BATCH
        return min(_BATCH, max(1, 1 + int(self._elapsed() * self._rate) - self._given))


def _whole(reply: Reply) -> Source:
    headers = CIMultiDict(reply.headers)
    headers.popall(hdrs.DATE, None)  # a remembered answer is given now
    headers[hdrs.CONTENT_LENGTH] = str(len(reply.body))
    return Source(reply.code, headers, Paced([reply.body]))


def _bomb(code: int, inflated: int | None) -> Source:
    json = {"Content-Type": "application/json"}
    if inflated is None:
        return Source(code, CIMultiDict(json), Paced(repeat(b" " * _BATCH)))
    body = gzip.compress(b" " * inflated)
    return _whole(Reply(code, {**json, "Content-Encoding": "gzip"}, body))


def _as_line(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"
