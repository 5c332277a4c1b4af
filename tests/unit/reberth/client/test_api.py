"""What the client sends; the live tests show what the API server makes of it."""

import asyncio
import json
from contextlib import aclosing

import pytest

from reberth.client.access import Access
from reberth.client.api import Api, ApiSettings
from reberth.cluster.kinds import PODS
from reberth.protocol.request import ApiRequest
from reberth.values.errors import Unreadable


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


class PagedList:
    """The pages of a list, each with the token of the next one; none is answered before it is released."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch, pages: int) -> None:
        self.asked: list[ApiRequest] = []
        self.left = 0  # requests that nobody waits for any more
        self.released = asyncio.Event()
        self.released.set()
        self._pages = pages
        monkeypatch.setattr(api, "_read", self._answer)

    async def _answer(self, request: ApiRequest) -> bytes:
        self.asked.append(request)
        number = len(self.asked)
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.left += 1
            raise
        token = f"token-{number}" if number < self._pages else ""
        meta = {"resourceVersion": "7", "continue": token}
        return json.dumps({"metadata": meta, "items": [{"metadata": {"name": f"p-{number}"}}]}).encode()


async def test_the_next_page_is_asked_for_while_the_one_before_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api(Access(), ApiSettings(page_size=2))
    served = PagedList(api, monkeypatch, 3)
    seen = []
    async for page in api.list_pages(PODS, namespace="shop", labelSelector="app=web"):
        await asyncio.sleep(0)  # as a reader does now and then
        seen.append((len(served.asked), [each.metadata.name for each in page.objects]))
    assert seen == [(2, ["p-1"]), (3, ["p-2"]), (3, ["p-3"])]
    assert [each.query.get("continue") for each in served.asked] == [None, "token-1", "token-2"]
    for each in served.asked:
        assert (each.path, each.query["labelSelector"]) == ("/api/v1/namespaces/shop/pods", "app=web")
        assert each.query["limit"] == "2"


async def test_a_reader_that_leaves_cancels_the_request_for_the_next_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api(Access(), ApiSettings())
    served = PagedList(api, monkeypatch, 3)
    async with aclosing(api.list_pages(PODS)) as pages:
        await anext(pages)
        served.released.clear()
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (len(served.asked), served.left) == (2, 1)
