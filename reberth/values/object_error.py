"""An error in one object, with the path of the field so that its owner can find it."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from reberth.records import ObjectMeta, Record
from reberth.values.quantity import nanos
from reberth.values.timestamp import parse_time

_Path = tuple[str | int, ...]

_QUANTITIES = ("requests", "limits", "overhead", "allocatedResources", "allocatable", "capacity")
_TIMES = ("creationTimestamp", "deletionTimestamp", "startTime", "lastTransitionTime", "finishedAt")


class ObjectError(ValueError):
    """An unusable object: its kind, its name, the field and the reason."""

    def __init__(self, kind: str, meta: ObjectMeta, *, field: str, reason: str) -> None:
        super().__init__(kind, meta, field, reason)
        self.kind = kind
        self.name = "/".join(filter(None, (meta.namespace, meta.name or "(unnamed)")))
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.field}: {self.reason}"


def find_unreadable(record: Record) -> str:
    """Give the path of the first field with an invalid quantity or time."""
    for path, leaf in _walk(msgspec.to_builtins(record), ()):
        if _is_unreadable(path, leaf):
            return _write_path(path)
    return "(unknown)"


def _walk(part: object, path: _Path) -> Iterator[tuple[_Path, object]]:
    parts = dict(enumerate(part)) if isinstance(part, list | tuple) else part
    if not isinstance(parts, dict):
        yield path, parts
        return
    for key, inner in parts.items():
        yield from _walk(inner, (*path, key))


def _is_unreadable(path: _Path, leaf: object) -> bool:
    if len(path) > 1 and path[-2] in _QUANTITIES:
        return _fails(nanos, leaf)
    return path[-1] in _TIMES and isinstance(leaf, str) and _fails(parse_time, leaf)


def _fails(read: Callable[[Any], object], leaf: object) -> bool:
    try:
        read(leaf)
    except ValueError:
        return True
    return False


def _write_path(path: _Path) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)[1:]
