import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.values.redaction import REDACTED, plain, redact

SECRET = "s3cr3t-Value"
BASE64 = "czNjcjN0LVZhbHVl"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}",
        f"got Bearer {SECRET}!",
        f"BEARER   {SECRET}",
        f"token={SECRET},b=1",
        f"idToken:{SECRET}",
        f'{{"token": "{SECRET}", "x": 1}}',
        f'{{"password": "a \\" {SECRET}", "x": 1}}',
        f"{{'password': 'a {SECRET}'}}",
        f'{{\\"client-key-data\\":\\"{SECRET}\\",\\"y\\":1}}',
        f'TLSConfig{{KeyData:"{SECRET}"}}',
        f"https://user:{SECRET}@host/path",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY----- x",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
        f"eyJhbGci.{SECRET}.c2ln z",
        f'password: "{SECRET}',
        f"https://{SECRET}@host/path",
        f"sha256~{SECRET}",
        f"aws_secret_access_key = {SECRET}",
        f"client_key={SECRET}",
        f"pwd={SECRET}",
        f"('token', '{SECRET}')",
        f'[b"X-Token", b"{SECRET}"]',
        f"got -eyJhbGci.{SECRET}.c2ln z",
    ],
)
def test_a_secret_is_taken_out_of_text(text: str) -> None:
    assert SECRET not in redact(text)
    assert REDACTED in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "tokens: 3",
        "basic authentication is off",
        "http://host/path@v1 and a@b",
        "no secrets here: at 10:30",
        "http://host:80/a@b",
        "pod shop/web-1 moved from n1 to n2",
        'secrets "pull" not found',
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    ],
)
def test_text_without_a_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("padding", ["", "=", "=="])
def test_what_looks_like_base64_after_basic_is_taken_out(padding: str) -> None:
    assert redact(f"sent Basic {BASE64}{padding} to n1") == "sent Basic [redacted] to n1"


def test_only_the_secret_is_taken_out() -> None:
    assert redact("user=a token=b node=c") == "user=a token=[redacted] node=c"


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "Token",
        "id_token",
        "authorization",
        "password",
        "client-key-data",
        "tls.key",
        "api_key",
        "Cookie",
        "tokens",
        "client_key",
        "aws_secret_access_key",
    ],
)
def test_a_field_is_secret_by_its_name(name: str) -> None:
    assert plain(SECRET, name) == REDACTED
    assert plain([{name: [SECRET]}]) == [{name: REDACTED}]


@pytest.mark.parametrize("name", ["node", "key", "keys", "secret_count", "budget"])
def test_a_field_is_not_secret_by_a_name_that_is_only_like_it(name: str) -> None:
    assert plain("x", name) == "x"


def test_a_number_of_secrets_is_no_secret() -> None:
    assert plain(3, "tokens") == 3


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "as_json"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ((1, "a"), [1, "a"]),
        ({3: b"x"}, {"3": "b'x'"}),
        (ValueError("token=abc"), "token=[redacted]"),
        (Unprintable(), "<Unprintable that cannot be printed>"),
    ],
)
def test_every_value_becomes_plain(value: object, as_json: object) -> None:
    assert plain(value) == as_json


def test_a_value_that_holds_itself_ends() -> None:
    endless: dict[str, Any] = {}
    endless["me"] = endless
    assert len(json.dumps(plain(endless))) < 100


def test_a_long_text_is_cut_and_shows_by_how_much() -> None:
    cut = redact("x" * 10_000)
    assert len(cut) < 8300
    assert cut.endswith("… and 1808 more")


@pytest.mark.parametrize(
    "part", ["a", "token", "eyJ", "://", 'token="\\', "bearer ", "-----BEGIN ", "key ", " "]
)
def test_no_text_takes_long(part: str) -> None:
    """A pattern that steps back for every character would take minutes here."""
    started = time.process_time()
    redact(part * 10**6)
    assert time.process_time() - started < 2


@given(
    st.recursive(
        st.text() | st.floats() | st.none(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=8
    )
)
def test_plain_values_survive_json(value: object) -> None:
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == plain(value)
