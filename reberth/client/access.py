"""How to reach an API server: kubeconfig or service account, tokens, certificates, proxies.

kubernetes_asyncio implements all of this and is used for nothing else. Its client renews an in-cluster token
by itself; all other sources of tokens (a file, a plugin), client certificates and the CA are read again when
their files change, when the server answers 401, or when its certificate cannot be verified.

Only two parts of that package are loaded: the kubeconfig loader and the REST client. An ordinary import of
any part also loads its models of every Kubernetes kind: 38 MB and half a second for nothing (measured). Two
of its packages only load these models, so empty packages stand in for them while the needed parts are loaded.
A later import of the package loads all of it.
"""

import asyncio
import os
import sys
from asyncio import sslproto
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml

from reberth.runtime.certificates import CA, CLIENT, record_expiry
from reberth.runtime.live_files import follow, look
from reberth.runtime.logs import Log
from reberth.values.errors import ConfigurationError

_PACKAGE = "kubernetes_asyncio"
_CLIENT = f"{_PACKAGE}.client"


@contextmanager
def _emptied(*packages: str) -> Iterator[None]:
    """Load these packages as empty ones while the context lasts, then forget what was imported from them."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_inside(name)}
    for name in packages:
        spec = find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.modules[name] = module_from_spec(spec)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_inside(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_inside(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")


with _emptied(_PACKAGE, _CLIENT):
    from kubernetes_asyncio.client.configuration import Configuration
    from kubernetes_asyncio.client.rest import RESTClientObject

    client = sys.modules[_CLIENT]
    client.Configuration = Configuration  # type: ignore[attr-defined] # a package that is empty as yet
    client.ApiClient = RESTClientObject  # type: ignore[attr-defined] # named there, and not used by us
    from kubernetes_asyncio.config import (
        ConfigException,
        list_kube_config_contexts,
        load_incluster_config,
        load_kube_config,
    )

log = Log(__name__)

_CONNECTIONS = 256  # watches hold one each; aiohttp's default limit of 100 would make calls wait for them
_LOOK_INTERVAL = 60.0  # seconds; what is refused is read again at once
_NAMESPACE_OF_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE = "default"
# What the package raises for a file without the expected structure.
_OF_PYTHON = (TypeError, LookupError, AssertionError, AttributeError)

# Each TLS connection has a buffer of this size, all of it in memory: with asyncio's default of 256 KiB a
# hundred watches take 20 MB more, and reading is no faster.
sslproto.SSLProtocol.max_size = 2**16


@dataclass(frozen=True)
class Access:
    """The kubeconfig that describes how to reach the API server.

    Without one: $KUBECONFIG, then the service account of the pod, then ~/.kube/config.
    """

    kubeconfig: str | None = None
    context: str | None = None
    is_followed: bool = True
    """Whether its files are read again when they change, and metrics tell when its certificates end."""

    @property
    def file(self) -> str | None:
        """The kubeconfig to read; None if the pod's service account is used."""
        given = self.kubeconfig or os.environ.get("KUBECONFIG")
        if given:
            return given
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return None
        return str(Path.home() / ".kube" / "config")

    def __str__(self) -> str:
        return self.file or "the pod's service account"


_UNREAD = 2**16
"""Bytes of a body that wait to be read: an answer that waits for its turn must not be held as a whole."""


class Connection:
    """An HTTP client of one API server; an async context. `renew` may be called by many tasks at once."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._configuration: Any = None
        self._rest: Any = None
        self._tls: list[object] = []
        self._retired: list[Any] = []  # older clients, whose watches go on
        self._proxy: str | None = None
        self._renewing = asyncio.Lock()
        self._following: asyncio.Task[NoReturn] | None = None
        self.renewals = 0

    async def __aenter__(self) -> Self:
        self._configuration = await _load(self._access)
        self._tls = _read_tls(self._configuration)
        self._record_expiries(self._configuration)
        if self._access.is_followed:
            self._following = asyncio.create_task(self._follow_files())
        self._rest = self._open_client(self._configuration)
        self._proxy = self._configuration.proxy or find_proxy(self.server)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._following:
            self._following.cancel()
        for client_of_its_time in (*self._retired, self._rest):
            await client_of_its_time.close()

    @property
    def server(self) -> str:
        return str(self._configuration.host)

    async def send(
        self, method: str, path: str, *, headers: dict[str, str], body: bytes | None = None
    ) -> aiohttp.ClientResponse:
        """Send a request; return when the head of the response has arrived. The caller closes it."""
        credentials = (await self._configuration.auth_settings()).values()
        answer: aiohttp.ClientResponse = await self._rest.pool_manager.request(
            method,
            self.server + path,
            headers={**headers, **{each["key"]: each["value"] for each in credentials}},
            data=body,
            proxy=self._proxy,
            server_hostname=self._rest.server_hostname,
            timeout=aiohttp.ClientTimeout(),  # deadlines are the caller's
            allow_redirects=False,
            read_bufsize=_UNREAD,
            auto_decompress=False,  # nobody has asked for compression; a small answer may be a large one
        )
        return answer

    async def renew(self, seen: int) -> None:
        """Read the credentials again, once for all tasks that were refused with the same `renewals`.

        If they are invalid, the last valid ones stay in use.
        """
        async with self._renewing:
            if self.renewals == seen:
                try:
                    await self._take(await _load(self._access))
                except ConfigurationError as error:
                    log.warning("credentials refused, keeping the last valid ones", error=str(error))
                self.renewals += 1

    async def _take(self, fresh: Any) -> None:  # noqa: ANN401 - the package has no types here
        tls = _read_tls(fresh)
        if tls != self._tls:
            # An open connection keeps the certificate that it was opened with. Requests in flight end on it.
            renewed = self._open_client(fresh)
            while self._retired:
                await self._retired.pop().close()
            self._retired.append(self._rest)
            self._rest, self._tls = renewed, tls
            log.info("certificates for the API server reloaded", source=str(self._access))
            self._record_expiries(fresh)
        self._configuration.api_key = fresh.api_key
        self._configuration.refresh_api_key_hook = fresh.refresh_api_key_hook

    async def _follow_files(self) -> NoReturn:
        """Take renewed certificates up before the server refuses the old ones."""
        known = self._configuration
        names = (self._access.file, known.ssl_ca_cert, known.cert_file, known.key_file)
        paths = [Path(name) for name in names if name]
        seen = await asyncio.to_thread(look, paths)
        await follow(paths, lambda: self.renew(self.renewals), seen=seen, interval=_LOOK_INTERVAL)

    def _record_expiries(self, configuration: Any) -> None:  # noqa: ANN401 - likewise
        files = ((configuration.cert_file, CLIENT), (configuration.ssl_ca_cert, CA))
        for path, use in files if self._access.is_followed else ():
            if path:
                # Not by its path: what a kubeconfig contains is written to a file with a random name.
                record_expiry(Path(path), use, name=str(self._access))

    def _open_client(self, configuration: Any) -> Any:  # noqa: ANN401 - likewise
        configuration.connection_pool_maxsize = _CONNECTIONS
        try:
            opened = RESTClientObject(configuration)
        except OSError as error:
            raise ConfigurationError(f"{self._access}: invalid certificates: {error}") from error
        pool = opened.pool_manager
        # Otherwise ~/.netrc is read before each request, and a password there for the server breaks them all.
        pool._trust_env = False  # noqa: SLF001 - there is no other way
        # aiohttp silently resends a DELETE or PUT when an old connection breaks. Only the caller knows
        # whether a second attempt is safe.
        pool._retry_connection = False  # noqa: SLF001 - likewise
        return opened


def find_namespace(access: Access) -> str:
    """Give kubectl's default: the namespace of the context or of the pod, else `default`.

    A kubeconfig that is invalid is left to the connection, which names the fault.
    """
    try:
        if access.file is None:
            return _NAMESPACE_OF_POD.read_text().strip() or _DEFAULT_NAMESPACE
        contexts, current = list_kube_config_contexts(config_file=access.file)
        named = [one for one in contexts if one["name"] == access.context]
        chosen: Any = named[0] if access.context else current
        return str(chosen["context"].get("namespace") or _DEFAULT_NAMESPACE)
    except (ConfigException, yaml.YAMLError, OSError, ValueError, *_OF_PYTHON):
        return _DEFAULT_NAMESPACE


def find_proxy(server: str) -> str | None:
    """Give the proxy that the environment sets for a server."""
    url = urlsplit(server)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


def _read_tls(configuration: Any) -> list[object]:  # noqa: ANN401 - likewise
    """Read what TLS depends on; two equal results need no new connections."""
    names = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return [
        configuration.verify_ssl,
        configuration.tls_server_name,
        *look([Path(each) for each in names if each]),
    ]


def _is_there(files: str) -> bool:
    """Tell whether any file in this colon-separated list exists."""
    return any(each and Path(each).expanduser().exists() for each in files.split(os.pathsep))


async def _load(access: Access) -> Any:  # noqa: ANN401 - the package has no types here
    configuration = Configuration()
    if access.file is not None and not _is_there(access.file):
        raise ConfigurationError(f"{access}: cannot connect to the API server: kubeconfig not found")
    try:
        if access.file is None:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call] # it has no types
        else:
            await load_kube_config(
                config_file=access.file,
                context=access.context,
                client_configuration=configuration,
                persist_config=False,
            )
    except (ConfigException, yaml.YAMLError, OSError, ValueError, *_OF_PYTHON) as error:
        # A malformed file fails in any of these ways.
        raise ConfigurationError(f"{access}: cannot connect to the API server: {_say(error)}") from error
    return configuration


def _say(error: Exception) -> str:
    """Describe the fault of the file in one line, not the Python error that it caused."""
    return "not a valid kubeconfig" if isinstance(error, _OF_PYTHON) else " ".join(str(error).split())
