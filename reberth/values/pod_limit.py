"""How many pods a limit allows: a number, or a percentage such as "10%" or "10% min 1".

A percentage is rounded down, as a Deployment's maxUnavailable is: a limit is never exceeded, not even by the
part of a pod. So 10% of nine pods, or of one, is none. Whoever wants small workloads to be moved all the
same writes a minimum.
"""

import re
from collections.abc import Callable
from typing import Self

from reberth.values.duration import TextValue

_PERCENTAGE = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,3}))?%(?: min ([0-9]{1,6}))?")
# Shares are whole thousandths of a percent: in binary fractions, 29% of 100 would be 28.
_THOUSANDTHS = 1000
_WHOLE = 100 * _THOUSANDTHS
_MOST = 10**6


class PodLimit(TextValue, tuple[int, int | None, int | None]):
    """A number of pods, or a share of pods and its minimum.

    Until `among` says how many pods there are, a percentage allows no more than its minimum: one that nobody
    has counted out holds too much rather than nothing.
    """

    __slots__ = ()
    expected = "a number of pods such as 10, or a percentage such as 10% or 10% min 1"

    def __new__(cls, least: int, share: int | None = None, pods: int | None = None) -> Self:
        return super().__new__(cls, (least, share, pods))

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        found = _PERCENTAGE.fullmatch(text)
        if found is None:
            return None
        share = int(found[1]) * _THOUSANDTHS + int((found[2] or "").ljust(3, "0"))
        return cls(int(found[3] or 0), share) if share <= _WHOLE else None

    @classmethod
    def from_number(cls, number: int) -> Self | None:
        return cls(number) if 0 <= number <= _MOST else None

    @property
    def is_percentage(self) -> bool:
        return self[1] is not None

    @property
    def number(self) -> int:
        """How many pods it allows."""
        least, share, pods = self
        return least if share is None or pods is None else max(least, share * pods // _WHOLE)

    @property
    def text(self) -> str:
        """The limit as it is written in a file."""
        least, share, _ = self
        if share is None:
            return str(least)
        return f"{share / _THOUSANDTHS:g}%" + (f" min {least}" if least else "")

    @property
    def counted_out(self) -> str:
        """What a percentage has come to, and if none, that no time changes it; empty for a number."""
        pods, waiting = self[2], "" if self.number else ", however long one waits"
        return "" if pods is None else f" ({self.number} of {pods} pods{waiting})"

    def among(self, count: Callable[[], int]) -> Self:
        """Count out a percentage; the pods are counted only for that."""
        return type(self)(self[0], self[1], count()) if self.is_percentage else self

    def __str__(self) -> str:
        return self.text + self.counted_out
