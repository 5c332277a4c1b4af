"""Values that operators write as text: "1h30m" and "10%".

A TextValue is a number with its own notation. Any such class may be the type of a settings field: `convert`
reads its text, and errors name the expected format.
"""

import re
from typing import Any, ClassVar, Self

import msgspec

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION = re.compile(rf"(?=.)(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?")
_UNITS = (3600.0, 60.0, 1.0, 0.001)
# Ten years: the current date plus this is still a valid date.
LONGEST_DURATION = 87600 * 3600.0
_PERCENTAGE = re.compile(rf"{_NUMBER}%")


class TextValue:
    """A number that is written as text."""

    expected: ClassVar[str]

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Read the text; None if it does not have the expected format."""
        raise NotImplementedError

    @classmethod
    def from_number(cls, number: int) -> Self | None:
        """Read a whole number without quotes; None if only text is expected."""
        del number
        return None


class Duration(TextValue, float):
    """A duration, as a float of seconds."""

    expected = "a duration such as 30s, 1h30m or 250ms, at most 87600h"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        found = _DURATION.fullmatch(text)
        if found is None:
            return None
        seconds = sum(float(count) * unit for count, unit in zip(found.groups("0"), _UNITS, strict=True))
        return cls(seconds) if seconds <= LONGEST_DURATION else None


class PositiveDuration(Duration):
    """A duration above zero."""

    expected = "a duration above 0s such as 30s, 1h30m or 250ms, at most 87600h"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        return super().from_text(text) or None


class Percentage(TextValue, float):
    """A percentage, as a float from 0 to 1."""

    expected = "a percentage from 0% to 100%"

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        found = _PERCENTAGE.fullmatch(text)
        share = float(found[1]) / 100 if found else None
        return cls(share) if share is not None and share <= 1 else None


def convert(value: object, kind: Any) -> Any:  # noqa: ANN401 - any annotation may be asked for
    """Convert plain values to a type; msgspec.ValidationError gives the reason if that fails."""
    return msgspec.convert(value, kind, dec_hook=_read_measure)


def _read_measure(kind: type[TextValue], value: object) -> TextValue:
    measure = None
    if isinstance(value, str):
        measure = kind.from_text(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        measure = kind.from_number(value)
    if measure is None:
        raise ValueError(f"expected {kind.expected}")
    return measure
