"""An API server, for objects of any kind: plain JSON in and out, beside the records of the library."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from federation.controllers.templates import Object
from reberth.api import Api
from reberth.leasing import Leadership
from reberth.records import Record
from reberth.requesting import APPLY, Request
from reberth.resources import Resource

T = TypeVar("T", bound=Record)

MANAGER = "reberth-federation"


class ObjectApi(Api):
    """Calls with whole objects. Every write is preceded by a look whether we still lead."""

    leadership: Leadership | None = None

    async def create_object(self, resource: Resource[Any], body: Object, *, namespace: str = "") -> Object:
        path = resource.path(namespace=namespace)
        request = Request("create", resource.name, path, body=msgspec.json.encode(body))
        return _read(await self._write(request))

    async def apply_object(
        self, resource: Resource[T], name: str, body: Object, *, namespace: str = "", manager: str = MANAGER
    ) -> T:
        """Server-side apply of whole objects; what others hold of it becomes ours."""
        query = {"fieldManager": manager, "force": "true"}
        path = resource.path(name, namespace=namespace)
        request = Request("patch", resource.name, path, query, msgspec.json.encode(body), APPLY)
        return self._reader(resource).read(str(request), await self._write(request))

    async def remove_object(
        self, resource: Resource[Any], name: str, *, uid: str, namespace: str = ""
    ) -> None:
        """Delete the object of this uid, and in the background what it owns."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        path = resource.path(name, namespace=namespace)
        await self._write(Request("delete", resource.name, path, body=msgspec.json.encode(options)))

    async def read_path(self, path: str, *, subject: str) -> Mapping[str, Any]:
        """Read what is no object of a kind, such as the groups of the API."""
        return _read(await self._read(Request("get", subject, path)))

    async def probe(self, *, within: float) -> None:
        """Ask once whether the server is ready. Raises an ApiError, or a TimeoutError."""
        async with asyncio.timeout(within):
            await self._once(Request("get", "readyz", "/readyz"))

    async def _write(self, request: Request) -> bytes:
        if self.leadership is not None:
            self.leadership.check()
        return await super()._write(request)


def _read(body: bytes) -> Object:
    found: Object = msgspec.json.decode(body)
    return found
