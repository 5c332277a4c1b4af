"""Who may read pages: certificates over real TLS, tokens as an API server in memory judges them."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import msgspec
import pytest
from aiohttp import web

from localcluster.credentials import Authority
from reberth.client.api import Api
from reberth.client.authorization import Guard, TokenReviewer
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.errors import ApiError, Unreachable

OPEN = ServerSettings(port=0)
TO_ALL = ServerSettings(port=0, host="0.0.0.0", allow_plain=True)


class Reviews:
    """What an API server says of tokens."""

    def __init__(self) -> None:
        self.owners = {"good": "reader", "else": "stranger", "wide": "reader"}
        self.audiences = {"wide": ["https://kubernetes.default.svc"]}
        self.asked: list[str] = []
        self.trouble: ApiError | None = None

    async def create(self, resource: Any, body: Any) -> Any:
        if self.trouble:
            raise self.trouble
        self.asked.append(resource.name)
        asked = msgspec.json.decode(msgspec.json.encode(body))["spec"]
        return msgspec.convert({"spec": asked, "status": self.judge(resource.name, asked)}, resource.record)

    def judge(self, kind: str, asked: dict[str, Any]) -> dict[str, Any]:
        if kind == "subjectaccessreviews":
            assert asked["groups"] == ["readers"]
            assert asked["nonResourceAttributes"] == {"path": "/page", "verb": "get"}
            return {"allowed": asked["user"] == "reader"}
        assert asked["audiences"] == ["reberth"]
        owner = self.owners.get(asked["token"])
        if owner is None:
            return {"error": "invalid bearer token", "user": {}}
        audiences = self.audiences.get(asked["token"], asked["audiences"])
        user = {"username": owner, "groups": ["readers"], "uid": "u"}
        return {"authenticated": True, "user": user, "audiences": audiences}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def show(_: web.Request) -> web.Response:
    return web.Response(text="secret\n")


@asynccontextmanager
async def serving(settings: ServerSettings, reviewer: TokenReviewer | None) -> AsyncIterator[Server]:
    routes = Guard(settings, reviewer).protect([web.get("/page", show)])
    async with Server(settings, routes=routes) as server:
        yield server


async def ask(
    server: Server, *, token: str | None = None, tls: ssl.SSLContext | None = None
) -> tuple[int, str, str | None]:
    headers = {"Authorization": token} if token else {}
    url = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}/page"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers=headers, ssl=tls or True) as answer,
    ):
        return answer.status, await answer.text(), answer.headers.get("WWW-Authenticate")


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (None, 401),
        ("Bearer ", 401),
        ("Basic good", 401),
        ("Bearer unknown", 401),
        ("Bearer wide", 401),
        ("Bearer else", 403),
        ("Bearer good", 200),
        ("bearer  good", 200),
    ],
)
async def test_a_token_must_be_for_us_and_its_owner_must_be_allowed(token: str | None, status: int) -> None:
    async with serving(TO_ALL, TokenReviewer(cast("Api", Reviews()))) as server:
        found, text, challenge = await ask(server, token=token)
        assert (found, "secret" in text) == (status, status == 200)
        assert (challenge == "Bearer") == (status == 401)


async def test_an_answer_is_kept_for_seconds() -> None:
    reviews, clock = Reviews(), Clock()
    reviewer = TokenReviewer(cast("Api", reviews), clock)
    async with serving(TO_ALL, reviewer) as server:
        for token in ("Bearer good", "Bearer unknown") * 3:
            await ask(server, token=token)
        assert reviews.asked == ["tokenreviews", "subjectaccessreviews", "tokenreviews"]
        del reviews.owners["good"]
        clock.now = 9.9
        assert (await ask(server, token="Bearer good"))[0] == 200
        clock.now = 10.1
        assert (await ask(server, token="Bearer good"))[0] == 401


async def test_invented_tokens_do_not_fill_the_memory() -> None:
    reviewer = TokenReviewer(cast("Api", Reviews()), Clock())
    for number in range(1000):
        await reviewer.find_denial(f"invented-{number}", "/page")
    assert len(reviewer._kept) == 256


async def test_what_cannot_be_checked_is_not_shown_and_not_kept() -> None:
    reviews = Reviews()
    reviews.trouble = Unreachable("create /tokenreviews", "no way")
    async with serving(TO_ALL, TokenReviewer(cast("Api", reviews), Clock())) as server:
        assert (await ask(server, token="Bearer good"))[0] == 503
        reviews.trouble = None
        assert (await ask(server, token="Bearer good"))[0] == 200


async def test_a_certificate_needs_no_token_and_is_not_demanded(tmp_path: Path) -> None:
    authority = Authority(tmp_path).create()
    pair, shown = authority.issue("server", hosts=["127.0.0.1"]), authority.issue("reader")
    files = CertificateFiles(
        str(pair.certificate), str(pair.key), str(authority.certificate), client_certificates="optional"
    )
    nobody = ssl.create_default_context(cafile=authority.certificate)
    somebody = ssl.create_default_context(cafile=authority.certificate)
    somebody.load_cert_chain(shown.certificate, shown.key)
    stranger = ssl.create_default_context(cafile=authority.certificate)
    other = Authority(tmp_path / "other").create().issue("stranger")
    stranger.load_cert_chain(other.certificate, other.key)
    for reviewer in (None, TokenReviewer(cast("Api", Reviews()))):
        async with serving(ServerSettings(port=0, tls=files), reviewer) as server:
            assert (await ask(server, tls=somebody))[0] == 200
            assert (await ask(server, tls=nobody))[0] == 401
            assert (await ask(server, tls=nobody, token="Bearer good"))[0] == (200 if reviewer else 401)
            with pytest.raises(aiohttp.ClientError):
                await ask(server, tls=stranger)


async def test_a_server_for_this_machine_shows_everything() -> None:
    async with serving(OPEN, None) as server:
        assert (await ask(server))[0] == 200
