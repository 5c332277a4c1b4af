"""A position in a body, and a cursor that finds it while the body is streamed."""

from dataclasses import dataclass
from typing import Protocol


class Cursor(Protocol):
    def advance(self, data: bytes) -> tuple[bytes, bytes | None]:
        """The bytes before the mark and after it; None after it until the mark is reached."""

    def end(self) -> tuple[bytes, bytes | None]:
        """The same of what was held back, when nothing more comes."""


@dataclass(frozen=True)
class Bytes:
    """After this many bytes."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"Bytes.count must be at least 0, not {self.count}")

    def cursor(self) -> Cursor:
        return _ByteCursor(self.count)


@dataclass(frozen=True)
class Lines:
    """After this many lines; 2.5 is in the middle of the third."""

    count: float

    def __post_init__(self) -> None:
        if not 0 <= self.count < float("inf"):
            raise ValueError(f"Lines.count must be at least 0, not {self.count}")

    def cursor(self) -> Cursor:
        return _LineCursor(self.count)


Mark = Bytes | Lines


class _ByteCursor:
    def __init__(self, count: int) -> None:
        self._left = count

    def advance(self, data: bytes) -> tuple[bytes, bytes | None]:
        if len(data) < self._left:
            self._left -= len(data)
            return data, None
        return data[: self._left], data[self._left :]

    def end(self) -> tuple[bytes, bytes | None]:
        return b"", None


class _LineCursor:
    """Only the line that the mark divides is held back until it is whole."""

    def __init__(self, count: float) -> None:
        self._whole, self._part = int(count), count % 1
        self._begun = b""

    def advance(self, data: bytes) -> tuple[bytes, bytes | None]:
        start = 0
        while self._whole and (end := data.find(b"\n", start)) >= 0:
            self._whole -= 1
            start = end + 1
        if self._whole:
            return data, None
        if not self._part:
            return data[:start], data[start:]
        self._begun += data[start:]
        if b"\n" not in self._begun:
            return data[:start], None
        before, after = self._divide()
        return data[:start] + before, after

    def end(self) -> tuple[bytes, bytes | None]:
        return self._divide() if self._begun else (b"", None)

    def _divide(self) -> tuple[bytes, bytes]:
        place = max(1, int(len(self._begun.partition(b"\n")[0]) * self._part))
        return self._begun[:place], self._begun[place:]
