"""JSON merge patches (RFC 7386)."""

from typing import Any


def make_merge_patch(old: Any, new: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the merge patch from old to new: removed members become null, lists are replaced as a whole."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {name: None for name in old if name not in new}
    return gone | {
        name: make_merge_patch(old.get(name), value) for name, value in new.items() if old.get(name) != value
    }


def apply_merge_patch(old: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return what a merge patch makes of the old value."""
    if not isinstance(patch, dict):
        return patch
    made = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = apply_merge_patch(made.get(name), value)
    return made
