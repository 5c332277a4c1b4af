"""Connections that cost others nothing: limits of time and number, with real sockets and TLS on loopback."""

import asyncio
import gc
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from localcluster.credentials import Authority, KeyPair
from reberth.runtime import logs
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.connections import (
    AUTHENTICATED,
    HANDSHAKE,
    UNAUTHENTICATED,
    ConnectionLimits,
    Connections,
    Line,
)
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.duration import PositiveDuration
from tests.support.metrics import read_metric
from tests.support.repository import ROOT

SOON = PositiveDuration(0.3)
ASK = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
HALF_A_HELLO = b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03" + b"\x00" * 8000
TOGETHER = 10_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca")).create()


@pytest.fixture(scope="module")
def served(authority: Authority) -> KeyPair:
    return authority.issue("server", hosts=["127.0.0.1"])


@pytest.fixture
def mutual(authority: Authority, served: KeyPair) -> CertificateFiles:
    return CertificateFiles(str(served.certificate), str(served.key), str(authority.certificate))


def client(authority: Authority, name: str = "client") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.certificate)
    pair = authority.issue(name)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self) -> None:
        self.writer.write(ASK)
        await self.reader.readuntil(b"ok\n")

    async def ends(self) -> float:
        """Wait until the server closes the connection; give how long that took."""
        started = time.monotonic()
        async with asyncio.timeout(10):
            try:
                while await self.reader.read(1000):
                    pass
            except ConnectionError:
                pass
        return time.monotonic() - started

    @property
    def is_open(self) -> bool:
        return not self.reader.at_eof()


@asynccontextmanager
async def client_of(
    server: Server, *, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls, local_addr=(address, 0))
    yield Client(reader, writer)
    writer.transport.abort()


def dropped(reason: str) -> float:
    return read_metric("reberth_http_connections_dropped_total", reason=reason)


def held(kind: str) -> float:
    return read_metric("reberth_http_connections", kind=kind)


async def until_held(kind: str, count: float) -> None:
    async with asyncio.timeout(5):
        while held(kind) != count:
            await asyncio.sleep(0.01)


async def test_a_connection_on_which_nothing_is_said_is_dropped(mutual: CertificateFiles) -> None:
    before = dropped("silent")
    async with Server(ServerSettings(port=0, tls=mutual, head_within=SOON)) as server:
        async with client_of(server) as silent:
            assert await silent.ends() < 2
        assert dropped("silent") == before + 1
        assert held(UNAUTHENTICATED) == 0


async def test_a_handshake_that_is_not_completed_is_ended(mutual: CertificateFiles) -> None:
    before = read_metric("reberth_http_handshakes_failed_total", reason="incomplete")
    async with Server(ServerSettings(port=0, tls=mutual, handshake_within=SOON)) as server:
        async with client_of(server) as slow:
            slow.writer.write(HALF_A_HELLO)
            assert await slow.ends() < 2
        await until_held(HANDSHAKE, 0)
    assert read_metric("reberth_http_handshakes_failed_total", reason="incomplete") == before + 1


@pytest.mark.parametrize("first", [b"", ASK])
async def test_a_head_that_is_not_completed_ends_its_connection(first: bytes) -> None:
    before = dropped("head")
    async with Server(ServerSettings(port=0, head_within=SOON)) as server, client_of(server) as slow:
        if first:
            await slow.ask()
            await asyncio.sleep(2 * SOON)  # an idle connection is kept
            assert slow.is_open
        slow.writer.write(b"GET /healthz HTTP/1.1\r\n")
        for number in range(3):
            await asyncio.sleep(SOON / 4)
            slow.writer.write(b"X-%d: %s\r\n" % (number, b"a" * 7000))
        assert await slow.ends() < 2
    assert dropped("head") == before + 1


async def test_an_authenticated_client_may_wait_before_it_asks(
    mutual: CertificateFiles, authority: Authority
) -> None:
    settings = ServerSettings(port=0, tls=mutual, head_within=SOON)
    async with Server(settings) as server, client_of(server, tls=client(authority)) as patient:
        await asyncio.sleep(3 * SOON)
        await patient.ask()
        patient.writer.write(ASK[:-2])
        assert await patient.ends() < 2


async def test_a_slow_answer_is_no_slow_head() -> None:
    async def think(_: web.Request) -> web.Response:
        await asyncio.sleep(3 * SOON)
        return web.Response(text="ok\n")

    settings = ServerSettings(port=0, head_within=SOON)
    async with Server(settings, routes=[web.get("/think", think)]) as server, client_of(server) as patient:
        patient.writer.write(ASK.replace(b"healthz", b"think"))
        assert (await patient.reader.readuntil(b"ok\n")).startswith(b"HTTP/1.1 200")
        await patient.ask()


async def test_silent_connections_drop_each_other_and_no_authenticated_one(
    mutual: CertificateFiles, authority: Authority
) -> None:
    settings = ServerSettings(port=0, tls=mutual, unauthenticated_connections=3, authenticated_connections=1)
    async with Server(settings) as server, client_of(server, tls=client(authority)) as known:
        await known.ask()
        before = dropped("crowded")
        async with client_of(server) as first, client_of(server), client_of(server), client_of(server):
            await first.ends()
            assert dropped("crowded") == before + 1
            await known.ask()
            async with client_of(server, tls=client(authority)) as next_one:
                await known.ends()
                await next_one.ask()


async def test_an_address_with_many_connections_loses_its_own() -> None:
    settings = ServerSettings(port=0, unauthenticated_connections=8)
    async with Server(settings) as server, client_of(server, address="127.0.0.9") as honest:
        await honest.ask()
        with ExitStack() as stack:
            for _ in range(30):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            await until_held(UNAUTHENTICATED, 8)
            await honest.ask()
            async with client_of(server, address="127.0.0.8") as newcomer:
                await newcomer.ask()


def line(address: str, heard: float, gone: list[str]) -> Line:
    made = Line(address, heard)
    made.drop = lambda: gone.append(f"{address} {heard:g}")
    return made


def test_the_longest_silent_connection_of_the_largest_holder_has_to_go() -> None:
    gone: list[str] = []
    connections = Connections(ConnectionLimits(5, 5, unauthenticated=3, authenticated=1))
    known = line("a", 0, gone)
    for each in (known, line("b", 1, gone), line("b", 2, gone), line("c", 3, gone)):
        connections.enter(each)
    assert gone == ["b 1"]
    connections.enter(line("d", 4, gone))  # nobody has more than another: the oldest
    assert gone == ["b 1", "a 0"]
    connections.leave(known)  # twice is once
    assert held(UNAUTHENTICATED) == 3
    connections.change(known, AUTHENTICATED)
    assert (held(UNAUTHENTICATED), held(AUTHENTICATED)) == (3, 1)


async def test_bad_requests_are_counted_and_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    before = read_metric("reberth_http_bad_requests_total")
    async with Server(ServerSettings(port=0)) as server:
        for _ in range(40):
            async with client_of(server) as wild:
                wild.writer.write(b"GET / HTTP/9.9\r\n\r\n")
                assert (await wild.reader.read()).startswith(b"HTTP/1.0 400")
    assert read_metric("reberth_http_bad_requests_total") == before + 40
    lines = [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert 1 <= len(lines) <= 10
    assert not any(record.exc_info for record in lines)


def test_a_sparse_log_tells_how_much_it_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    sparse = logs.SparseLog(logs.Log("strangers"), lines=2, seconds=60, clock=lambda: now)
    for _ in range(5):
        sparse.warning("refused", reason="odd")
    now = 60.0
    sparse.warning("refused", reason="odd")
    said = [vars(record)["fields"] for record in caplog.records]
    assert said == [{"reason": "odd"}, {"reason": "odd"}, {"reason": "odd", "left_out": 3}]


async def test_nothing_is_accepted_while_the_system_has_no_files_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Server(ServerSettings(port=0)) as server:
        assert server._listener is not None
        real = server._listener._sockets[0]
        calls = 0

        class Exhausted:
            def fileno(self) -> int:
                return real.fileno()

            def accept(self) -> None:
                nonlocal calls
                calls += 1
                raise OSError(24, "Too many open files")

        asyncio.get_running_loop().remove_reader(real)
        monkeypatch.setattr("reberth.runtime.connections._PAUSE_SECONDS", 0.2)
        server._listener._accept(Exhausted())  # type: ignore[arg-type]
        assert calls == 1
        asyncio.get_running_loop().add_reader(real, server._listener._accept, real)
        async with client_of(server) as honest:
            await honest.ask()


SERVER = """
import asyncio, sys
from reberth.client import access  # its limit of TLS buffers is part of every program
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.http_server import Server, ServerSettings

async def main():
    async with Server(ServerSettings(port=0, tls=CertificateFiles(*sys.argv[1:]))) as server:
        print(server.port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"""


class Served:
    """A server in a process of its own, and an honest client of it with an open connection."""

    def __init__(self, process: subprocess.Popen[str], tls: ssl.SSLContext) -> None:
        assert process.stdout is not None
        self._process = process
        self._port = int(process.stdout.readline())
        self._tls = tls
        self._line = self.connect()
        self.seconds: list[float] = []
        """How long each answer took, without what either side waited for a processor that others had."""

    def connect(self) -> ssl.SSLSocket:
        return self._tls.wrap_socket(self.open(1), server_hostname="127.0.0.1")

    def open(self, last: int) -> socket.socket:
        """Connect from a loopback address, which is given by its last number."""
        return socket.create_connection(("127.0.0.1", self._port), source_address=(f"127.0.0.{last}", 0))

    def ask(self) -> None:
        started, had_worked, had_waited = time.perf_counter(), *self._find_times()
        self._line.sendall(ASK)
        answer = b""
        while not answer.endswith(b"ok\n"):
            answer += self._line.recv(1000)
        took = time.perf_counter() - started
        worked, waited = self._find_times()
        self.seconds.append(max(took - (waited - had_waited), worked - had_worked))

    def _find_times(self) -> tuple[float, float]:
        """How long the server has worked, and how long both have waited; they may wait at the same time."""
        server = f"{self._process.pid}/task/{self._process.pid}"
        files = (Path("/proc", each, "schedstat") for each in (server, "thread-self"))
        (worked, server_waited), (_, waited) = (each.read_text().split()[:2] for each in files)
        return int(worked) / 1e9, (int(server_waited) + int(waited)) / 1e9

    def resident(self) -> float:
        """Give the resident memory of the process in MB."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def close(self) -> None:
        self._line.close()


@contextmanager
def serving(files: CertificateFiles, tls: ssl.SSLContext) -> Iterator[Served]:
    with (
        subprocess.Popen(
            [sys.executable, "-c", SERVER, *map(str, files.paths())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=dict(os.environ, PYTHONPATH=str(ROOT)),
        ) as process,
        closing(Served(process, tls)) as served,
    ):
        for _ in range(50):
            served.ask()
        served.seconds.clear()
        yield served


@pytest.mark.parametrize("said", [b"", HALF_A_HELLO], ids=["silent", "half a hello"])
def test_ten_thousand_connections_cost_little_and_delay_nobody(
    mutual: CertificateFiles, authority: Authority, said: bytes
) -> None:
    """Two servers are asked in turn, of which one has them."""
    tls = client(authority)
    with serving(mutual, tls) as calm, serving(mutual, tls) as crowded, ExitStack() as stack:
        gc.collect()
        before = most = crowded.resident()
        for number in range(TOGETHER):
            stack.enter_context(crowded.open(2 + number % 16)).sendall(said)
            if number % 20 == 0:
                for each in (calm, crowded) if number % 40 else (crowded, calm):
                    each.ask()
            if number % 500 == 0:
                most = max(most, crowded.resident())
        crowded.connect().close()
        most = max(most, crowded.resident()) - before
    calm.seconds.sort()
    crowded.seconds.sort()
    later = [there - here for there, here in zip(crowded.seconds, calm.seconds, strict=True)]
    median, nearly_all = later[len(later) // 2] * 1000, later[len(later) * 9 // 10] * 1000
    print(f"{most:.1f} MB; later by {median:.2f} ms in the median, by {nearly_all:.2f} ms at 90 %")
    assert most < 20
    assert max(median, nearly_all) < 10
