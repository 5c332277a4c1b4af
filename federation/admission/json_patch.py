"""Changes of an object as a JSON Patch (RFC 6902)."""

from collections.abc import Iterable

import msgspec

from federation.admission.json_access import Path


class Put(msgspec.Struct, frozen=True):
    """Set the member of a mapping, whether it exists or not."""

    path: Path
    value: object


class Drop(msgspec.Struct, frozen=True):
    """Remove the member from its mapping."""

    path: Path


Change = Put | Drop


def encode(changes: Iterable[Change]) -> bytes:
    return msgspec.json.encode([_operation(change) for change in changes])


def _operation(change: Change) -> dict[str, object]:
    path = "".join(f"/{_escape(str(step))}" for step in change.path)
    if isinstance(change, Drop):
        return {"op": "remove", "path": path}
    return {"op": "add", "path": path, "value": change.value}


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
