"""Values of Lua as JSON, and how much JSON becomes values of Lua.

Lua does not tell an empty list from an empty object, and knows no whole numbers. An empty table is what
stands at the same path of an argument; elsewhere it is an object. A text that stands in many places is one in
Lua, and many in JSON: so results are counted and sized while they are read, each table before its values.
"""

import time
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import msgspec
from lupa.lua51 import lua_type

MOST_VALUES, DEEPEST = 32_768, 64
LARGEST_RESULT = 2**22
"""Characters of all texts and names of a result."""
_LOOK_EVERY = 256
"""Values between two looks at the clock."""


MOST_GIVEN = 65_536
"""Values of all arguments of a run: to turn each into one of Lua takes up to half a microsecond."""
_SHORTEST = 2
"""Bytes that a value takes as JSON at least, with what separates it from the next one."""


class ConversionError(Exception):
    """A value of Lua that is no JSON."""


class TooLarge(ConversionError):
    """A value of Lua that takes too much to read."""


def has_too_many(arguments: Sequence[Any]) -> bool:
    """Tell whether arguments have so many values that it would take too long to turn them into values of Lua.

    They are written as JSON first, which takes a fraction of the time; most are too short to be counted.
    """
    if len(msgspec.json.encode(arguments)) <= _SHORTEST * MOST_GIVEN:
        return False
    left, rest = MOST_GIVEN, list(arguments)
    while rest and left >= 0:
        value = rest.pop()
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left -= len(parts)
        rest += parts if left >= 0 else ()
    return left < 0


class ResultReader:
    """Reads the values of one result within the limits, which they share. `seconds` are of CPU time."""

    def __init__(self, seconds: float) -> None:
        self._left, self._room = MOST_VALUES, LARGEST_RESULT
        self._deadline = time.process_time() + seconds

    def read(self, value: Any, references: Sequence[Any], levels: int = DEEPEST) -> Any:  # noqa: ANN401 - any value of Lua in, any JSON out
        """Read a value of Lua. Raises ConversionError."""
        if levels < 0:
            raise ConversionError("it is too deep, or contains itself")
        kind = lua_type(value)
        if kind is None:
            return _whole(value) if isinstance(value, float) else value
        if kind != "table":
            raise ConversionError(f"it has a {kind}")
        return self._read_table(value, references, levels - 1)

    def _read_table(self, table: Any, references: Sequence[Any], levels: int) -> Any:  # noqa: ANN401 - likewise
        items = list(self._count(table))
        if not items:
            return next((type(each)() for each in references if isinstance(each, (dict, list))), {})
        size = len(items)
        if all(isinstance(key, int) and 1 <= key <= size for key, _ in items):
            items.sort(key=itemgetter(0))
            return [self.read(value, _below(references, key - 1), levels) for key, value in items]
        if not all(isinstance(key, str) for key, _ in items):
            raise ConversionError("it has a table that is neither a list nor an object with names")
        return {key: self.read(value, _below(references, key), levels) for key, value in items}

    def _count(self, table: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - likewise
        """Yield what a table holds, as long as that is not too much."""
        for item in table.items():
            self._left -= 1
            self._room -= sum(len(each) for each in item if isinstance(each, str))
            if self._left < 0:
                raise TooLarge(f"more than {MOST_VALUES} values")
            if self._room < 0:
                raise TooLarge(f"more than {LARGEST_RESULT} characters")
            if self._left % _LOOK_EVERY == 0 and time.process_time() > self._deadline:
                raise TooLarge("it takes too much time")
            yield item


def _below(references: Sequence[Any], step: str | int) -> list[Any]:
    """Return what stands one step below in each of the references."""
    if isinstance(step, str):
        return [each[step] for each in references if isinstance(each, dict) and step in each]
    return [each[step] for each in references if isinstance(each, list) and step < len(each)]


def _whole(number: float) -> float | int:
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise ConversionError("it has a number that is not finite")
    return int(number) if number.is_integer() else number
