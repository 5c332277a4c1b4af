"""A client for objects of any kind: JSON in and out, beside the library's records."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar
from uuid import uuid4

import aiohttp
import msgspec

from federation.api.labels import LABELS
from federation.hub.call_priority import CallPriority
from federation.objects.template import Object, ResourceTemplate, ResourceTemplateReader
from reberth.client.api import Api
from reberth.client.lease import Leadership
from reberth.cluster.kinds import Resource
from reberth.protocol.request import APPLY, ApiRequest
from reberth.protocol.response import Reader
from reberth.records import Record
from reberth.values.errors import Unreadable
from reberth.values.text_limits import UNREADABLE

T = TypeVar("T", bound=Record)

MANAGER = "reberth-federation"
WRITES = frozenset({"create", "update", "patch", "delete"})


class ObjectApi(Api):
    """Calls with whole objects, the most urgent first. Every write first checks that we still hold the lease.

    The deadline of a call starts after it got its turn.
    """

    leadership: Leadership | None = None
    _priority: CallPriority | None = None

    async def __aenter__(self) -> Self:
        clock, settings = asyncio.get_running_loop().time, self.settings
        self._priority = CallPriority(rate=settings.requests_per_second, burst=settings.burst, clock=clock)
        return await super().__aenter__()

    async def wait_for_turn(self) -> None:
        """Wait until a call of this task's urgency would be sent at once."""
        if self._priority is not None:
            await self._priority.wait_for_turn()

    async def create_object(self, resource: Resource[Any], body: Object, *, namespace: str = "") -> Object:
        """Create an object, with a permanent id if its kind has one: the webhook does not see our writes."""
        path, whole = resource.path(namespace=namespace), _identify(resource, body)
        request = ApiRequest("create", resource.name, path, body=msgspec.json.encode(whole))
        return _read(await self._write(request))

    async def create_in(
        self, resource: Resource[Any], name: str, subresource: str, body: Object, *, namespace: str = ""
    ) -> Object:
        """Create in a subresource, such as a token of a service account."""
        path = resource.path(name, namespace=namespace, subresource=subresource)
        subject = f"{resource.name}/{subresource}"
        return _read(await self._write(ApiRequest("create", subject, path, body=msgspec.json.encode(body))))

    async def apply_object(
        self,
        resource: Resource[T],
        name: str,
        body: Object,
        *,
        namespace: str = "",
        manager: str = MANAGER,
        is_forced: bool = True,
    ) -> T:
        """Server-side apply; fields of other managers are taken over, or are a Conflict if not forced."""
        query = {"fieldManager": manager, "force": str(is_forced).lower()}
        path = resource.path(name, namespace=namespace)
        request = ApiRequest("patch", resource.name, path, query, msgspec.json.encode(body), APPLY)
        return self._reader(resource).read(str(request), await self._write(request))

    async def remove_object(
        self,
        resource: Resource[Any],
        name: str,
        *,
        uid: str,
        namespace: str = "",
        version: str | None = None,
        to_the_end: bool = False,
    ) -> None:
        """Delete the object with this uid, and this version if given.

        Dependents go in the background, or before it: `to_the_end` keeps the object until they are gone.
        """
        preconditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
        policy = "Foreground" if to_the_end else "Background"
        options = {"preconditions": preconditions, "propagationPolicy": policy}
        path = resource.path(name, namespace=namespace)
        await self._write(ApiRequest("delete", resource.name, path, body=msgspec.json.encode(options)))

    async def read_path(self, path: str, *, subject: str) -> Mapping[str, Any]:
        """Read a path that is not a resource, such as the groups of the API."""
        request = ApiRequest("get", subject, path)
        content = await self._read(request)
        try:
            return msgspec.json.decode(content, type=dict[str, Any])
        except UNREADABLE as error:
            raise Unreadable(str(request), f"invalid answer: {error}") from error

    async def probe(self, *, within: float) -> None:
        """Call /readyz once. Raises an ApiError, or a TimeoutError."""
        async with asyncio.timeout(within):
            await self._once(ApiRequest("get", "readyz", "/readyz"))

    def _reader(self, resource: Resource[T]) -> Reader[T]:
        """Resource templates are read whole."""
        if resource.record is ResourceTemplate and ResourceTemplate not in self._readers:
            self._readers[ResourceTemplate] = ResourceTemplateReader()
        return super()._reader(resource)

    @asynccontextmanager
    async def _deadline(self, request: ApiRequest) -> AsyncIterator[None]:
        priority = self._priority
        if priority is None:
            raise RuntimeError("the API client is used outside of its context")
        async with priority, super()._deadline(request):
            yield

    async def _send(self, request: ApiRequest) -> aiohttp.ClientResponse:
        if self.leadership is not None and request.verb in WRITES:
            self.leadership.check()
        return await super()._send(request)


def _identify(resource: Resource[Any], body: Object) -> Object:
    label, metadata = LABELS.get(resource.kind.name), body.get("metadata", {})
    labels = metadata.get("labels") or {}
    if label is None or labels.get(label):
        return body
    return {**body, "metadata": {**metadata, "labels": {**labels, label: str(uuid4())}}}


def _read(body: bytes) -> Object:
    found: Object = msgspec.json.decode(body)
    return found
