"""Reading JSON of which nothing is known: what is not of the expected type is as good as missing.

Members are not ours: what their API servers say of a copy may have any form.
"""

from collections.abc import Sequence
from typing import Any, Final

from reberth.values.timestamp import TimeError, parse_time

LARGEST_COUNT: Final = 2**31 - 1
_LARGEST_NUMBER: Final = 2**63 - 1


def at(holder: Any, *path: str) -> Any:  # noqa: ANN401 - any JSON
    """Return what stands at the path, or None."""
    for step in path:
        holder = holder.get(step) if isinstance(holder, dict) else None
    return holder


def list_at(holder: Any, *path: str) -> Sequence[Any]:  # noqa: ANN401 - likewise
    found = at(holder, *path)
    return found if isinstance(found, list) else ()


def text_at(holder: Any, *path: str) -> str:  # noqa: ANN401 - likewise
    found = at(holder, *path)
    return found if isinstance(found, str) else ""


def time_at(holder: Any, *path: str) -> str:  # noqa: ANN401 - likewise
    """Return a time as it is written."""
    found = text_at(holder, *path)
    try:
        parse_time(found)
    except TimeError:
        return ""
    return found


def number(holder: Any, name: str) -> int:  # noqa: ANN401 - likewise
    """Read a count; the API server omits those that are 0."""
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if type(found) is int and 0 <= found <= _LARGEST_NUMBER else 0  # a bool is an int, too
