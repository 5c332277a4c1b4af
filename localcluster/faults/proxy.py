"""The fault proxy between clients and a real API server: the test controls every fault.

    async with FaultProxy(cluster_url, ca=cluster_ca, certificate=crt, key=key) as proxy:
        url = await proxy.open("rescheduler-1")
        async with proxy.fault(Match(resource="pods/eviction"), Answer(statuses.overloaded())) as rule:
            ...
            await proxy.until(lambda: rule.acted == 3)

Without rules it is transparent, except for HTTP upgrades (`kubectl exec`, `port-forward`), which are not
supported.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from localcluster.faults.effects import Effect
from localcluster.faults.exchange import Exchange
from localcluster.faults.journal import Changes, Journal
from localcluster.faults.link import Link
from localcluster.faults.relay import Upstream
from localcluster.faults.request_info import read_request_info
from localcluster.faults.rules import ALWAYS, Act, Match, Rule, Turns
from localcluster.faults.status_bodies import Reply


class FaultProxy:
    """Every rule that picks a request acts on it, in the order in which the rules were added."""

    def __init__(
        self, upstream: str, *, ca: Path, certificate: Path, key: Path, log_size: int = 10_000
    ) -> None:
        """Take the API server's URL, the CA that it is verified with, and the proxy's own certificate."""
        self.journal = Journal(log_size)
        self._upstream = Upstream(upstream, ca=ca)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate, key)
        self._links: dict[str, Link] = {}
        self._rules: list[Rule] = []
        self._changes = Changes()
        self._late: set[asyncio.Task[Reply]] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._upstream)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Reset all connections and free all ports; what is detained never arrives."""
        for task in self._late:
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._stack.aclose()

    async def open(self, client: str) -> str:
        """Open a port for a client; the URL of its API server."""
        if client in self._links:
            raise ValueError(f"client {client!r} already has a port")
        link = self._links[client] = Link(client, self._handle, tls=self._tls, changes=self._changes)
        self._stack.push_async_callback(link.aclose)
        await link.open()
        return link.url

    async def cut(self, client: str) -> None:
        """Cut the client off: its connections are reset, new ones are refused."""
        await self._link(client).cut()

    def freeze(self, client: str) -> None:
        """Freeze the client's link: its connections stay open and new ones succeed, but no byte passes."""
        self._link(client).freeze()

    async def mend(self, client: str) -> None:
        """Connect the client again, under the same address."""
        await self._link(client).mend()

    async def rotate(self, *, certificate: Path, key: Path) -> None:
        """Become an API server with another certificate: it restarts, so all connections are reset."""
        self._tls.load_cert_chain(certificate, key)
        for link in self._links.values():
            await link.cut()
            await link.mend()

    def add(self, rule: Rule) -> Rule:
        rule.lifted = False
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Lift a rule if it is in force: it picks no more requests, and those that it holds up go on."""
        if rule in self._rules:
            self._rules.remove(rule)
            rule.lifted = True
            self._changes.announce()

    @asynccontextmanager
    async def fault(self, match: Match, effect: Effect, turns: Turns = ALWAYS) -> AsyncIterator[Rule]:
        rule = self.add(Rule(match, effect, turns))
        try:
            yield rule
        finally:
            self.remove(rule)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so of rules or journal; looked at whenever one of them changes."""
        await self._changes.until(is_so)

    def _link(self, client: str) -> Link:
        if client not in self._links:
            raise ValueError(f"client {client!r} has no port; open it first")
        return self._links[client]

    async def _handle(self, link: Link, incoming: web.Request) -> web.StreamResponse:
        request = read_request_info(link.client, incoming.method, target=incoming.raw_path)
        entry = self.journal.note(request, asyncio.get_running_loop().time())
        acts = [Act(rule, self._changes.announce) for rule in self._rules if rule.picks(request)]
        self._changes.announce()
        exchange = Exchange(
            incoming,
            entry,
            acts=acts,
            link=link,
            upstream=self._upstream,
            changes=self._changes,
            outlive=self._outlive,
        )
        return await exchange.run()

    async def _outlive(self, work: Coroutine[Any, Any, Reply]) -> Reply:
        """Wait for it; if the waiting is cancelled, because the client is gone, it goes on all the same."""
        task = asyncio.create_task(work)
        self._late.add(task)
        task.add_done_callback(self._forget_late)
        return await asyncio.shield(task)

    def _forget_late(self, task: asyncio.Task[Reply]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it is told; nobody may be there any more
