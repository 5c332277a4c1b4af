"""Values of Lua as JSON.

Lua does not tell an empty list from an empty object, and knows no whole numbers. An empty table is what
stands at the same path of an argument; elsewhere it is an object.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from lupa.lua51 import lua_type

MOST_VALUES, DEEPEST = 200_000, 64


class ConversionError(Exception):
    """A value of Lua that is no JSON."""


def read_value(value: Any, references: Sequence[Any]) -> Any:  # noqa: ANN401 - any value of Lua in, any JSON out
    """Read a value of Lua. Raises ConversionError."""
    return _Reading().read(value, references, DEEPEST)


class _Reading:
    """Counts what is read: a table may contain itself."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def read(self, value: Any, references: Sequence[Any], levels: int) -> Any:  # noqa: ANN401 - likewise
        self._left -= 1
        if self._left < 0 or levels < 0:
            raise ConversionError("it is too large, or contains itself")
        kind = lua_type(value)
        if kind is None:
            return _whole(value) if isinstance(value, float) else value
        if kind != "table":
            raise ConversionError(f"it has a {kind}")
        return self._read_table(value, references, levels - 1)

    def _read_table(self, table: Any, references: Sequence[Any], levels: int) -> Any:  # noqa: ANN401 - likewise
        items = list(table.items())
        if not items:
            return next((type(each)() for each in references if isinstance(each, (dict, list))), {})
        size = len(items)
        if all(isinstance(key, int) and 1 <= key <= size for key, _ in items):
            items.sort(key=itemgetter(0))
            return [self.read(value, _below(references, key - 1), levels) for key, value in items]
        if not all(isinstance(key, str) for key, _ in items):
            raise ConversionError("it has a table that is neither a list nor an object with names")
        return {key: self.read(value, _below(references, key), levels) for key, value in items}


def _below(references: Sequence[Any], step: str | int) -> list[Any]:
    """Return what stands one step below in each of the references."""
    if isinstance(step, str):
        return [each[step] for each in references if isinstance(each, dict) and step in each]
    return [each[step] for each in references if isinstance(each, list) and step < len(each)]


def _whole(number: float) -> float | int:
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise ConversionError("it has a number that is not finite")
    return int(number) if number.is_integer() else number
