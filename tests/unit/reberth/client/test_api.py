"""What the client sends; the live tests show what the API server makes of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from itertools import chain
from typing import Any, Self, cast

import pytest
from aiohttp import ClientResponse

from reberth.client.access import Access
from reberth.client.answer import read_failure, read_lines
from reberth.client.api import Api, ApiSettings
from reberth.cluster.kinds import PODS
from reberth.protocol.request import ApiRequest
from reberth.protocol.response import LARGEST_OBJECT, LARGEST_PAGE, Reader
from reberth.values.errors import ServerFault, Unreadable


@pytest.mark.parametrize(
    ("dry_run", "target", "options"),
    [
        (True, "/eviction?dryRun=All", {"preconditions": {"uid": "u"}, "dryRun": ["All"]}),
        (False, "/eviction", {"preconditions": {"uid": "u"}}),
    ],
)
async def test_a_dry_run_of_an_eviction_is_asked_for_in_the_query_and_in_the_body(
    monkeypatch: pytest.MonkeyPatch, *, dry_run: bool, target: str, options: object
) -> None:
    sent: list[ApiRequest] = []
    api = Api(Access(), ApiSettings())

    async def keep(request: ApiRequest) -> bytes:
        sent.append(request)
        return b"{}"

    monkeypatch.setattr(api, "_write", keep)
    await api.evict("web-1", namespace="shop", uid="u", dry_run=dry_run)
    (request,) = sent
    assert request.target == f"/api/v1/namespaces/shop/pods/web-1{target}"
    assert json.loads(request.body or b"")["deleteOptions"] == options


@pytest.mark.parametrize("said", [b"{}", b"[]", b"null", b'{"major": "1", "minor": 36}', b"1.36", b"\xff"])
async def test_an_odd_version_of_the_server_is_an_error_of_its_answer(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    api = Api(Access(), ApiSettings())

    async def answer(_request: ApiRequest) -> bytes:
        return said

    monkeypatch.setattr(api, "_read", answer)
    with pytest.raises(Unreadable, match="version"):
        await api.version()


PIECE = 2**22


class PieceByPiece:
    """An answer whose body comes in these pieces."""

    connection = None

    def __init__(self, pieces: list[bytes]) -> None:
        self.content = self
        self.is_closed = False
        self._pieces = [*pieces, b""]

    async def readany(self) -> bytes:
        await asyncio.sleep(0.01)
        return self._pieces.pop(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.is_closed = True


class PagedList:
    """A list in pages, each of which has the token of the next one and comes in three pieces."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch, pages: int) -> None:
        self.asked: list[ApiRequest] = []
        self.answers: list[PieceByPiece] = []
        self._pages = pages
        monkeypatch.setattr(api, "_open", self._open)

    async def _open(self, request: ApiRequest) -> PieceByPiece:
        self.asked.append(request)
        number = len(self.asked)
        token = f"token-{number}" if number < self._pages else ""
        meta = {"resourceVersion": "7", "continue": token}
        items = [{"metadata": {"name": f"p-{number}-{each}"}} for each in range(3)]
        text = json.dumps({"metadata": meta, "items": items}, separators=(",", ":")).encode()
        ends = [text.index(name) for name in (f"p-{number}-0".encode(), f"p-{number}-2".encode())]
        self.answers.append(PieceByPiece([text[: ends[0]], text[ends[0] : ends[1]], text[ends[1] :]]))
        return self.answers[-1]


@pytest.mark.looptime
async def test_the_next_page_is_asked_for_while_the_one_before_arrives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api(Access(), ApiSettings(page_size=3))
    served = PagedList(api, monkeypatch, 3)
    seen = []
    async for part in api.list_parts(PODS, namespace="shop", labelSelector="app=web"):
        names = [each.metadata.name for each in part.objects]
        await asyncio.sleep(0)
        seen.append((len(served.asked), names))
        assert part.resource_version == "7"
    per_page = [[(asked, 0), (asked, 2), (asked, 0), (asked, 1)] for asked in (2, 3, 3)]
    assert [(asked, len(names)) for asked, names in seen] == list(chain.from_iterable(per_page))
    expected = [f"p-{page}-{each}" for page in (1, 2, 3) for each in range(3)]
    assert [name for _, names in seen for name in names] == expected
    assert [each.query.get("continue") for each in served.asked] == [None, "token-1", "token-2"]
    for each in served.asked:
        assert (each.path, each.query["labelSelector"]) == ("/api/v1/namespaces/shop/pods", "app=web")
        assert each.query["limit"] == "3"
    assert all(answer.is_closed for answer in served.answers)


@pytest.mark.looptime
async def test_a_reader_that_leaves_a_list_leaves_no_answer_open(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(Access(), ApiSettings())
    served = PagedList(api, monkeypatch, 3)
    async with aclosing(api.list_parts(PODS)) as parts:
        await anext(parts)
        await asyncio.sleep(1)
    await asyncio.sleep(1)
    assert [answer.is_closed for answer in served.answers] == [True, True]


class Endless(PieceByPiece):
    """An answer that never ends; whoever reads on and on ends here."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    headers: Mapping[str, str] = {}

    def __init__(self) -> None:
        super().__init__([])
        self.taken = 0

    async def readany(self) -> bytes:
        assert self.taken <= LARGEST_PAGE + PIECE
        self.taken += PIECE
        return b"x" * PIECE


async def list_all(api: Api) -> None:
    async for _ in api.list_pages(PODS):
        pass


async def list_in_parts(api: Api) -> None:
    async for _ in api.list_parts(PODS):
        pass


async def follow(api: Api) -> None:
    reader = cast("Reader[Any]", None)
    request = ApiRequest("watch", "pods", "/api/v1/pods")
    async for _ in read_lines(request, reader, await api._open(request)):
        pass


@pytest.mark.parametrize(
    ("read", "most"),
    [
        (lambda api: api.get(PODS, "web", namespace="shop"), LARGEST_OBJECT),
        (list_all, LARGEST_PAGE),
        (list_in_parts, LARGEST_PAGE),
        (follow, LARGEST_OBJECT),
    ],
    ids=["get", "list", "parts", "watch"],
)
async def test_no_more_is_read_of_an_endless_answer_than_an_honest_one_may_have(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[Api], Awaitable[object]], most: int
) -> None:
    api, answer = Api(Access(), ApiSettings()), Endless()

    async def open_endless(_: ApiRequest) -> Endless:
        return answer

    monkeypatch.setattr(api, "_open", open_endless)
    with pytest.raises(Unreadable, match=str(most)):
        await read(api)
    assert most < answer.taken <= most + 2 * PIECE


async def test_an_endless_error_is_one_without_words() -> None:
    answer = Endless()
    failure = await read_failure(ApiRequest("get", "pods", "/api/v1/pods"), cast("ClientResponse", answer))
    assert isinstance(failure, ServerFault)
    assert answer.taken <= LARGEST_OBJECT + 2 * PIECE
