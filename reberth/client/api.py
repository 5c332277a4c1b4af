"""A client of the API server: records in and out; every unsuccessful response is a typed error.

Every call has a deadline and may be cancelled at any point; whether a write was carried out is then unknown.
A call is only repeated where that is safe: reads, and requests that the server has not processed (401, or no
trust in its certificate, after the credentials were read again; 429 without a cause).
"""

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from reberth.client.access import Access, Connection
from reberth.client.answer import (
    breaking_off,
    close_unread,
    limit_of,
    read_failure,
    read_lines,
    read_parts,
)
from reberth.client.body import ResponseBody
from reberth.client.rate_limit import RateLimiter
from reberth.client.server_clock import ServerClock
from reberth.cluster.kinds import PODS, Resource
from reberth.config.settings import AtLeastOne, Positive, Section
from reberth.protocol.page import PartialPage
from reberth.protocol.request import APPLY, JSON, MERGE, ApiRequest
from reberth.protocol.response import BadObject, Page, Reader, WatchEvent
from reberth.records import Record
from reberth.runtime import metrics
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.jitter import jittered_backoff
from reberth.values.text_limits import UNREADABLE

T = TypeVar("T", bound=Record)
R = TypeVar("R")

_FIRST_PAUSE = 0.4  # seconds
# To find a counter by its labels takes longer than to count.
_counter, _duration = cache(metrics.API_REQUESTS.labels), cache(metrics.API_REQUEST_DURATION.labels)
_READING = ("get", "list", "watch")

_HEADERS = {
    "Accept": JSON,
    "Accept-Encoding": "identity",  # in one data centre compressing costs more than sending
    "User-Agent": "reberth",
}


class _ServerVersion(Record, frozen=True):
    major: str
    minor: str


class ApiSettings(Section, frozen=True):
    """Rate limits, deadlines and retries of the client."""

    requests_per_second: Positive = 50.0
    burst: AtLeastOne = 100
    deadline: Positive = 30.0
    tries: AtLeastOne = 4
    page_size: AtLeastOne = 500


class Api:
    """A client of one API server; an async context. Any number of tasks may use it at once."""

    def __init__(
        self,
        access: Access,
        settings: ApiSettings = ApiSettings(),  # noqa: B008 - frozen
        clock: ServerClock | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or ServerClock()
        """The API server's time: every answer is heard."""
        self._connection = Connection(access)
        self._readers: dict[type[Record], Reader[Any]] = {}
        self._throttle: RateLimiter | None = None
        self._check: Callable[[], None] = _allow

    async def __aenter__(self) -> Self:
        clock = asyncio.get_running_loop().time
        settings = self.settings
        self._throttle = RateLimiter(rate=settings.requests_per_second, burst=settings.burst, clock=clock)
        await self._connection.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.__aexit__(kind, error, trace)

    @property
    def server(self) -> str:
        """Its address."""
        return self._connection.server

    def guarded(self, check: Callable[[], None]) -> Self:
        """Give the same client with a check before every write; what the check raises stops the write.

        A leader passes its lease's check. It runs right before each write leaves, after all waiting: a lease
        that was lost while a write waited for the rate limit must stop that write.
        """
        guarded = copy.copy(self)
        guarded._check = check  # noqa: SLF001 - it is of this class
        return guarded

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        request = ApiRequest("get", resource.name, resource.path(name, namespace=namespace))
        return self._reader(resource).read(str(request), await self._read(request))

    async def list_pages(
        self, resource: Resource[T], *, namespace: str = "", **selection: str
    ) -> AsyncIterator[Page[T]]:
        """A consistent list, page by page; `Gone` where it took so long that the rest is lost."""
        query = {**selection, "limit": str(self.settings.page_size)}
        while True:
            request = ApiRequest("list", resource.name, resource.path(namespace=namespace), query)
            page = self._reader(resource).read_page(str(request), await self._read(request))
            yield page
            if not page.continues:
                return
            query = {**selection, "limit": str(self.settings.page_size), "continue": page.continues}

    async def list_parts(
        self, resource: Resource[T], *, namespace: str = "", **selection: str
    ) -> AsyncGenerator[Page[T], None]:
        """A consistent list in the parts in which it arrives; each must be read before the next one.

        Nothing of it is held, and the next page is asked for as soon as the one before has begun. What breaks
        off is not read again: by then the caller may have seen objects that are deleted before it is.
        """
        query = {**selection, "limit": str(self.settings.page_size)}
        request = ApiRequest("list", resource.name, resource.path(namespace=namespace), query)
        following: asyncio.Task[aiohttp.ClientResponse] | None = self._begin(request)
        try:
            while following:
                answer, following = await following, None
                page = PartialPage(str(request), self._reader(resource))
                async with answer:
                    async for part in read_parts(request, page, answer):
                        if page.continues and following is None:
                            request = replace(request, query={**query, "continue": page.continues})
                            following = self._begin(request)
                        yield part
        finally:
            if following:
                following.cancel()
                following.add_done_callback(close_unread)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[T],
        *,
        since: str | None,
        seconds: float,
        namespace: str = "",
        **selection: str,
    ) -> AsyncIterator[AsyncIterator[WatchEvent[T] | BadObject]]:
        """The events after a version; with `since` None all objects first, then what happens to them.

        The server ends it after so many seconds. Leaving the context closes the connection.
        """
        query = {
            **selection,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(seconds)),
        }
        if since is None:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        else:
            query["resourceVersion"] = since
        request = ApiRequest("watch", resource.name, resource.path(namespace=namespace), query)
        async with self._deadline(request):
            answer = await self._open(request)
        async with answer:
            yield read_lines(request, self._reader(resource), answer)

    async def create(self, resource: Resource[T], body: T, *, namespace: str = "") -> T:
        path = resource.path(namespace=namespace)
        request = ApiRequest("create", resource.name, path, body=resource.encode(body))
        return self._reader(resource).read(str(request), await self._write(request))

    async def try_create(self, resource: Resource[T], body: Mapping[str, Any], *, namespace: str) -> T:
        """Ask in a dry run what would become of a new object."""
        whole = {"apiVersion": resource.api_version, "kind": resource.kind.name, **body}
        path, query = resource.path(namespace=namespace), {"dryRun": "All"}
        request = ApiRequest("create", resource.name, path, query, msgspec.json.encode(whole))
        return self._reader(resource).read(str(request), await self._write(request))

    async def merge(
        self,
        resource: Resource[T],
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> T:
        """Merge patch; `metadata.resourceVersion` in it makes it a precondition."""
        path = resource.path(name, namespace=namespace, subresource=subresource)
        request = ApiRequest("patch", resource.name, path, body=msgspec.json.encode(patch), content=MERGE)
        return self._reader(resource).read(str(request), await self._write(request))

    async def apply(
        self, resource: Resource[T], name: str, body: T, *, manager: str, namespace: str = ""
    ) -> T:
        """Server-side apply of our fields; a field of another manager is a `Conflict`."""
        path, query = resource.path(name, namespace=namespace), {"fieldManager": manager}
        request = ApiRequest("patch", resource.name, path, query, resource.encode(body), APPLY)
        return self._reader(resource).read(str(request), await self._write(request))

    async def replace(
        self, resource: Resource[T], name: str, body: T, *, namespace: str = "", subresource: str = ""
    ) -> T:
        """PUT of the whole object or of its status; its resourceVersion is the precondition."""
        path = resource.path(name, namespace=namespace, subresource=subresource)
        request = ApiRequest("update", resource.name, path, body=resource.encode(body))
        return self._reader(resource).read(str(request), await self._write(request))

    async def delete(self, resource: Resource[T], name: str, *, uid: str, namespace: str = "") -> None:
        """Delete the object with this uid, but no other object of that name."""
        options = msgspec.json.encode({"preconditions": {"uid": uid}})
        await self._write(
            ApiRequest("delete", resource.name, resource.path(name, namespace=namespace), body=options)
        )

    async def evict(
        self,
        name: str,
        *,
        namespace: str,
        uid: str,
        version: str | None = None,
        dry_run: bool = False,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Evict the pod with this uid, and with this resourceVersion if one is given.

        A refusal by a PDB is an error with the cause `DisruptionBudget`. A dry run is asked for in the query
        too: from the body alone the API server does not tell webhooks of it, and one with side effects would
        carry them out for an eviction that may never come.
        """
        conditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
        options: dict[str, Any] = {"preconditions": conditions}
        if dry_run:
            options["dryRun"] = ["All"]
        metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}}
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": metadata,
            "deleteOptions": options,
        }
        path = PODS.path(name, namespace=namespace, subresource="eviction")
        query = {"dryRun": "All"} if dry_run else {}
        await self._write(ApiRequest("evict", PODS.name, path, query, msgspec.json.encode(eviction)))

    async def version(self) -> str:
        """The version of the server, such as `1.37`."""
        said = await self.read_document("/version", _ServerVersion)
        return f"{said.major}.{said.minor.rstrip('+')}"

    async def read_document(self, path: str, form: type[R]) -> R:
        """Read what is no object, such as the kinds of a group."""
        request = ApiRequest("get", path.split("/")[1], path)
        content = await self._read(request)
        try:
            return msgspec.json.decode(content, type=form)
        except UNREADABLE as error:
            raise errors.Unreadable(str(request), str(error)) from error

    async def _read(self, request: ApiRequest) -> bytes:
        return await self._retry(request, self._once)

    async def _retry(self, request: ApiRequest, call: Callable[[ApiRequest], Coroutine[Any, Any, R]]) -> R:
        """Retry a read until the server answers, the attempts are used up, or the deadline passes."""
        async with self._deadline(request):
            for attempt in range(1, self.settings.tries):
                try:
                    return await call(request)
                except errors.PASSING as error:
                    await self._pause(request, attempt, error)
            return await call(request)

    async def _write(self, request: ApiRequest) -> bytes:
        """Retry only what the server rejected unprocessed."""
        async with self._deadline(request):
            for attempt in range(1, self.settings.tries):
                try:
                    return await self._once(request)
                except errors.TooManyRequests as error:
                    if error.is_decided:
                        raise
                    await self._pause(request, attempt, error)
            return await self._once(request)

    async def _pause(self, request: ApiRequest, attempt: int, error: ApiError) -> None:
        metrics.API_RETRIES.labels(request.verb, request.subject).inc()
        pause = jittered_backoff(attempt, first=_FIRST_PAUSE, at_least=error.retry_after or 0.0)
        await asyncio.sleep(pause)

    @asynccontextmanager
    async def _deadline(self, request: ApiRequest) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.settings.deadline):
                yield
        except TimeoutError as error:
            raise errors.Unanswered(str(request), f"no answer within {self.settings.deadline:g} s") from error

    def _begin(self, request: ApiRequest) -> asyncio.Task[aiohttp.ClientResponse]:
        return asyncio.create_task(self._retry(request, self._open))

    async def renew_credentials(self) -> None:
        """Read the credentials again, for whoever knows that they have changed."""
        await self._connection.renew(self._connection.renewals)

    async def _once(self, request: ApiRequest) -> bytes:
        answer = await self._open(request)
        with breaking_off(request):
            async with answer:
                return await ResponseBody(answer).whole(limit_of(request))

    async def _open(self, request: ApiRequest) -> aiohttp.ClientResponse:
        """Give a successful response with its body unread. Credentials and certificates are renewed once."""
        seen = self._connection.renewals
        try:
            return await self._send(request)
        except (errors.Unauthorized, errors.Untrusted):
            await self._connection.renew(seen)
        return await self._send(request)

    async def _send(self, request: ApiRequest) -> aiohttp.ClientResponse:
        if self._throttle is None:
            raise RuntimeError("the API client is used outside of its context")
        await self._throttle.take()
        if request.verb not in _READING:
            self._check()
        started, sent = time.monotonic(), self.clock.elapsed()
        code = metrics.UNANSWERED
        try:
            with breaking_off(request):
                answer = await self._connection.send(
                    request.method,
                    request.target,
                    headers={**_HEADERS, "Content-Type": request.content},
                    body=request.body,
                )
            self.clock.hear(answer.headers.get("Date"), sent=sent)
            code = metrics.bounded(str(answer.status), metrics.API_CODES)
        finally:
            _counter(request.verb, request.subject, code).inc()
            _duration(request.verb, request.subject).observe(time.monotonic() - started)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise await read_failure(request, answer)
        return answer

    def _reader(self, resource: Resource[T]) -> Reader[T]:
        record = resource.record
        if record not in self._readers:
            self._readers[record] = Reader(record)
        return self._readers[record]


def _allow() -> None:
    """Allow every write: the client is not guarded."""
