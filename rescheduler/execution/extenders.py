"""Client of the extenders: asks every one of them, right before an eviction, whether it has seen the move.

The replacement of an evicted pod reaches the extender within milliseconds. So every extender must have seen
the note and the open move before the eviction is sent: then any of them sends the replacement to its
destination. An address that refuses the connection has no extender and does not count; no answer counts as
"not seen".

The addresses of the extenders are watched. Where the watch is in trouble they are listed for each question,
and likewise before a move is refused: an address that the watch still knows may have gone, and an extender of
which it does not know yet could not be asked.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import aiohttp

from reberth.client.api import Api
from reberth.client.mirror import mirroring
from reberth.client.watcher import Watcher, WatchSettings
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import Resource, plain_kind
from reberth.cluster.pods.requests import NEWEST
from reberth.records import ObjectMeta, Record
from reberth.runtime.certificates import ClientTls, LiveClientCertificate
from reberth.runtime.live_files import LOOK_INTERVAL
from reberth.runtime.logs import Log
from reberth.values.errors import ConfigurationError, ServingError
from reberth.values.refusal import Refused
from rescheduler.settings import ExtenderAccess

NOT_SEEN = "NotSeen"
NO_EXTENDER = Refused(NOT_SEEN, "no extender can be reached")

log = Log(__name__)


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


class ServiceAddresses:
    """The addresses of a Service, ready or not: watched, and listed while the watch is in trouble."""

    def __init__(
        self, api: Api, access: ExtenderAccess, cache: Cache, watcher: Watcher[EndpointSlice]
    ) -> None:
        self._api = api
        self._access = access
        self._slices = cache.of(ENDPOINT_SLICES.kind)
        self._watcher = watcher
        self._is_listing = False

    def list_remarks(self) -> Iterator[str]:
        """Tell why the addresses are listed for each question."""
        if trouble := self._watcher.trouble:
            yield f"{ENDPOINT_SLICES.name}: {trouble}; listed for each question"

    def find_watched(self) -> list[str] | None:
        """Give the addresses that the watch has brought; None while it is in trouble."""
        trouble = self._watcher.trouble
        self._tell(trouble)
        return None if trouble else _join_all(self._slices.rows())

    async def read(self) -> list[str]:
        """Read the addresses from the API server. Raises ApiError."""
        pages = self._api.list_pages(ENDPOINT_SLICES, **_select_slices(self._access))
        return _join_all([each async for page in pages for each in page.objects])

    def _tell(self, trouble: str | None) -> None:
        """Log once that the addresses are listed from now on, and once that they no longer are."""
        if trouble and not self._is_listing:
            log.info("addresses of the extenders are listed for each question", reason=trouble)
        elif self._is_listing and not trouble:
            log.info("addresses of the extenders are watched again")
        self._is_listing = bool(trouble)


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
        access: ExtenderAccess,
        session: aiohttp.ClientSession,
        certificate: LiveClientCertificate | None,
        addresses: ServiceAddresses | None,
    ) -> None:
        self._access = access
        self._session = session
        self._certificate = certificate
        self._addresses = addresses

    def list_remarks(self) -> Iterator[str]:
        """Tell of a renewed client certificate that is refused, and of addresses that cannot be watched."""
        yield from self._certificate.list_remarks() if self._certificate else ()
        yield from self._addresses.list_remarks() if self._addresses else ()

    async def refuse_unseen(self, objects: Iterable[ObjectVersion]) -> Refused | None:
        """Refuse if an extender has not seen one of the objects in time, or if there is none."""
        sought = tuple(objects)
        if self._addresses is None:
            return await self._refuse_unseen(self._access.addresses, sought)
        watched = self._addresses.find_watched()
        refused = None if watched is None else await self._refuse_unseen(watched, sought)
        if watched is not None and refused is None:
            return None
        listed = await self._addresses.read()
        return refused if listed == watched else await self._refuse_unseen(listed, sought)

    async def _refuse_unseen(
        self, addresses: Iterable[str], objects: tuple[ObjectVersion, ...]
    ) -> Refused | None:
        questions = [self._ask(address, one) for address in addresses for one in objects]
        answers = await asyncio.gather(*questions)
        if all(answer is None for answer in answers):
            return NO_EXTENDER
        troubles = sorted({answer for answer in answers if answer})
        return Refused(NOT_SEEN, "; ".join(troubles)) if troubles else None

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
    api: Api,
    access: ExtenderAccess,
    *,
    watch: WatchSettings = WatchSettings(),  # noqa: B008 - frozen
    look_interval: float = LOOK_INTERVAL,
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
        addresses = None
        if not access.addresses:
            addresses = await stack.enter_async_context(watch_addresses(api, access, watch))
        yield ExtenderClient(access, session, certificate, addresses)


@asynccontextmanager
async def watch_addresses(
    api: Api, access: ExtenderAccess, settings: WatchSettings
) -> AsyncIterator[ServiceAddresses]:
    """Watch the addresses of the extenders' Service while the context lasts."""
    # A cache of their own: old addresses stop no plan, as old pods would.
    cache, name = Cache(version=NEWEST), ENDPOINT_SLICES.name
    selection = _select_slices(access)
    async with mirroring(api, cache, [ENDPOINT_SLICES], settings=settings, selection=selection) as mirror:
        yield ServiceAddresses(api, access, cache, mirror.watchers[name])


def _select_slices(access: ExtenderAccess) -> dict[str, str]:
    return {
        "namespace": access.namespace,
        "labelSelector": f"kubernetes.io/service-name={access.service}",
    }


def _open_certificate(tls: ClientTls) -> LiveClientCertificate:
    try:
        return LiveClientCertificate(tls)
    except ServingError as error:
        raise ConfigurationError(f"extenderAccess.tls: {error}") from None


def _join_all(slices: Iterable[EndpointSlice]) -> list[str]:
    return sorted({address for each in slices for address in _join(each)})


def _join(each: EndpointSlice) -> list[str]:
    """Give every address with the first port of the slice: the Service of the extenders has one port."""
    port = next((port.port for port in each.ports or () if port.port), None)
    hosts = [address for endpoint in each.endpoints or () for address in endpoint.addresses or ()]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts] if port else []


def _describe_trouble(address: str, what: str) -> str:
    return f"{address}: {what}"
