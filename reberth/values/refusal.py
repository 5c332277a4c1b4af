"""A refusal as a value: which rule refused, why, and until when."""

import traceback
from pathlib import Path
from typing import Final

import msgspec

FAULT: Final = "Fault"
"""The rule of a refusal by a defect of ours."""

_LONGEST_MESSAGE = 160


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A refusal. The rule is a constant that Events and metrics carry; the reason is for people."""

    rule: str
    reason: str
    until: float | None = None  # seconds since the epoch; None: time alone changes nothing
    key: str = ""  # what refused, if the rule alone does not say it: the name of a webhook


def refuse_fault(error: Exception) -> Refused:
    """Refuse one object because of a defect of ours that it meets: the others go on."""
    return Refused(FAULT, describe_fault(error))


def describe_fault(error: Exception) -> str:
    """Describe a defect of ours in one line: what was raised, and where."""
    message = " ".join(str(error)[:_LONGEST_MESSAGE].split())
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    last = next(iter(traceback.extract_tb(error.__traceback__, limit=-1)), None)
    return f"{said} ({Path(last.filename).name}:{last.lineno})" if last else said
