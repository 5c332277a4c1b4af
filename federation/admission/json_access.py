"""Looking into decoded JSON that may have any shape.

An object is completed before its schema is looked at. What does not have the shape that is expected is passed
over here: to name it is the schema's business.
"""

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]
Path = tuple[str | int, ...]


def member(value: object, *path: str) -> Any:  # noqa: ANN401 - whatever stands there
    """Give what stands at the path, None if nothing does."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def mapping(value: object, *path: str) -> Object:
    """Give the mapping at the path, an empty one if there is none."""
    found = member(value, *path)
    return found if isinstance(found, dict) else {}


def text(value: object, *path: str) -> str:
    """Give the text at the path, an empty one if there is none."""
    found = member(value, *path)
    return found if isinstance(found, str) else ""


def entries(value: object, *path: str) -> Iterator[tuple[Path, Object]]:
    """Give each mapping of the list at the path, and where it stands."""
    found = member(value, *path)
    for index, entry in enumerate(found if isinstance(found, list) else ()):
        if isinstance(entry, dict):
            yield (*path, index), entry
