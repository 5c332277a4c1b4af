"""A client that reads the lists which the daemon reads, throws them away, and prints what that cost.

    python -m bench.daemon.null_client KUBECONFIG PAGE_SIZE

It has the daemon's connections, and asks for what the daemon asks for: the same kinds at the same time, in
pages of the same size or as a stream. Of a page it looks only for the token of the next one.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any

from bench.reading.bytes_alone import END_OF_LIST, HEADERS, STREAMED_LIST
from bench.reading.processes import peak
from reberth.client.access import Access, Connection
from reberth.client.body import ResponseBody
from reberth.cluster.kinds import ALL_RESOURCES, Resource
from reberth.protocol.request import ApiRequest

_TOKEN = re.compile(rb'"continue":"([^"]+)"')
# The token is near the beginning of a page, and the mark of a stream's end in its last line.
_EDGE = 2048


async def measure(kubeconfig: str, page_size: int) -> dict[str, float]:
    async with Connection(Access(kubeconfig)) as connection:
        reads = (
            _read_pages(connection, resource, page_size)
            if resource.is_large
            else _stream(connection, resource)
            for resource in ALL_RESOURCES
        )
        sizes = await asyncio.gather(*reads)
    return {"bytes": sum(sizes), "cpu": time.process_time(), "highest": peak()}


async def _read_pages(connection: Connection, resource: Resource[Any], page_size: int) -> int:
    size, query = 0, {"limit": str(page_size)}
    while True:
        head = b""
        request = ApiRequest("list", resource.name, resource.path(), query)
        async with await connection.send(request.method, request.target, headers=HEADERS) as answer:
            body = ResponseBody(answer)
            while piece := await body.piece():
                size += len(piece)
                head = head if len(head) >= _EDGE else head + piece[:_EDGE]
        token = _TOKEN.search(head[:_EDGE])
        if token is None:
            return size
        query = {**query, "continue": token[1].decode()}


async def _stream(connection: Connection, resource: Resource[Any]) -> int:
    size, last = 0, b""
    request = ApiRequest("watch", resource.name, resource.path(), STREAMED_LIST)
    async with await connection.send(request.method, request.target, headers=HEADERS) as answer:
        body = ResponseBody(answer)
        while piece := await body.piece():
            size += len(piece)
            last = (last + piece)[-_EDGE:]
            if END_OF_LIST in last and last.endswith(b"\n"):
                break
    return size  # a kind that is not installed is an answer, too


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], int(sys.argv[2])))))  # noqa: T201 - its answer
