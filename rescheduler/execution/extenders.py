"""Client of the extenders: asks every one of them, right before an eviction, whether it has seen the move.

The replacement of an evicted pod reaches the extender within milliseconds. So every extender must have seen
the note and the open move before the eviction is sent: then any of them sends the replacement to its
destination. An address that refuses the connection has no extender and does not count; no answer counts as
"not seen".
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import aiohttp

from reberth.client.api import Api
from reberth.cluster.kinds import Resource, plain_kind
from reberth.records import ObjectMeta, Record
from reberth.runtime.certificates import ClientTls, LiveClientCertificate
from reberth.runtime.live_files import LOOK_INTERVAL
from reberth.values.errors import ConfigurationError, ServingError
from reberth.values.refusal import Refused
from rescheduler.settings import ExtenderAccess

NOT_SEEN = "NotSeen"
NO_EXTENDER = Refused(NOT_SEEN, "no extender can be reached")


class Endpoint(Record, frozen=True):
    addresses: tuple[str, ...] | None = None


class EndpointPort(Record, frozen=True):
    name: str | None = None
    port: int | None = None


class EndpointSlice(Record, frozen=True):
    """The addresses of a Service, ready or not."""

    metadata: ObjectMeta
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None


ENDPOINT_SLICES: Resource[EndpointSlice] = Resource(
    plain_kind("EndpointSlice", EndpointSlice, "discovery.k8s.io"), "endpointslices"
)


class ObjectVersion(NamedTuple):
    """An object, and the resourceVersion that an extender must have seen."""

    resource: str
    namespace: str
    name: str
    version: str


class ExtenderClient:
    """Asks the extenders over one connection pool."""

    def __init__(
        self,
        api: Api,
        access: ExtenderAccess,
        session: aiohttp.ClientSession,
        certificate: LiveClientCertificate | None,
    ) -> None:
        self._api = api
        self._access = access
        self._session = session
        self._certificate = certificate

    def list_remarks(self) -> Iterator[str]:
        """Tell whether a renewed client certificate is not in use because it is refused."""
        yield from self._certificate.list_remarks() if self._certificate else ()

    async def refuse_unseen(self, objects: Iterable[ObjectVersion]) -> Refused | None:
        """Refuse if an extender has not seen one of the objects in time, or if there is none."""
        addresses = await self._find_addresses()
        questions = [self._ask(address, one) for address in addresses for one in objects]
        answers = await asyncio.gather(*questions)
        if all(answer is None for answer in answers):
            return NO_EXTENDER
        troubles = sorted({answer for answer in answers if answer})
        return Refused(NOT_SEEN, "; ".join(troubles)) if troubles else None

    async def _find_addresses(self) -> list[str]:
        if self._access.addresses:
            return list(self._access.addresses)
        selection = {"labelSelector": f"kubernetes.io/service-name={self._access.service}"}
        pages = self._api.list_pages(ENDPOINT_SLICES, namespace=self._access.namespace, **selection)
        return sorted({address async for page in pages for each in page.objects for address in _join(each)})

    async def _ask(self, address: str, sought: ObjectVersion) -> str | None:
        """Give "" if it has been seen, None if there is no extender at this address, else the trouble."""
        wait = self._access.wait
        asked = {
            "resource": sought.resource,
            "namespace": sought.namespace,
            "name": sought.name,
            "resourceVersion": sought.version,
            "wait": f"{wait:g}s",
        }
        try:
            async with asyncio.timeout(wait), self._send(address, asked) as answer:
                said = "" if answer.status == 200 else f"code {answer.status}"
        except ConnectionRefusedError:
            return None
        except aiohttp.ClientConnectorError as error:
            return (
                None
                if isinstance(error.os_error, ConnectionRefusedError)
                else _describe_trouble(address, str(error))
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return _describe_trouble(address, str(error) or f"no answer within {wait:g} s")
        return said and _describe_trouble(address, f"has not seen {sought.resource} {sought.name} ({said})")

    @asynccontextmanager
    async def _send(self, address: str, asked: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        tls = self._access.tls
        scheme, name = ("https", tls.server_name or None) if tls else ("http", None)
        url = f"{scheme}://{address}/seen"
        async with self._session.get(url, params=asked, server_hostname=name) as answer:
            yield answer


@asynccontextmanager
async def connect_to_extenders(
    api: Api, access: ExtenderAccess, *, look_interval: float = LOOK_INTERVAL
) -> AsyncIterator[ExtenderClient]:
    """Connect while the context lasts. Raises ConfigurationError for certificates that cannot be used.

    A client certificate that is renewed on disk is shown on the next connection.
    """
    certificate = _open_certificate(access.tls) if access.tls else None
    connector = aiohttp.TCPConnector(ssl=certificate.context if certificate else True)
    async with aiohttp.ClientSession(connector=connector) as session, AsyncExitStack() as stack:
        if certificate:
            renewal = asyncio.create_task(certificate.follow(look_interval))
            stack.callback(renewal.cancel)
        yield ExtenderClient(api, access, session, certificate)


def _open_certificate(tls: ClientTls) -> LiveClientCertificate:
    try:
        return LiveClientCertificate(tls)
    except ServingError as error:
        raise ConfigurationError(f"extenderAccess.tls: {error}") from None


def _join(each: EndpointSlice) -> list[str]:
    """Give every address with the first port of the slice: the Service of the extenders has one port."""
    port = next((port.port for port in each.ports or () if port.port), None)
    hosts = [address for endpoint in each.endpoints or () for address in endpoint.addresses or ()]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts] if port else []


def _describe_trouble(address: str, what: str) -> str:
    return f"{address}: {what}"
