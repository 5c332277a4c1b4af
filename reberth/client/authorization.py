"""Who may read what a server shows to people: clients with a certificate, or with a token that allows it.

The API server is asked whose a token is (TokenReview), and whether they may `get` the path
(SubjectAccessReview): roles grant it as `nonResourceURLs`. Only tokens that were made for Reberth are taken:
one that is sent to the wrong server, or without a look at its certificate, is worth nothing elsewhere.

A server on loopback without TLS shows everything: only this machine reaches it.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, NamedTuple

from aiohttp import web

from reberth.client.api import Api
from reberth.cluster.kinds import Resource, plain_kind
from reberth.records.meta import Record
from reberth.runtime.http_server import Handler, ServerSettings
from reberth.runtime.logs import Log, SparseLog
from reberth.values.errors import ApiError

AUDIENCE = "reberth"
"""Whom a token must be made for: `kubectl create token ACCOUNT --audience reberth`."""

_KEPT_SECONDS = 10.0
_MOST_KEPT = 256
# Of strangers with invented tokens, too: each of them is a question to the API server.
_MOST_ASKED = 8
_NEEDED = "needs a client certificate, or a bearer token with the audience `reberth`"
_BEARER = {"WWW-Authenticate": "Bearer"}

_sparse = SparseLog(Log(__name__))


class _UserInfo(Record, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenSpec(Record, frozen=True):
    token: str = ""
    audiences: tuple[str, ...] = ()


class _TokenStatus(Record, frozen=True):
    authenticated: bool = False
    user: _UserInfo = _UserInfo()
    audiences: tuple[str, ...] | None = None


class _TokenReview(Record, frozen=True):
    spec: _TokenSpec
    status: _TokenStatus | None = None


class _Path(Record, frozen=True):
    path: str = ""
    verb: str = ""


class _AccessSpec(Record, frozen=True):
    user: str
    groups: tuple[str, ...] | None
    uid: str
    extra: dict[str, list[str]] | None
    non_resource_attributes: _Path


class _AccessStatus(Record, frozen=True):
    allowed: bool = False


class _AccessReview(Record, frozen=True):
    spec: _AccessSpec
    status: _AccessStatus | None = None


def _review(record: Any, name: str, group: str) -> Resource[Any]:  # noqa: ANN401 - a class
    return Resource(plain_kind(name, record, group), f"{name.lower()}s", namespaced=False)


_TOKENS: Resource[_TokenReview] = _review(_TokenReview, "TokenReview", "authentication.k8s.io")
_ACCESS: Resource[_AccessReview] = _review(_AccessReview, "SubjectAccessReview", "authorization.k8s.io")


class Denial(NamedTuple):
    """Why a request is not answered."""

    status: HTTPStatus
    reason: str


class TokenReviewer:
    """Asks the API server about tokens; answers are kept for some seconds."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._asked = 0
        self._kept: dict[tuple[bytes, str], tuple[float, Denial | None]] = {}

    async def find_denial(self, token: str, path: str) -> Denial | None:
        """Tell why the owner of a token may not read a path; None if they may."""
        key = hashlib.sha256(token.encode()).digest(), path
        until, denial = self._kept.get(key, (0.0, None))
        if self._clock() < until:
            return denial
        if self._asked >= _MOST_ASKED:
            return Denial(HTTPStatus.SERVICE_UNAVAILABLE, "too many tokens are being checked")
        self._asked += 1
        try:
            denial = await self._ask(token, path)
        except ApiError as error:
            _sparse.warning("token not checked", reason=str(error))
            return Denial(HTTPStatus.SERVICE_UNAVAILABLE, "the token cannot be checked now")
        finally:
            self._asked -= 1
        self._keep(key, denial)
        return denial

    async def _ask(self, token: str, path: str) -> Denial | None:
        review = await self._api.create(_TOKENS, _TokenReview(_TokenSpec(token, (AUDIENCE,))))
        status = review.status or _TokenStatus()
        if not status.authenticated or AUDIENCE not in (status.audiences or ()):
            return Denial(HTTPStatus.UNAUTHORIZED, _NEEDED)
        user = status.user
        asked = _AccessSpec(user.username, user.groups, user.uid, user.extra, _Path(path, "get"))
        access = await self._api.create(_ACCESS, _AccessReview(asked))
        if access.status and access.status.allowed:
            return None
        return Denial(HTTPStatus.FORBIDDEN, f"{user.username} may not get {path}")

    def _keep(self, key: tuple[bytes, str], denial: Denial | None) -> None:
        self._kept.pop(key, None)
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = self._clock() + _KEPT_SECONDS, denial


class Guard:
    """Lets in clients with a certificate, or with a token if there is a reviewer."""

    def __init__(self, settings: ServerSettings, reviewer: TokenReviewer | None = None) -> None:
        self._is_open = settings.is_local
        self._reviewer = reviewer

    def protect(self, routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
        if self._is_open:
            return list(routes)
        return [
            web.RouteDef(each.method, each.path, self._wrap(each.handler, each.path), each.kwargs)
            for each in routes
        ]

    def _wrap(self, handler: Any, path: str) -> Handler:  # noqa: ANN401 - of aiohttp
        answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = handler

        async def check(request: web.Request) -> web.StreamResponse:
            denial = await self._find_denial(request, path)
            if denial is None:
                return await answer(request)
            headers = _BEARER if denial.status is HTTPStatus.UNAUTHORIZED else None
            return web.Response(status=denial.status, text=f"{denial.reason}\n", headers=headers)

        return check

    async def _find_denial(self, request: web.Request, path: str) -> Denial | None:
        if request.transport and request.transport.get_extra_info("peercert"):
            return None
        if self._reviewer is None:
            return Denial(HTTPStatus.UNAUTHORIZED, "needs a client certificate")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Denial(HTTPStatus.UNAUTHORIZED, _NEEDED)
        return await self._reviewer.find_denial(token.strip(), path)
