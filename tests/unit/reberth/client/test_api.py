"""What the client sends; the live tests show what the API server makes of it."""

import json

import pytest

from reberth.client.access import Access
from reberth.client.api import Api, ApiSettings
from reberth.protocol.request import ApiRequest


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
