"""How long a text from outside may be: nothing reads more of it, and nothing keeps more.

Whoever may write an object also chooses the length of its texts: up to the megabytes that the API server
takes.
"""

from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

LONGEST_VALUE: Final = 64
"""A quantity, a duration or a time is never longer; a longer text is none."""
LONGEST_TEXT: Final = 1024
"""An annotation or a label that is read, and a message for people."""
LONGEST_ANNOTATION: Final = 2**18
"""Bytes; the API server takes no more in all annotations of an object."""

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What decoding raises: for text that is not UTF-8, or nested too deeply, it is none of msgspec's errors."""


def read_json(text: str | None, kind: type[T], *, most: int = LONGEST_ANNOTATION) -> T | None:
    """Read an annotation that holds JSON; None if it is missing, too long or unreadable."""
    if not text or len(text) > most:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except UNREADABLE:
        return None


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """Give a text for people, cut to a length."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
