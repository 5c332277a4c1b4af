"""Permanent ids: a label that tells an object from every other of its name, before and after.

What a policy has claimed carries the policy's id. So an id is given once, and nobody changes it.
"""

from collections.abc import Iterator

from federation.admission.json_access import mapping, member, text
from federation.admission.json_patch import Change, Put
from federation.api.labels import LABELS, POLICY_KINDS


def set_permanent_id(kind: str, wanted: object, before: object, *, identity: str) -> Iterator[Change]:
    """Give a new object an id, and a changed one its old id if that was left out.

    The id that somebody writes into a new policy is not taken: it might be that of another one.
    """
    label = LABELS.get(kind)
    if label is None or not isinstance(member(wanted, "metadata"), dict):
        return
    had, has = _read(before, label), _read(wanted, label)
    if has and not (before is None and kind in POLICY_KINDS):
        return
    yield _write(wanted, label, had or identity)


def find_changed_identity(kind: str, wanted: object, before: object) -> str | None:
    """Say that an object's id was changed, if it was."""
    label = LABELS.get(kind)
    if label is None or before is None or _read(before, label) in ("", _read(wanted, label)):
        return None
    return f"label {label} is immutable, it can only be set by the system during creation"


def _read(found: object, label: str) -> str:
    return text(mapping(found, "metadata", "labels"), label)


def _write(wanted: object, label: str, identity: str) -> Change:
    if mapping(wanted, "metadata", "labels"):
        return Put(("metadata", "labels", label), identity)
    return Put(("metadata", "labels"), {label: identity})
