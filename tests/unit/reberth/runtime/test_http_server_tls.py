"""A server over TLS: accepted clients and renewed certificates, with real handshakes."""

import asyncio
import datetime as dt
import ssl
import warnings
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import pytest
from cryptography import x509

from localcluster.credentials import Authority, KeyPair
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.http_fast_path import PlainCall, Reply
from reberth.runtime.http_server import Server, ServerSettings
from tests.support.metrics import read_metric

LOOK = 0.01
REFUSED = (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)


class Mount:
    """A mounted Secret: the files are links into `..data`, itself a link that is swapped as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._versions = 0
        folder.mkdir()
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (folder / name).symlink_to(f"..data/{name}")

    def hold(self, pair: KeyPair, authority: Authority, *, key: str | None = None) -> None:
        self._versions += 1
        version = self._folder / f"..v{self._versions}"
        version.mkdir()
        (version / "tls.crt").write_bytes(pair.certificate.read_bytes())
        (version / "tls.key").write_text(pair.key.read_text() if key is None else key)
        (version / "ca.crt").write_bytes(authority.certificate.read_bytes())
        (self._folder / "..new").symlink_to(version.name)
        (self._folder / "..new").rename(self._folder / "..data")

    def settings(self, *, clients: bool = False) -> ServerSettings:
        ca = str(self._folder / "ca.crt") if clients else None
        files = CertificateFiles(str(self._folder / "tls.crt"), str(self._folder / "tls.key"), ca)
        return ServerSettings(port=0, tls=files)

    def measured(self, name: str) -> float:
        return read_metric(f"reberth_certificate_{name}", certificate=str(self._folder / "tls.crt"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca").create()


@pytest.fixture
def mount(tmp_path: Path, authority: Authority) -> Mount:
    mount = Mount(tmp_path / "mount")
    mount.hold(served(authority, "first"), authority)
    return mount


def served(authority: Authority, name: str) -> KeyPair:
    return authority.issue(name, hosts=["127.0.0.1"])


def client(authority: Authority, pair: KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.certificate)
    if pair:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


async def call(port: int, context: ssl.SSLContext) -> tuple[str, ssl.SSLObject]:
    """Ask for the health on a new connection; who answered, and the connection's TLS."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        await ask(reader, writer)
        secured: ssl.SSLObject = writer.get_extra_info("ssl_object")
        return subject(secured), secured
    finally:
        writer.close()
        with suppress(*REFUSED):
            await writer.wait_closed()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    await reader.readuntil(b"\r\n\r\nok\n")


def subject(secured: ssl.SSLObject) -> str:
    certificate = x509.load_der_x509_certificate(secured.getpeercert(binary_form=True) or b"")
    return certificate.subject.rfc4514_string().removeprefix("CN=")


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Give the reasons of the handshakes that the server says it has refused."""
    return [vars(one)["fields"]["reason"] for one in caplog.records if one.message == "handshake refused"]


def answered() -> float:
    return read_metric("reberth_http_requests_total", route="/healthz", code="200")


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(LOOK)


async def until_served_as(name: str, port: int, context: ssl.SSLContext) -> None:
    async with asyncio.timeout(10):
        while True:
            with suppress(*REFUSED):
                if (await call(port, context))[0] == name:
                    return


@pytest.mark.parametrize(
    ("version", "spoken"), [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
)
async def test_tls_from_1_2_on_is_spoken(
    mount: Mount, authority: Authority, version: ssl.TLSVersion, spoken: str
) -> None:
    context = client(authority)
    context.maximum_version = version
    async with Server(mount.settings()) as server:
        name, secured = await call(server.port, context)
    assert (name, secured.version()) == ("first", spoken)


async def test_tls_1_1_is_refused_by_the_server(
    mount: Mount, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    context = client(authority)
    # Without these the client itself would not try.
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with Server(mount.settings()) as server:
        with pytest.raises(REFUSED):
            await call(server.port, context)
    assert refusals(caplog) == ["unsupported protocol"]


@pytest.mark.parametrize(
    ("offered", "chosen"), [(["h2", "http/1.1"], "http/1.1"), (["h2"], None), (None, None)]
)
async def test_http_1_1_alone_is_agreed_on(
    mount: Mount, authority: Authority, offered: list[str] | None, chosen: str | None
) -> None:
    context = client(authority)
    if offered:
        context.set_alpn_protocols(offered)
    async with Server(mount.settings()) as server:
        _, secured = await call(server.port, context)
    assert secured.selected_alpn_protocol() == chosen


async def test_plain_http_is_not_answered_on_the_tls_port(mount: Mount, authority: Authority) -> None:
    async with Server(mount.settings()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"ok" not in await reader.read()
        writer.close()
        assert (await call(server.port, client(authority)))[0] == "first"


def no_certificate(_: Authority, __: Path) -> None:
    return None


def of_a_stranger(_: Authority, folder: Path) -> KeyPair:
    return Authority(folder / "stranger").create().issue("client")


def expired(authority: Authority, _: Path) -> KeyPair:
    return authority.issue("client", lifetime=dt.timedelta(minutes=-1))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (no_certificate, "peer did not return a certificate"),
        (of_a_stranger, "unable to get local issuer certificate"),
        (expired, "certificate has expired"),
    ],
)
async def test_a_client_that_shows_no_good_certificate_is_refused_at_the_handshake(
    mount: Mount,
    authority: Authority,
    tmp_path: Path,
    *,
    shown: Callable[[Authority, Path], KeyPair | None],
    reason: str,
    version: ssl.TLSVersion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = client(authority, shown(authority, tmp_path))
    context.maximum_version = version
    async with Server(mount.settings(clients=True)) as server:
        before = answered()
        with pytest.raises(REFUSED):
            await call(server.port, context)
        assert answered() == before
        assert refusals(caplog) == [reason]
        assert (await call(server.port, client(authority, authority.issue("good"))))[0] == "first"


async def test_a_renewed_certificate_is_taken_up_without_a_lost_call(
    mount: Mount, authority: Authority
) -> None:
    seen: list[str] = []

    async def keep_calling(port: int) -> None:
        while True:
            seen.append((await call(port, client(authority)))[0])

    async with Server(mount.settings(), look_interval=LOOK) as server:
        callers = [asyncio.create_task(keep_calling(server.port)) for _ in range(4)]
        await until(lambda: len(seen) > 20)
        mount.hold(served(authority, "second"), authority)
        await until(lambda: seen[-20:] == ["second"] * 20)
        assert not any(caller.done() for caller in callers)
        for caller in callers:
            caller.cancel()
        await asyncio.wait(callers)
    assert seen == sorted(seen)
    assert mount.measured("valid") == 1


def read_end(certificate: str, use: str) -> float:
    return read_metric("reberth_certificate_not_after_seconds", certificate=certificate, use=use)


async def test_metrics_tell_when_each_certificate_ends(mount: Mount, authority: Authority) -> None:
    now, day = dt.datetime.now(dt.UTC).timestamp(), dt.timedelta(days=1)
    settings = mount.settings(clients=True)
    assert settings.tls is not None
    assert settings.tls.client_ca_file is not None
    shown = authority.issue("a-client", lifetime=20 * day)
    async with Server(settings, look_interval=LOOK) as server:
        assert read_end(settings.tls.client_ca_file, "ca") > now + 3000 * 86400
        for days in (10, 90):
            mount.hold(authority.issue(f"for {days}", hosts=["127.0.0.1"], lifetime=days * day), authority)
            ends, file = now + days * 86400, settings.tls.cert_file
            await until(lambda ends=ends, file=file: abs(read_end(file, "server") - ends) < 60)
        await call(server.port, client(authority, shown))
        assert abs(read_end("a-client", "shown") - now - 20 * 86400) < 60


async def test_an_open_connection_outlives_the_renewal(mount: Mount, authority: Authority) -> None:
    context = client(authority)
    async with Server(mount.settings(), look_interval=LOOK) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        await ask(reader, writer)
        mount.hold(served(authority, "second"), authority)
        await until_served_as("second", server.port, context)
        await ask(reader, writer)
        assert subject(writer.get_extra_info("ssl_object")) == "first"
        writer.close()
        await writer.wait_closed()


async def test_a_mismatched_key_keeps_the_old_certificate_and_is_reported_once(
    mount: Mount, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    failures = mount.measured("reload_failures_total")
    async with Server(mount.settings(), look_interval=LOOK) as server:
        mount.hold(served(authority, "second"), authority, key=served(authority, "other").key.read_text())
        await until(lambda: mount.measured("valid") == 0)
        assert (await call(server.port, client(authority)))[0] == "first"
        await asyncio.sleep(10 * LOOK)
        assert mount.measured("reload_failures_total") == failures + 1
        mount.hold(served(authority, "third"), authority)
        await until_served_as("third", server.port, client(authority))
        await until(lambda: mount.measured("valid") == 1)
    (said,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert said.message == "certificate refused, keeping the last valid one"
    assert "is not the key of" in vars(said)["fields"]["error"]


async def test_a_replaced_client_ca_is_in_force_for_new_connections(
    mount: Mount, authority: Authority, tmp_path: Path
) -> None:
    successor = Authority(tmp_path / "successor").create()
    old = client(authority, authority.issue("old"))
    new = client(authority, successor.issue("new"))
    async with Server(mount.settings(clients=True), look_interval=LOOK) as server:
        await call(server.port, old)
        with pytest.raises(REFUSED):
            await call(server.port, new)
        mount.hold(served(authority, "second"), successor)
        await until_served_as("second", server.port, new)
        with pytest.raises(REFUSED):
            await call(server.port, old)


async def test_calls_are_answered_at_once_over_tls_too(mount: Mount, authority: Authority) -> None:
    """And what is not plain is answered by aiohttp, on the same connection."""
    echo = PlainCall(lambda body, _: Reply(HTTPStatus.OK, body), _never, most_bytes=2**20, seconds=5)
    async with Server(mount.settings(), calls={"/echo": echo}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client(authority))
        for body in (b"short", b"long" * 100_000):
            head = f"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
            assert await reader.readexactly(len(body)) == body
        await ask(reader, writer)
        writer.close()


def _never(_: float) -> Reply:
    raise AssertionError("the body came")
