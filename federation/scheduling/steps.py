"""The steps of a decision, by the names that Karmada's metrics give them, for whoever times them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum


class Step(StrEnum):
    FILTER = "Filter"
    SCORE = "Score"
    SELECT = "Select"
    ASSIGN = "AssignReplicas"


Timed = Callable[[Step], AbstractContextManager[object]]
"""Gives what a step is done within."""

_NOTHING = nullcontext()


def untimed(_: Step) -> AbstractContextManager[None]:
    return _NOTHING
