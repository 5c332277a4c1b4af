"""Reads the body of a call, within a limit of size and time, into memory that is allocated once."""

import asyncio
from http import HTTPStatus
from typing import NamedTuple

from aiohttp import web


class BodyRefused(Exception):
    """The body is refused; with the HTTP status, and the result for the metrics."""

    def __init__(self, status: HTTPStatus, result: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.result = result


class BodyLimits(NamedTuple):
    bytes: int
    seconds: float


async def receive(request: web.Request, limits: BodyLimits) -> bytes:
    """Read the whole body. Raises BodyRefused; a connection that breaks raises its own error."""
    length = _announced(request, limits)
    if request.content.is_eof():  # it arrived together with the head
        return request.content.read_nowait()
    try:
        async with asyncio.timeout(limits.seconds):
            return bytes(await _fill(request, bytearray(length)))
    except TimeoutError:
        raise refuse_slow(limits) from None


def refuse_slow(limits: BodyLimits) -> BodyRefused:
    return BodyRefused(
        HTTPStatus.REQUEST_TIMEOUT, "slow", f"the body did not arrive within {limits.seconds:g} s"
    )


def _announced(request: web.Request, limits: BodyLimits) -> int:
    """Give the length that the head announces; kube-scheduler always does, and never compresses."""
    if "Content-Encoding" in request.headers:
        raise BodyRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unreadable", "the body must not be compressed")
    length = request.content_length
    if length is None:
        raise BodyRefused(HTTPStatus.LENGTH_REQUIRED, "unreadable", "Content-Length is missing")
    if length > limits.bytes:
        raise BodyRefused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", f"the body is larger than {limits.bytes} bytes"
        )
    return length


async def _fill(request: web.Request, body: bytearray) -> bytearray:
    filled = 0
    while chunk := await request.content.readany():
        body[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
    return body
