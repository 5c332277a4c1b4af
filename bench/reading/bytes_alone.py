"""The least that reading can cost us: the bytes of pods and nodes come, and their lines are counted.

    python -m bench.reading.bytes_alone KUBECONFIG [--step-over]

With --step-over each line is read as JSON, too, of which nothing is kept.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.reading.processes import peak, resident
from reberth.client.access import Access, Connection
from reberth.client.body import ResponseBody
from reberth.cluster.kinds import NODES, PODS, Resource
from reberth.protocol.request import JSON, ApiRequest

STREAMED_LIST = {
    "watch": "1",
    "allowWatchBookmarks": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
}
HEADERS = {"Accept": JSON, "Accept-Encoding": "identity"}
END_OF_LIST = b"k8s.io/initial-events-end"
_BOOKMARK = 1024
"""The last line is not longer."""


class _Nothing(msgspec.Struct):
    """What is kept of a line."""


class Counted:
    """Lines of which only the ends are looked for."""

    count = 0

    def take(self, piece: bytes) -> None:
        self.count += piece.count(b"\n")


class SteppedOver(Counted):
    """Lines that are read from their first to their last byte."""

    def __init__(self) -> None:
        self._rest = b""
        self._read = msgspec.json.Decoder(_Nothing).decode_lines

    def take(self, piece: bytes) -> None:
        text = self._rest + piece
        end = text.rfind(b"\n") + 1
        self.count += len(self._read(memoryview(text)[:end]))
        self._rest = text[end:]


async def measure(kubeconfig: str, look: Callable[[], Counted]) -> dict[str, float]:
    before, cpu, started = resident(), time.process_time(), time.monotonic()
    async with Connection(Access(kubeconfig)) as connection:
        pods, nodes = await asyncio.gather(
            _count(connection, PODS, look()), _count(connection, NODES, look())
        )
        return {
            "pods": pods,
            "nodes": nodes,
            "cpu": time.process_time() - cpu,
            "wall": time.monotonic() - started,
            "before": before,
            "after": resident(),
            "peak": peak(),
        }


async def _count(connection: Connection, resource: Resource[Any], lines: Counted) -> int:
    request = ApiRequest("watch", resource.name, resource.path(), STREAMED_LIST)
    async with await connection.send(request.method, request.target, headers=HEADERS) as answer:
        body, last = ResponseBody(answer), b""
        while piece := await body.piece():
            lines.take(piece)
            last = (last + piece)[-_BOOKMARK:]
            if END_OF_LIST in last and last.endswith(b"\n"):
                return lines.count - 1
    raise EOFError(f"{request}: it broke off")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig")
    parser.add_argument("--step-over", action="store_true")
    arguments = parser.parse_args()
    look = SteppedOver if arguments.step_over else Counted
    print(json.dumps(asyncio.run(measure(arguments.kubeconfig, look))))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
