"""Tokens of members: what they say, when they are renewed, and which new ones are taken."""

import base64
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.controllers.membership.tokens import TokensSettings
from federation.membership.member_token import (
    MemberToken,
    find_renewal,
    read_new_token,
    read_token,
    write_token_request,
)
from tests.support.federation.objects import NOW

DAY = 86400.0
SUBJECT = "system:serviceaccount:reberth-system:reberth-federation-member"
SETTINGS = TokensSettings()


def jwt(**claims: Any) -> str:
    """A token that says this; nobody here verifies its signature."""
    parts = [b"{}", msgspec.json.encode({"sub": SUBJECT, **claims}), b"signature"]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def bounded(issued: float = NOW, life: float = 7 * DAY, **claims: Any) -> str:
    return jwt(iat=int(issued), exp=int(issued + life), **claims)


def test_a_token_says_whose_it_is_and_how_long_it_lives() -> None:
    assert read_token(bounded()) == MemberToken(
        "reberth-system", "reberth-federation-member", NOW, NOW + 7 * DAY
    )
    forever = read_token(jwt(iss="kubernetes/serviceaccount"))
    assert forever == MemberToken("reberth-system", "reberth-federation-member", 0.0, math.inf)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "opaque",
        "a.b.c",
        "a.%%.c",
        jwt(sub="alice"),
        jwt(sub="system:serviceaccount:shop"),
        jwt(sub="system:serviceaccount::x"),
        jwt(sub=7),
        jwt(iat="soon"),
        bounded(more="x" * 16384),
        "." * 100_000,
        "a." + base64.urlsafe_b64encode(b"[" * 9000).decode() + ".c",
    ],
)
def test_any_other_token_is_left_alone(token: str) -> None:
    assert read_token(token) is None


def test_it_is_renewed_daily_and_lives_a_week() -> None:
    token = read_token(bounded())
    assert token is not None
    assert find_renewal(token, SETTINGS.renew_every) == NOW + DAY
    assert write_token_request(SETTINGS.lifetime)["spec"] == {"expirationSeconds": 604800}


def test_one_without_an_end_is_renewed_at_once_and_a_short_one_early() -> None:
    forever, short = read_token(jwt()), read_token(bounded(life=3600))
    assert forever is not None
    assert short is not None
    assert find_renewal(forever, SETTINGS.renew_every) == -math.inf
    assert find_renewal(short, SETTINGS.renew_every) == NOW + 1200


@given(began=st.floats(0, 30 * DAY), length=st.floats(0, DAY))
def test_a_hub_that_is_down_for_a_day_loses_nobody(began: float, length: float) -> None:
    """Whenever it goes down and however long within a day, the token that it finds is still valid."""
    issued = 0.0
    while (
        find_renewal(MemberToken("n", "a", issued, issued + SETTINGS.lifetime), SETTINGS.renew_every) <= began
    ):
        issued += SETTINGS.renew_every + SETTINGS.look_every
    assert issued + SETTINGS.lifetime > began + length + 4 * DAY


@pytest.mark.parametrize(
    ("before", "answer", "is_taken"),
    [
        (bounded(NOW - DAY), bounded(), True),
        (jwt(), bounded(), True),
        (bounded(), bounded(NOW - 60), False),
        (bounded(NOW - DAY), jwt(), False),
        (bounded(NOW - DAY, 30 * DAY), bounded(), True),
        (bounded(NOW - DAY), bounded(NOW, 200), False),
        (bounded(NOW - 9 * DAY), bounded(NOW - 8 * DAY), False),
        (bounded(NOW - DAY), bounded(sub="system:serviceaccount:reberth-system:another"), False),
        (bounded(NOW - DAY), "opaque", False),
    ],
)
def test_only_a_newer_token_of_the_same_account_is_taken(before: str, answer: str, *, is_taken: bool) -> None:
    token = read_token(before)
    assert token is not None
    taken = read_new_token({"status": {"token": answer}}, token, now=NOW)
    assert taken == (answer if is_taken else None)


@pytest.mark.parametrize("answer", [{}, {"status": {}}, {"status": {"token": 7}}, {"status": None}])
def test_an_answer_without_a_token_is_none(answer: Any) -> None:
    assert read_new_token(answer, MemberToken("n", "a"), now=NOW) is None
