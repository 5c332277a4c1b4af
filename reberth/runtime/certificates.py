"""The certificates of servers and clients, renewed without a restart.

A handshake uses the context that is current when it begins, so a renewal affects no open connection and
replaces everything at once: the certificate, the key, and the CA of the other side. A session of an
older context cannot be resumed in a new one.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import msgspec

from reberth.config.settings import Section
from reberth.runtime import live_files, logs, metrics
from reberth.runtime.tls.validity import list_validities
from reberth.values.errors import ServingError

log = logs.Log(__name__)
sparse = logs.SparseLog(log)

SERVER, CLIENT, CA, SHOWN = "server", "client", "ca", "shown"
"""What a certificate is used for; `shown` by clients."""
# Of clients with different names, so that a CA that certifies many does not fill the metrics.
_MOST_NAMES = 32
_NAME_LENGTH = 64
_shown: set[str] = set()

# OpenSSL's reasons for a key that does not belong to the certificate: of the same type, of another type.
_STRANGERS = ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED")


class CertificateFiles(Section, frozen=True):
    """PEM files: the certificate with its chain, its key, and the CA that signs client certificates."""

    cert_file: str
    key_file: str
    client_ca_file: str | None = msgspec.field(default=None, name="clientCAFile")
    client_certificates: Literal["required", "optional"] = "required"
    """With a client CA: whether a client must show a certificate. One that is shown must be valid."""

    def paths(self) -> list[Path]:
        return [Path(name) for name in (self.cert_file, self.key_file, self.client_ca_file) if name]


class ClientTls(Section, frozen=True):
    """The client certificate that a server asks for, and the CA that signed the server's own."""

    ca: str
    certificate: str
    key: str
    server_name: str = ""
    """The name in the server's certificate, if it differs from the address."""


class LiveContext:
    """A TLS context that follows its files; invalid ones are logged and counted, the last valid ones stay.

    Opening it raises a ServingError if the files are invalid from the start.
    """

    def __init__(
        self,
        certificate: str,
        paths: Sequence[Path],
        *,
        uses: Mapping[str, str],
        protocol: int,
        load: Callable[[], ssl.SSLContext],
    ) -> None:
        self.refusal: ServingError | None = None
        """Why the current content of the files is not in use."""
        self._certificate = certificate
        self._paths = paths
        self._uses = uses
        self._load = load
        # Hashed before they are read: a write in between counts as a change.
        self._seen = live_files.look(paths)
        self.context = _RenewedContext(protocol)
        self._take(load())

    async def follow(self, interval: float = live_files.LOOK_INTERVAL) -> NoReturn:
        """Load every valid change of the files.

        Runs until cancelled, which is safe at any moment: the certificate is the old one or the new one.
        """
        await live_files.follow(self._paths, self._reload, seen=self._seen, interval=interval)

    def list_remarks(self) -> Iterator[str]:
        """Tell that the files are not in use because they are refused."""
        if self.refusal:
            yield f"refused, the last valid version stays in force: {self.refusal}"

    async def _reload(self) -> None:
        try:
            fresh = await asyncio.to_thread(self._load)
        except ServingError as refusal:
            self._refuse(refusal)
        else:
            self._take(fresh)
            log.info("certificate reloaded", file=self._certificate)

    def _refuse(self, refusal: ServingError) -> None:
        self.refusal = refusal
        metrics.CERTIFICATE_VALID.labels(self._certificate).set(0)
        metrics.CERTIFICATE_RELOAD_FAILURES.labels(self._certificate).inc()
        log.error("certificate refused, keeping the last valid one", error=str(refusal))

    def _take(self, fresh: ssl.SSLContext) -> None:
        self.refusal = None
        self.context.current = fresh
        metrics.CERTIFICATE_VALID.labels(self._certificate).set(1)
        metrics.CERTIFICATE_LAST_RELOAD_SUCCESS.labels(self._certificate).set(time.time())
        for path, use in self._uses.items():
            record_expiry(Path(path), use)


class LiveCertificate(LiveContext):
    """A server's TLS context that follows its files."""

    def __init__(self, files: CertificateFiles) -> None:
        load = partial(server_context, files)
        uses = {files.cert_file: SERVER} | ({files.client_ca_file: CA} if files.client_ca_file else {})
        super().__init__(
            files.cert_file, files.paths(), uses=uses, protocol=ssl.PROTOCOL_TLS_SERVER, load=load
        )


class LiveClientCertificate(LiveContext):
    """A client's TLS context that follows its files; a connection that is open keeps its certificate."""

    def __init__(self, tls: ClientTls) -> None:
        paths, load = [Path(tls.ca), Path(tls.certificate), Path(tls.key)], partial(client_context, tls)
        uses = {tls.certificate: CLIENT, tls.ca: CA}
        super().__init__(tls.certificate, paths, uses=uses, protocol=ssl.PROTOCOL_TLS_CLIENT, load=load)


def record_expiry(path: Path, use: str, *, name: str = "") -> None:
    """Record when the certificates of a file end: the first of a chain, of CAs the last."""
    try:
        ends = [validity.not_after for validity in list_validities(path.read_text())]
    except (OSError, ValueError):
        return  # whoever uses the file tells what is wrong with it
    if ends:
        end = max(ends) if use == CA else min(ends)
        metrics.CERTIFICATE_NOT_AFTER.labels(name or str(path), use).set(end)


def record_shown(certificate: Mapping[str, Any]) -> None:
    """Record when the certificate of a client ends, by the name that the CA has certified."""
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    name = names[0][:_NAME_LENGTH] if names else ""
    if name in _shown or len(_shown) < _MOST_NAMES:
        _shown.add(name)
        metrics.CERTIFICATE_NOT_AFTER.labels(name, SHOWN).set(
            ssl.cert_time_to_seconds(certificate["notAfter"])
        )


class _RenewedContext(ssl.SSLContext):
    """Hands every handshake to the current context; asyncio begins each one with `wrap_bio`."""

    current: ssl.SSLContext

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # noqa: FBT001, FBT002 - the signature of the standard library
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        del session  # it may be of an older context
        return self.current.wrap_bio(
            incoming, outgoing, server_side=server_side, server_hostname=server_hostname
        )


class _ToldHandshake(ssl.SSLObject):
    """Logs why a handshake was refused; asyncio closes the connection without an error."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            sparse.warning("handshake refused", reason=_words(error))
            raise


def server_context(files: CertificateFiles) -> ssl.SSLContext:
    """Make a context for TLS 1.2 and above and HTTP/1.1; a ServingError names the file at fault."""
    for path in files.paths():
        _check_readable(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _ToldHandshake
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load_pair(context, files.cert_file, files.key_file)
    if files.client_ca_file:
        _load_authorities(context, files.client_ca_file)
        is_optional = files.client_certificates == "optional"
        context.verify_mode = ssl.CERT_OPTIONAL if is_optional else ssl.CERT_REQUIRED
    return context


def client_context(tls: ClientTls) -> ssl.SSLContext:
    """Make a context that shows the client certificate; a ServingError names the file at fault."""
    for name in (tls.ca, tls.certificate, tls.key):
        _check_readable(Path(name))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks the server's certificate and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_pair(context, tls.certificate, tls.key)
    _load_authorities(context, tls.ca)
    return context


def _check_readable(path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise ServingError(f"{path}: cannot be read: {error.strerror}") from None


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # A separate context tells an invalid certificate from an invalid key: OpenSSL's error is the same.
    _load_authorities(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate)
    try:
        # Without a password callback OpenSSL would ask for the password of an encrypted key on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason in _STRANGERS:
            raise ServingError(f"{key}: is not the key of {certificate}") from None
        if error.reason:
            raise ServingError(f"{certificate}: {_words(error)}") from None
        raise ServingError(f"{key}: contains no key, or one that needs a password") from None


def _load_authorities(context: ssl.SSLContext, name: str) -> None:
    try:
        context.load_verify_locations(name)
    except ssl.SSLError:
        raise ServingError(f"{name}: contains no valid certificate") from None


def _words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return str(error.reason).lower().replace("_", " ")
