"""Reading decoded JSON that may have any shape.

The API server calls the mutating webhook before it validates the schema. So a value of an unexpected type is
skipped here, and reported by the schema afterwards.
"""

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]
Path = tuple[str | int, ...]


def member(value: object, *path: str) -> Any:  # noqa: ANN401 - whatever stands there
    """Return the value at the path, or None."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def mapping(value: object, *path: str) -> Object:
    """Return the mapping at the path, or an empty one."""
    found = member(value, *path)
    return found if isinstance(found, dict) else {}


def text(value: object, *path: str) -> str:
    """Return the string at the path, or an empty one."""
    found = member(value, *path)
    return found if isinstance(found, str) else ""


def entries(value: object, *path: str) -> Iterator[tuple[Path, Object]]:
    """Yield each mapping in the list at the path, with its own path."""
    found = member(value, *path)
    for index, entry in enumerate(found if isinstance(found, list) else ()):
        if isinstance(entry, dict):
            yield (*path, index), entry
