"""Numbers of pods in settings: whole, or a percentage that is rounded down."""

from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.config.settings import Section, parse
from reberth.values.errors import SettingsError
from reberth.values.pod_limit import PodLimit

HEAD = b"apiVersion: reberth.dev/v1alpha1\nkind: Most\n"


class Most(Section, frozen=True):
    moves: PodLimit | None = None


def read(text: str) -> PodLimit:
    limit = PodLimit.from_text(text)
    assert limit is not None
    return limit


def never() -> NoReturn:
    raise AssertionError("a number needs no pods to be counted")


@pytest.mark.parametrize(
    ("text", "pods", "allowed"),
    [
        ("10%", 0, 0),
        ("10%", 1, 0),
        ("10%", 3, 0),
        ("10%", 9, 0),
        ("10%", 10, 1),
        ("10%", 19, 1),
        ("10%", 20, 2),
        ("29%", 100, 29),  # in binary fractions it would be 28
        ("33.3%", 3, 0),
        ("33.334%", 3, 1),
        ("50%", 1, 0),
        ("50%", 3, 1),
        ("0.5%", 137_500, 687),
        ("0.001%", 99_999, 0),
        ("0.001%", 100_000, 1),
        ("99.999%", 1, 0),
        ("100%", 0, 0),
        ("100%", 1, 1),
        ("100%", 137_500, 137_500),
        ("0%", 137_500, 0),
        ("10% min 1", 0, 1),
        ("10% min 1", 1, 1),
        ("10% min 1", 19, 1),
        ("10% min 1", 20, 2),
        ("0% min 3", 50, 3),
    ],
)
def test_a_percentage_is_rounded_down_but_not_below_its_minimum(text: str, pods: int, allowed: int) -> None:
    limit = read(text).among(lambda: pods)
    assert limit.number == allowed
    assert limit.text == text
    told = f"{allowed} of {pods} pods" if allowed else f"0 of {pods} pods, however long one waits"
    assert str(limit) == f"{text} ({told})"


@given(share=st.integers(0, 100_000), pods=st.integers(0, 10**6))
def test_no_percentage_is_ever_exceeded(share: int, pods: int) -> None:
    limit = read(f"{share // 1000}.{share % 1000:03}%").among(lambda: pods)
    assert limit.number * 100_000 <= share * pods < (limit.number + 1) * 100_000


@pytest.mark.parametrize(("text", "allowed"), [("10%", 0), ("100%", 0), ("10% min 2", 2)])
def test_before_the_pods_are_counted_only_the_minimum_is_allowed(text: str, allowed: int) -> None:
    limit = read(text)
    assert limit.is_percentage
    assert limit.number == allowed
    assert str(limit) == text


def test_a_number_is_what_it_is() -> None:
    limit = PodLimit(7).among(never)
    assert not limit.is_percentage
    assert (limit.number, limit.text, str(limit)) == (7, "7", "7")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (b"5", PodLimit(5)),
        (b"0", PodLimit(0)),
        (b"null", None),
        (b"5%", PodLimit(0, 5000)),
        (b"0.25% min 4", PodLimit(4, 250)),
    ],
)
def test_it_is_read_from_settings(text: bytes, limit: PodLimit | None) -> None:
    assert parse(HEAD + b"moves: " + text, Most) == Most(limit)


@pytest.mark.parametrize(
    "text",
    [
        *("-1", "1.5", "true", "10000000", "'5'", "101%", "100.001%", "-5%", "5 %", "5%min 1", "5% min"),
        *("5% min -1", "5% min 1%", "5% max 1", "0.0005%", "'%'", "5% per 10m", "[5]"),
    ],
)
def test_anything_else_is_refused_by_the_name_of_the_field(text: str) -> None:
    with pytest.raises(SettingsError, match=r"moves.*a number of pods such as 10, or a percentage such as"):
        parse(HEAD + f"moves: {text}".encode(), Most)
