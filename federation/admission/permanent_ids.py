"""Permanent ids: labels that distinguish an object from earlier and later ones of the same name.

Objects that a policy has claimed carry the id of the policy. So an id is set once and is immutable.
"""

from collections.abc import Iterator

from federation.admission.json_access import mapping, member, text
from federation.admission.json_patch import Change, Put
from federation.api.labels import LABELS, POLICY_KINDS


def set_permanent_id(kind: str, wanted: object, before: object, *, identity: str) -> Iterator[Change]:
    """Set the id of a new object, and restore the id of an updated one that omits it.

    An id in a new policy is replaced: copied from another policy, it would claim that one's workloads.
    """
    label = LABELS.get(kind)
    if label is None or not isinstance(member(wanted, "metadata"), dict):
        return
    had, has = _read(before, label), _read(wanted, label)
    if has and not (before is None and kind in POLICY_KINDS):
        return
    yield _write(wanted, label, had or identity)


def find_changed_identity(kind: str, wanted: object, before: object) -> str | None:
    """Return the refusal of a changed id, or None."""
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
