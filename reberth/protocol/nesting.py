"""How deeply an object is nested, found without descending into it.

The API server takes objects that are nested thousands deep. To decode such an object, or to compare or to
write what was decoded, ends in a RecursionError, sooner or later depending on who calls. So a record that
keeps parts of an object as they are refuses a deep one. For all others the deep part does not matter: it is
replaced, and the rest is read.
"""

import re
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Raw, ValidationError, inspect

T = TypeVar("T")
_T_co = TypeVar("_T_co", covariant=True)

DEEPEST: Final = 128
"""Levels; the deepest objects that people write, definitions of custom resources, have some forty."""
DEEP: Final = f"is nested more than {DEEPEST} levels deep"

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b'{}[]"'))
_REPLACED: Final = ord("0")
_LONGEST: Final = 2**23
_Counts = npt.NDArray[np.int32]


class Decoder(Protocol[_T_co]):
    """Decodes a text, or raises what msgspec's decoders raise."""

    def decode(self, body: bytes | Raw, /) -> _T_co: ...


class ShallowDecoder(Generic[T]):
    """Decodes what keeps parts of an object undecoded: one that is nested too deeply is invalid."""

    def __init__(self, decoder: Decoder[T], *, within: int = 0) -> None:
        self._decoder = decoder
        self._within = within

    def decode(self, body: bytes | Raw, /) -> T:
        found, text = self._decoder.decode(body), bytes(body)
        if is_deep(text, within=self._within):
            raise ValidationError(DEEP)
        return found


def keeps_parts(kind: inspect.Type) -> bool:
    """Tell whether a record keeps parts of an object as they are."""
    match kind:
        case inspect.RawType() | inspect.AnyType():
            return True
        case inspect.StructType(fields=fields):
            return any(keeps_parts(field.type) for field in fields)
        case inspect.UnionType(types=types):
            return any(map(keeps_parts, types))
        case inspect.CollectionType(item_type=item):
            return keeps_parts(item)
        case inspect.DictType(value_type=value):
            return keeps_parts(value)
        case _:
            return False


def is_deep(text: bytes, *, within: int = 0) -> bool:
    """Tell whether JSON is nested too deeply. Few objects have so many brackets that it must be counted."""
    most = DEEPEST + within
    if _count_opened(text) <= most:
        return False
    brackets = _keep_brackets(text)
    # Most are the empty ones of managed fields. What is left is less deep by two levels at most.
    if _count_opened(brackets.replace(b"{}", b"").replace(b"[]", b"")) <= most - 2:
        return False
    levels, _ = _count_levels(brackets)
    return int(levels.max(initial=0)) > most


def _count_opened(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[")


def _keep_brackets(text: bytes) -> bytes:
    """Leave out strings, and all else but brackets: much faster than a regular expression."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    left = text.translate(None, _NO_BRACKETS).replace(b'""', b"")
    return b"".join(left.split(b'"')[::2])


def flatten(text: bytes, *, within: int = 0) -> bytes:
    """Replace what is nested too deeply, so that the rest can be read; what is left is deep by one level.

    `within` are the levels around the objects. Raises RecursionError for a text that is too long for that.
    """
    if len(text) > _LONGEST:
        raise RecursionError
    levels, before = _count_levels(_TEXT.sub(_blank, text))
    most = DEEPEST + within + 1
    begins = (levels == most + 1) & (before == most)
    left = np.frombuffer(text, np.uint8).copy()
    left[begins] = _REPLACED
    return bytes(left[begins | (np.maximum(levels, before) <= most)])


def _count_levels(text: bytes) -> tuple[_Counts, _Counts]:
    """Count how many brackets are open after each byte, and before it."""
    plain = np.frombuffer(text, np.uint8)
    opens = (plain == ord("{")) | (plain == ord("["))
    closes = (plain == ord("}")) | (plain == ord("]"))
    steps = opens.astype(np.int8) - closes.astype(np.int8)
    levels = np.cumsum(steps, dtype=np.int32)
    return levels, levels - steps


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " * len(found[0])
