"""Checks of an object as data, and what they say of it.

Objects are of members and of other projects: a field that is missing or of another form is None, a count of
it 0. A condition about an older generation of the object says nothing yet, and is None too.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

_LARGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = 19
EACH: Final = "*"
"""A step of a path: every element of a list, or every value of an object."""


class Check(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """One thing that has to be so; exactly one of the first six fields says about what."""

    at: str = ""
    """A field, by its path."""
    condition: str = ""
    """The status of a condition, by its type."""
    current: str = ""
    """A field that has the generation of the object."""
    all: tuple["Check", ...] = ()
    any: tuple["Check", ...] = ()
    not_: tuple["Check", ...] = msgspec.field(default=(), name="not")
    is_in: tuple[str | bool | None, ...] = msgspec.field(default=(), name="in")
    """The field or the condition is one of these."""
    not_in: tuple[str | bool | None, ...] = ()
    at_least: str = ""
    """The field is a count of at least this number, or of what another field has."""
    default: int = 0
    """What counts if that other field is missing."""
    differs_from: str = ""
    """The field has another value than this one."""


def holds(checks: Sequence[Check], found: Any) -> bool:  # noqa: ANN401 - any JSON
    """Tell whether all of the checks hold for an object."""
    return all(_holds(each, found) for each in checks)


def _holds(check: Check, found: Any) -> bool:  # noqa: ANN401 - likewise
    if check.any:
        return any(_holds(each, found) for each in check.any)
    if check.not_:
        return not holds(check.not_, found)
    if check.current:
        return _count(read(found, check.current)) == _count(read(found, "metadata.generation"))
    if check.all:
        return holds(check.all, found)
    return _compare(check, found)


def _compare(check: Check, found: Any) -> bool:  # noqa: ANN401 - likewise
    value = read_condition(found, check.condition) if check.condition else read(found, check.at)
    if check.at_least:
        return count_at(found, check.at) >= _find_least(check, found)
    if check.differs_from:
        return bool(value != read(found, check.differs_from))
    told = value if value is None or isinstance(value, str | bool) else ""
    return told not in check.not_in if check.not_in else told in check.is_in


def _find_least(check: Check, found: Any) -> int:  # noqa: ANN401 - likewise
    if check.at_least.isdecimal():
        return int(check.at_least)
    value = read(found, check.at_least)
    return check.default if value is None else _count(value)


def read(found: Any, path: str) -> Any:  # noqa: ANN401 - any JSON
    """Return what stands at a path without EACH; None if nothing does."""
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def read_each(found: Any, path: str) -> Iterator[Any]:  # noqa: ANN401 - likewise
    """Yield what stands at a path, wherever it leads."""
    head, each, tail = path.partition(f".{EACH}.")
    value = read(found, head)
    if not each:
        if value is not None:
            yield value
        return
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from read_each(part, tail)


def read_condition(found: Any, name: str) -> str | None:  # noqa: ANN401 - likewise
    """Return the status of a condition; None if there is none about this generation."""
    conditions = read(found, "status.conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if read(each, "type") == name:
            observed, status = read(each, "observedGeneration"), read(each, "status")
            is_old = observed is not None and _count(observed) < count_at(found, "metadata.generation")
            return status if isinstance(status, str) and not is_old else None
    return None


def count_at(found: Any, path: str) -> int:  # noqa: ANN401 - likewise
    return _count(read(found, path))


def _count(value: object) -> int:
    """Read a count; some projects write a generation as text."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
        value = int(value)
    return value if type(value) is int and 0 <= value <= _LARGEST else 0  # a bool is an int, too
