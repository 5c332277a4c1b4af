"""The token of a member: whose it is, how old it is, when it is renewed, and how a new one is asked for.

A token of a service account says this itself, so that nothing needs to be remembered. Any other token is left
alone: only its issuer could renew it.
"""

import base64
import binascii
import math

import msgspec

from federation.objects.template import Object
from reberth.records import Record

_ACCOUNT = "system:serviceaccount:"
_LONGEST = 16 * 1024
_SHORTEST = 300.0
_SHARE = 1 / 3
"""A token is renewed when this share of its life is over, however short that is."""


class MemberToken(msgspec.Struct, frozen=True):
    """What a token says: its account, and its times in seconds; an old one has no times, and no end."""

    namespace: str
    account: str
    issued_at: float = 0.0
    expires_at: float = math.inf


class _Claims(Record, frozen=True):
    sub: str
    iat: float = 0.0
    exp: float | None = None


class _TokenStatus(Record, frozen=True):
    token: str


class _TokenAnswer(Record, frozen=True):
    status: _TokenStatus


def read_token(token: str) -> MemberToken | None:
    """Read what a token says; None if it is not that of a service account."""
    parts = token.split(".") if len(token) <= _LONGEST else []
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(_decode(parts[1]), type=_Claims)
    except (msgspec.MsgspecError, RecursionError, binascii.Error, ValueError):
        return None
    namespace, _, account = claims.sub.removeprefix(_ACCOUNT).partition(":")
    if not claims.sub.startswith(_ACCOUNT) or not namespace or not account:
        return None
    return MemberToken(namespace, account, claims.iat, math.inf if claims.exp is None else claims.exp)


def find_renewal(token: MemberToken, every: float) -> float:
    """Return when the token is due to be renewed; one without an end always is."""
    if math.isinf(token.expires_at):
        return -math.inf
    life = max(0.0, token.expires_at - token.issued_at)
    return token.issued_at + min(every, life * _SHARE)


def write_token_request(lifetime: float) -> Object:
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": int(lifetime)},
    }


def read_new_token(answer: Object, before: MemberToken, *, now: float) -> str | None:
    """Return the token of an answer; None if it is of another account, not newer, or useless.

    It may end earlier than the present one: an operator may have shortened its life.
    """
    try:
        token = msgspec.convert(answer, _TokenAnswer).status.token
    except msgspec.MsgspecError:
        return None
    fresh = read_token(token)
    if fresh is None or (fresh.namespace, fresh.account) != (before.namespace, before.account):
        return None
    is_usable = now + _SHORTEST <= fresh.expires_at < math.inf
    return token if is_usable and fresh.issued_at >= before.issued_at else None


def _decode(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
