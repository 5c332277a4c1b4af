"""Merge patches: what turns one JSON value into another."""

from typing import Any


def make_merge_patch(old: Any, new: Any) -> Any:  # noqa: ANN401 - any JSON
    """Give the merge patch that makes the new of the old: what is gone becomes null, lists are whole."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {name: None for name in old if name not in new}
    return gone | {
        name: make_merge_patch(old.get(name), value) for name, value in new.items() if old.get(name) != value
    }
