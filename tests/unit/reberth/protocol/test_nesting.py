"""How deeply JSON is nested, against a plain recursion."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.protocol.nesting import DEEPEST, flatten, is_deep

TEXTS = st.one_of(st.text(max_size=4), st.sampled_from(["]", "}", '"[[', "\\", '\\"', "\\\\"]))
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)


def levels(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + max(map(levels, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def cut(value: Any, most: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if most == 0:
        return 0
    if isinstance(value, dict):
        return {key: cut(part, most - 1) for key, part in value.items()}
    return [cut(part, most - 1) for part in value]


def nested(value: Any, outer: int) -> Any:
    for index in range(outer):
        value = [value, index] if index % 2 else {"a]": value, "b": "["}
    return value


@given(VALUES, st.integers(DEEPEST - 4, DEEPEST + 4), st.booleans(), st.sampled_from([0, 1, 2]))
def test_what_is_nested_too_deeply_is_replaced_and_nothing_else(
    value: Any,
    outer: int,
    indented: bool,  # noqa: FBT001 - hypothesis gives it
    within: int,
) -> None:
    whole = nested(value, outer)
    text = json.dumps(whole, indent=1 if indented else None).encode()
    assert is_deep(text, within=within) == (levels(whole) > DEEPEST + within)
    assert json.loads(flatten(text, within=within)) == cut(whole, DEEPEST + within + 1)


@pytest.mark.parametrize("text", [b"", b"{}", b'"', b'"' + b"[" * 1000, b"[" * 1000, b"]" * 1000, b'"\\'])
def test_what_is_no_json_makes_no_fault(text: bytes) -> None:
    assert is_deep(text) == (text == b"[" * 1000)
    flatten(text)


def test_a_text_that_is_too_long_is_not_looked_at() -> None:
    with pytest.raises(RecursionError):
        flatten(b"[" * (2**23 + 1))
