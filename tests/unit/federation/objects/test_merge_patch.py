"""Merge patches, by the examples of RFC 7386 and back and forth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.objects.merge_patch import apply_merge_patch, make_merge_patch

LEAVES = st.integers() | st.text(max_size=3) | st.booleans()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abc"), inner), max_leaves=6
)
OBJECTS = st.dictionaries(st.text("abc", max_size=2), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": 1}, {"a": {"bb": {"ccc": None}}}, {"e": 1, "a": {"bb": {}}}),
        ([1], {"a": "b", "c": None}, {"a": "b"}),
        ({"a": "foo"}, "bar", "bar"),
    ],
)
def test_a_patch_is_applied_as_the_rfc_says(old: Any, patch: Any, new: Any) -> None:
    assert apply_merge_patch(old, patch) == new


@given(OBJECTS, OBJECTS)
def test_the_patch_from_one_to_the_other_makes_the_other(old: Any, new: Any) -> None:
    assert apply_merge_patch(old, make_merge_patch(old, new)) == new
