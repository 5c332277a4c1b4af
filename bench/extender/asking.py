"""Calls as kube-scheduler makes them, over one connection that is kept alive, and how long each takes."""

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from bench.reading.arms import Failed
from localcluster.host.ports import HOST

VERBS = ("/avoid/filter", "/avoid/prioritize", "/scores/prioritize")
"""In the order in which one pod is asked about."""

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_CHUNK = 1 << 18
_STEP = 37
"""How far the scheduler's list of nodes has turned from one pod to the next."""

Seconds = dict[str, dict[str, list[float]]]
"""By extender and verb."""


class Connection:
    """One, as a context: `with Connection(port) as connection`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = f"{HOST}:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, path: str, body: bytes) -> tuple[float, bytes]:
        """Return the seconds until the last byte of the answer, and the answer."""
        call = self._head(path, len(body)) + body
        started = time.perf_counter()
        self._socket.sendall(call)
        head, answer = self._receive()
        seconds = time.perf_counter() - started
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise Failed(f"{path} was answered {head.decode()} {answer[:200].decode()}")
        return seconds, answer

    def _head(self, path: str, length: int) -> bytes:
        return (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: Go-http-client/1.1\r\n"
            f"Content-Length: {length}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
        ).encode()

    def _receive(self) -> tuple[bytes, bytes]:
        received = bytearray()
        while (end := received.find(_HEAD_END)) < 0:
            received += self._read()
        head, begin = bytes(received[:end]), end + len(_HEAD_END)
        announced = _LENGTH.search(head)
        if announced is None:
            raise Failed(f"an answer without length: {head.decode()}")
        while len(received) < begin + int(announced[1]):
            received += self._read()
        return head, bytes(received[begin:])

    def _read(self) -> bytes:
        if chunk := self._socket.recv(_CHUNK):
            return chunk
        raise Failed("the connection ended in the middle of an answer")


class Question(NamedTuple):
    """One pod and the nodes that the scheduler has in mind for it."""

    pod: Mapping[str, Any]
    nodes: Sequence[str]

    def write(self) -> bytes:
        asked = {"Pod": self.pod, "Nodes": None, "NodeNames": self.nodes}
        return json.dumps(asked, separators=(",", ":")).encode()


def turn(pods: Sequence[Mapping[str, Any]], nodes: Sequence[str], *, times: int) -> Iterator[Question]:
    """Ask about one pod after the other; the list begins further on each time, as the scheduler's does."""
    for number in range(times):
        shift = number * _STEP % len(nodes)
        yield Question(pods[number % len(pods)], [*nodes[shift:], *nodes[:shift]])


def measure(ports: Mapping[str, int], questions: Iterator[Question], *, warm: int) -> Seconds:
    """Ask all extenders each question, one after the other; the first ones only warm them up.

    Raises Failed if answers to those differ.
    """
    seconds: Seconds = {name: {verb: [] for verb in VERBS} for name in ports}
    with ExitStack() as stack:
        connections = {name: stack.enter_context(Connection(port)) for name, port in ports.items()}
        for number, question in enumerate(questions):
            body = question.write()
            asked = {
                name: {verb: connection.ask(verb, body) for verb in VERBS}
                for name, connection in connections.items()
            }
            if number < warm:
                refuse_differences([[answer for _, answer in each.values()] for each in asked.values()])
                continue
            for name, each in asked.items():
                for verb, (taken, _) in each.items():
                    seconds[name][verb].append(taken)
    return seconds


def refuse_differences(answers: Sequence[Sequence[bytes]]) -> None:
    first, *others = ([json.loads(answer) for answer in each] for each in answers)
    if any(other != first for other in others):
        raise Failed("the extenders do not answer alike")
