"""The network of a cluster's real nodes: a bridge in a network namespace of its own, without a way out.

The nodes have addresses that are reserved for documentation. Two things pass between them and this machine,
and this process carries both: what a node asks the API server, and what the API server asks a kubelet (its
flag `--egress-selector-config-file` sends that here). The machine's own links and addresses stay as they are.

    python -m localcluster.realnodes.network SOCKET PORT-OF-THE-API-SERVER
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from localcluster.host import kernel, ports
from localcluster.load_balancer import LoadBalancer, Streams, copy_both_ways
from localcluster.realnodes import links


class NodeNetwork:
    """Carries connections into the namespace and out of it."""

    def __init__(self, machine: int) -> None:
        self._machine = machine
        self._own = os.open("/proc/self/ns/net", os.O_RDONLY)

    async def serve(self, path: Path, api_server_port: int) -> None:
        backend = (ports.HOST, api_server_port)
        async with LoadBalancer(
            [backend], host=links.GATEWAY, port=links.API_SERVER_PORT, connect=self._leave
        ):
            server = await asyncio.start_unix_server(self._tunnel, path)
            async with server:
                await server.serve_forever()

    async def _leave(self, host: str, port: int) -> Streams:
        """Connect to an address of this machine instead of one of the namespace."""
        with self._in_machine():
            outside = socket.socket()
        outside.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(outside, (host, port))
        except BaseException:
            outside.close()
            raise
        return await asyncio.open_connection(sock=outside)

    @contextlib.contextmanager
    def _in_machine(self) -> Iterator[None]:
        """For as long as it takes to open a socket: a socket stays in the namespace of its birth."""
        kernel.enter(self._machine)
        try:
            yield
        finally:
            kernel.enter(self._own)

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one CONNECT of the API server; webhooks on this machine come this way, too."""
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            host, port = read_connect(request)
            dial = asyncio.open_connection if links.is_of_node(host) else self._leave
            there = await dial(host, port)
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            writer.write(f"HTTP/1.1 502 Bad Gateway\r\n\r\n{error}".encode())
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            await copy_both_ways((reader, writer), there)
        except* OSError:
            pass  # one end was reset: the other is closed below
        finally:
            for end in (writer, there[1]):
                end.transport.abort()


def read_connect(request: bytes) -> tuple[str, int]:
    """Host and port of a CONNECT request."""
    words = request.split(b"\r\n", 1)[0].decode().split()
    if len(words) != 3 or words[0] != "CONNECT":
        raise ValueError(f"not a CONNECT request: {words}")
    host, _, port = words[1].rpartition(":")
    return host.strip("[]"), int(port)


def main(path: Path, api_server_port: int) -> None:
    machine = os.open("/proc/self/ns/net", os.O_RDONLY)
    kernel.unshare(kernel.Namespaces.NETWORK)
    links.create_bridge()
    path.unlink(missing_ok=True)
    asyncio.run(NodeNetwork(machine).serve(path, api_server_port))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
