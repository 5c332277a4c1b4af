"""The least that reading can cost us: the bytes of pods and nodes come, and their lines are counted.

python -m bench.reading.bytes_alone KUBECONFIG
"""

import asyncio
import json
import sys
import time
from typing import Any

from bench.reading.processes import peak, resident
from reberth.connecting import Access, Connection
from reberth.gathering import Body
from reberth.requesting import JSON, Request
from reberth.resources import NODES, PODS, Resource

_LIST = {
    "watch": "1",
    "allowWatchBookmarks": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
}
_HEADERS = {"Accept": JSON, "Accept-Encoding": "identity"}
_END = b"k8s.io/initial-events-end"
_BOOKMARK = 1024
"""The last line is not longer."""


async def measure(kubeconfig: str) -> dict[str, float]:
    before, cpu, started = resident(), time.process_time(), time.monotonic()
    async with Connection(Access(kubeconfig)) as connection:
        pods, nodes = await asyncio.gather(_count(connection, PODS), _count(connection, NODES))
        return {
            "pods": pods,
            "nodes": nodes,
            "cpu": time.process_time() - cpu,
            "wall": time.monotonic() - started,
            "before": before,
            "after": resident(),
            "peak": peak(),
        }


async def _count(connection: Connection, resource: Resource[Any]) -> int:
    request = Request("watch", resource.name, resource.path(), _LIST)
    async with await connection.send(request.method, request.target, headers=_HEADERS) as answer:
        body, lines, last = Body(answer), 0, b""
        while piece := await body.piece():
            lines += piece.count(b"\n")
            last = (last + piece)[-_BOOKMARK:]
            if _END in last and last.endswith(b"\n"):
                return lines - 1
    raise EOFError(f"{request}: it broke off")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1]))))  # noqa: T201 - its answer
