"""The network process carries what the API server asks of kubelets. Loopback stands for both namespaces."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from localcluster.host import kernel
from localcluster.realnodes.network import NodeNetwork, read_connect


@pytest.mark.parametrize(
    ("request_", "address"),
    [
        (b"CONNECT 192.0.2.11:10250 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", ("192.0.2.11", 10250)),
        (b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", ("::1", 443)),
    ],
)
def test_the_address_of_a_connect_is_read(request_: bytes, address: tuple[str, int]) -> None:
    assert read_connect(request_) == address


@pytest.mark.parametrize(
    "request_", [b"GET / HTTP/1.1\r\n\r\n", b"CONNECT\r\n\r\n", b"CONNECT a:b c\r\n\r\n"]
)
def test_anything_else_is_refused(request_: bytes) -> None:
    with pytest.raises(ValueError, match="CONNECT|invalid literal"):
        read_connect(request_)


@pytest.fixture
async def tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    monkeypatch.setattr(kernel, "enter", lambda _: None)
    server = await asyncio.start_unix_server(NodeNetwork(0)._tunnel, tmp_path / "socket")
    async with server:
        yield tmp_path / "socket"


async def test_a_connection_is_carried_both_ways(tunnel: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    echoing = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with echoing:
        port = echoing.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_unix_connection(tunnel)
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\n\r\n"
        writer.write(b"hello\n")
        writer.write_eof()
        assert await reader.read() == b"HELLO\n"
        writer.close()
        await writer.wait_closed()


async def test_an_address_where_nobody_listens_is_a_bad_gateway(tunnel: Path) -> None:
    reader, writer = await asyncio.open_unix_connection(tunnel)
    writer.write(b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 502 Bad Gateway")
    writer.close()
    await writer.wait_closed()
