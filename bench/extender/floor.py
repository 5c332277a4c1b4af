"""The least that an extender in Python can do: read the call, and give every node the same grade.

    python -m bench.extender.floor PORT

No JSON is read or written: an answer is made of the very bytes of the names that were asked about, by one
exchange of what stands between them.
"""

import asyncio
import re
import sys
from typing import cast

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_NAMES = b'"NodeNames":'


class Responder(asyncio.Protocol):
    """One connection that is kept alive."""

    answered = 0

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        begin = self._received.find(_HEAD_END) + len(_HEAD_END)
        if begin < len(_HEAD_END):
            return
        head = bytes(self._received[:begin])
        length = _LENGTH.search(head)
        end = begin + (int(length[1]) if length else 0)
        if len(self._received) >= end:
            body = bytes(self._received[begin:end])
            del self._received[:end]
            self._transport.write(self._respond(head, body))

    def look_at(self, body: bytes) -> None:
        """Do nothing; subclasses that parse the call override it."""

    def _respond(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET"):
            answer = b'reberth_extender_requests_total{result="answered"} %d\n' % Responder.answered
        else:
            Responder.answered += 1
            self.look_at(body)
            answer = respond(head.split(b" ", 2)[1], body)
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
            len(answer),
            answer,
        )


def respond(path: bytes, body: bytes) -> bytes:
    names = body[body.rindex(_NAMES) + len(_NAMES) : body.rindex(b"]") + 1]
    if path == b"/avoid/filter":
        return b'{"NodeNames":%b,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}' % names
    return grade_alike(names, b"10" if path == b"/avoid/prioritize" else b"5")


def grade_alike(names: bytes, grade: bytes) -> bytes:
    between = b'","Score":%b},{"Host":"' % grade
    return b'[{"Host":%b,"Score":%b}]' % (names[1:-1].replace(b'","', between), grade)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Responder, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
