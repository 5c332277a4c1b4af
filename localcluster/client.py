"""A plain JSON client of the API server, to set up clusters and inspect them."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import aiohttp

from localcluster import credentials
from localcluster.components import Design
from localcluster.errors import LocalClusterError

Object = dict[str, Any]
_AT_ONCE = 64
_LONGEST_ANSWER = 60.0
_BETWEEN_TRIES = 0.1
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"  # JSON is YAML, too
_FIELD_MANAGER = "localcluster"
_LONGEST_SIGHT = 2000  # characters of an object in an error: enough for its status, not for a whole list
# 429 is also what a new kind answers while its storage is set up.
_NOT_YET = (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS)
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Refused(LocalClusterError):
    """The API server refused a request."""

    def __init__(self, request: str, status: int, body: Any) -> None:
        message = body.get("message") if isinstance(body, dict) else body
        super().__init__(f"{request}: {status} {message}")
        self.status = status
        self.body = body


class Client:
    """An async context with a session as one user, the administrator by default."""

    def __init__(self, design: Design, user: str = credentials.ADMIN) -> None:
        self._design = design
        self._headers = {"Authorization": f"Bearer {credentials.read_token(design, user)}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        trust = ssl.create_default_context(cafile=str(self._design.path("pki", "ca.crt")))
        self._session = aiohttp.ClientSession(
            self._design.url,
            headers=self._headers,
            connector=aiohttp.TCPConnector(ssl=trust, limit=_AT_ONCE),
            timeout=aiohttp.ClientTimeout(total=_LONGEST_ANSWER),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self, method: str, path: str, body: Any = None, *, patch: str = _MERGE, accept: str = "*/*"
    ) -> Any:
        """The decoded answer; anything but success raises `Refused`."""
        if self._session is None:
            raise RuntimeError("the client is not open")
        kind = patch if method == "PATCH" else "application/json"
        headers = {"Accept": accept} | ({"Content-Type": kind} if body is not None else {})
        async with self._session.request(method, path, json=body, headers=headers) as answer:
            is_json = answer.content_type == "application/json"
            content = await answer.json() if is_json else await answer.text()
            if answer.status >= 300:
                raise Refused(f"{method} {path}", answer.status, content)
            return content

    async def get(self, path: str) -> Any:
        return await self.request("GET", path)

    async def table(self, path: str) -> list[Object]:
        """The rows that `kubectl get` prints, by the names of their columns."""
        found = await self.request("GET", path, accept=_TABLE)
        names = [column["name"] for column in found["columnDefinitions"]]
        return [dict(zip(names, row["cells"], strict=True)) for row in found["rows"]]

    async def create(self, path: str, body: Object) -> Object:
        created: Object = await self.request("POST", path, body)
        return created

    async def create_if_absent(self, path: str, body: Object) -> None:
        try:
            await self.create(path, body)
        except Refused as refused:
            if refused.status != HTTPStatus.CONFLICT:
                raise

    async def create_all(self, path: str, bodies: Iterable[Object]) -> None:
        """Create many objects concurrently; stops at the first that is refused."""
        await all_of(self.create(path, body) for body in bodies)

    async def patch(self, path: str, body: Any) -> Object:
        patched: Object = await self.request("PATCH", path, body)
        return patched

    async def apply(self, path: str, body: Object) -> Object:
        """Create or change an object by server-side apply: a concurrent writer is no conflict."""
        query = f"fieldManager={_FIELD_MANAGER}&force=true"
        deadline = time.monotonic() + _LONGEST_ANSWER
        while True:
            try:
                applied: Object = await self.request("PATCH", f"{path}?{query}", body, patch=_APPLY)
            except Refused as refused:
                if refused.status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_BETWEEN_TRIES)
            else:
                return applied

    async def delete(self, path: str, options: Object | None = None) -> Object:
        deleted: Object = await self.request("DELETE", path, options)
        return deleted

    async def wait(
        self, path: str, until: Callable[[Any], bool], *, seconds: float = 30.0, every: float = 0.1
    ) -> Any:
        """Poll until the predicate holds; 404 and 429 count as not yet."""
        last: Any = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    last = await self._get_or_none(path)
                    if last is not None and until(last):
                        return last
                    await asyncio.sleep(every)
        except TimeoutError as error:
            seen = str(last)[:_LONGEST_SIGHT]
            raise LocalClusterError(
                f"{path} did not reach the expected state within {seconds:g} s; last seen: {seen}"
            ) from error

    async def watch(self, path: str, version: str) -> AsyncIterator[Object]:
        """The events of a watch from a resourceVersion on, until the server ends it."""
        if self._session is None:
            raise RuntimeError("the client is not open")
        query, never = f"watch=1&resourceVersion={version}", aiohttp.ClientTimeout(total=None)
        async with self._session.get(f"{path}?{query}", timeout=never) as answer:
            if answer.status >= 300:
                raise Refused(f"WATCH {path}", answer.status, await answer.text())
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)

    async def _get_or_none(self, path: str) -> Any:
        try:
            return await self.get(path)
        except Refused as error:
            if error.status in _NOT_YET:
                return None
            raise


async def all_of(work: Iterable[Awaitable[object]], *, at_once: int = _AT_ONCE) -> None:
    """Await all, a limited number at a time; the first failure cancels the others and is raised."""
    places = asyncio.Semaphore(at_once)

    async def one(item: Awaitable[object]) -> None:
        async with places:
            await item

    try:
        async with asyncio.TaskGroup() as group:
            for item in work:
                group.create_task(one(item))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
