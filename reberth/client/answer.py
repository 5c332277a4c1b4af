"""Answers as they arrive: the lines of a watch, the parts of a list, and what breaks off in between."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from reberth.client.body import LargeBody, ResponseBody
from reberth.protocol import response
from reberth.protocol.page import PartialPage
from reberth.protocol.request import ApiRequest
from reberth.protocol.response import LARGEST_OBJECT, LARGEST_PAGE, BadObject, Page, Reader, WatchEvent
from reberth.records import Record
from reberth.values import errors
from reberth.values.errors import ApiError

T = TypeVar("T", bound=Record)


async def read_lines(
    request: ApiRequest, reader: Reader[T], answer: aiohttp.ClientResponse
) -> AsyncIterator[WatchEvent[T] | BadObject]:
    with breaking_off(request):
        body, rest, named = ResponseBody(answer), b"", str(request)
        while piece := await body.piece():  # a call for each line costs more than to read it
            text, start = rest + piece, 0
            while end := text.find(b"\n", start) + 1:  # it leaps to the end, `split` walks
                yield reader.read_line(named, text[start:end])
                start = end
            rest = text[start:]
            if len(rest) > LARGEST_OBJECT:
                raise errors.Unreadable(named, f"a line of more than {LARGEST_OBJECT} bytes")
        if rest:
            raise errors.Unanswered(named, "the watch ended in the middle of a line")


async def read_parts(
    request: ApiRequest, page: PartialPage[T], answer: aiohttp.ClientResponse
) -> AsyncIterator[Page[T]]:
    with breaking_off(request):
        body = ResponseBody(answer)
        while piece := await body.piece():
            yield Page(page.feed(piece), page.resource_version, page.continues)
    yield Page(page.end(), page.resource_version, page.continues)


def limit_of(request: ApiRequest) -> int:
    """Give how much of an answer is read: the servers of members are not ours, and some never end."""
    return LARGEST_PAGE if request.verb == "list" else LARGEST_OBJECT


def close_unread(opened: asyncio.Task[aiohttp.ClientResponse]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()


async def read_failure(request: ApiRequest, answer: aiohttp.ClientResponse) -> ApiError:
    body = b""
    with breaking_off(request), suppress(LargeBody):
        async with answer:
            body = await ResponseBody(answer).whole(LARGEST_OBJECT)
    return response.failure(str(request), answer.status, body, retry_after=answer.headers.get("Retry-After"))


@contextmanager
def breaking_off(request: ApiRequest) -> Iterator[None]:
    """Turn the errors of a connection into ours: never sent, or sent and not answered."""
    try:
        yield
    except aiohttp.ClientSSLError as error:
        raise errors.Untrusted(str(request), f"cannot connect: {error}") from error
    except aiohttp.ClientConnectorError as error:
        raise errors.Unreachable(str(request), f"cannot connect: {error}") from error
    except (aiohttp.ClientError, OSError) as error:
        text = str(error) or type(error).__name__
        raise errors.Unanswered(str(request), f"the connection was lost: {text}") from error
    except (LargeBody, HttpProcessingError) as error:  # or it is not HTTP
        raise errors.Unreadable(str(request), str(error)) from error
