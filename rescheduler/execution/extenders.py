"""Have the extenders seen it? Asked at every address right before an eviction.

The replacement of an evicted pod reaches the extender within milliseconds. So every extender must have seen
the note and the open move before the eviction is sent: then whichever of them kube-scheduler asks will draw
the replacement to its destination. An address that refuses the connection is nobody's; silence is a "no".
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp

from reberth.client.api import Api
from reberth.cluster.kinds import plain
from reberth.cluster.resources import Resource
from reberth.records import ObjectMeta, Record
from reberth.values.errors import ConfigurationError
from reberth.values.refusal import Refused
from rescheduler.settings import ClientTls, ExtenderAccess

NOT_SEEN = "NotSeen"
NO_EXTENDER = Refused(NOT_SEEN, "there is no extender to be asked")


class Endpoint(Record, frozen=True):
    addresses: tuple[str, ...] | None = None


class EndpointPort(Record, frozen=True):
    name: str | None = None
    port: int | None = None


class EndpointSlice(Record, frozen=True):
    """The addresses behind a Service, ready or not."""

    metadata: ObjectMeta
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None


ENDPOINT_SLICES: Resource[EndpointSlice] = Resource(
    plain("EndpointSlice", EndpointSlice, "discovery.k8s.io"), "endpointslices"
)


class ObjectVersion(NamedTuple):
    """An object, and the version of it that must have been seen."""

    resource: str
    namespace: str
    name: str
    version: str


class ExtenderClient:
    """Asks the extenders; one connection pool for all questions."""

    def __init__(self, api: Api, access: ExtenderAccess, session: aiohttp.ClientSession) -> None:
        self._api = api
        self._access = access
        self._session = session

    async def refuse_unseen(self, sought: Iterable[ObjectVersion]) -> Refused | None:
        """Tell whether some extender has not seen one of the objects in time."""
        addresses = await self._find_addresses()
        questions = [self._ask(address, one) for address in addresses for one in sought]
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
        """The empty text: seen. None: nobody is there. Else why not."""
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
            return None if isinstance(error.os_error, ConnectionRefusedError) else _blame(address, str(error))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return _blame(address, str(error) or f"no answer within {wait:g} s")
        return said and _blame(address, f"has not seen {sought.resource} {sought.name} ({said})")

    @asynccontextmanager
    async def _send(self, address: str, asked: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        tls = self._access.tls
        scheme, name = ("https", tls.server_name or None) if tls else ("http", None)
        url = f"{scheme}://{address}/seen"
        async with self._session.get(url, params=asked, server_hostname=name) as answer:
            yield answer


@asynccontextmanager
async def connect_to_extenders(api: Api, access: ExtenderAccess) -> AsyncIterator[ExtenderClient]:
    """Ask while the context lasts. Raises ConfigurationError for certificates that cannot be used."""
    trust = _load(access.tls) if access.tls else True
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        yield ExtenderClient(api, access, session)


def _load(tls: ClientTls) -> ssl.SSLContext:
    try:
        trust = ssl.create_default_context(cafile=tls.ca)
        trust.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        raise ConfigurationError(f"extenderAccess.tls: {error}") from error
    return trust


def _join(each: EndpointSlice) -> list[str]:
    """Every address with the slice's first port; a Service for extenders has one."""
    port = next((port.port for port in each.ports or () if port.port), None)
    hosts = [address for endpoint in each.endpoints or () for address in endpoint.addresses or ()]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts] if port else []


def _blame(address: str, what: str) -> str:
    return f"{address}: {what}"
