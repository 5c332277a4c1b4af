"""What the client sends; the live tests show what the API server makes of it."""

import json

import pytest

from reberth.client.access import Access
from reberth.client.api import Api, ApiSettings
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
