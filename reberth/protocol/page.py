"""A page of a list, read while it arrives: object by object, so that it is never in memory as a whole.

The API server writes the objects one behind the other, and all begin with the same field. What stands between
two such beginnings is tried as an object. This cannot go wrong: an object that is cut off is never valid
JSON, so the text up to a wrong cut is not taken, and the next cut is tried. What is left when the page has
ended is read as a page is otherwise; in a page of another form that is all of it.

An object may itself be full of what looks like a beginning. So after a cut that was too early the next one is
twice as far, and after one that was too late it is found by bisection: no object costs more than a few times
its length.

So no more is held than one object and the piece that has just come, or one page of another form. Both have a
limit: what never ends must not fill the memory.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from reberth.protocol.response import LARGEST_OBJECT, LARGEST_PAGE, BadObject, Reader
from reberth.records import Record
from reberth.values.errors import Unreadable

T = TypeVar("T", bound=Record)

_ITEMS = b'"items":['
_TOO_LATE = "trailing characters"
_LONGEST_HEAD = 2**16
"""Bytes within which the first object of a page has begun, or the page is read as a whole at its end."""


class PartialPage(Generic[T]):
    """A page that is arriving; `resource_version` and `continues` are there once they have been read."""

    def __init__(self, request: str, reader: Reader[T]) -> None:
        self.resource_version = ""
        self.continues = ""
        self._request = request
        self._reader = reader
        self._text = b""
        self._start = 0  # of the next object
        self._searched = 0
        self._floor = 0  # the object does not end before
        self._ceiling = 0  # it ends before, if this is not 0
        self._skipped = 0  # in search of its end: most objects of a page are about equally long
        self._later: list[bytes] = []  # pieces of a page that is read as a whole
        self._later_size = 0
        self._between = b""  # what stands between two objects, with the name of the first field

    def feed(self, piece: bytes) -> Iterator[T | BadObject]:
        """Give the objects that are complete with this piece; read them before the next piece comes.

        Raises Unreadable if the one that is arriving is larger than an object, or a page, may be.
        """
        held = len(self._text) - self._start + self._later_size
        # Without the beginning of an object it is read as a whole.
        most = LARGEST_OBJECT if self._between else LARGEST_PAGE
        if held > most:
            raise Unreadable(self._request, f"no end of an object in {held} bytes, at most {most} are read")
        if not self._between and len(self._text) > _LONGEST_HEAD:
            self._later.append(piece)
            self._later_size += len(piece)
            return iter(())
        self._text = self._text[self._start :] + piece
        self._searched -= self._start
        self._floor -= self._start
        self._ceiling = max(self._ceiling - self._start, 0)
        self._start = 0
        if not self._between:
            self._begin()
        return self._cut() if self._between else iter(())

    def end(self) -> Iterator[T | BadObject]:
        """Give what is left when the page has ended. Raises Unreadable if it is incomplete."""
        rest = self._text[self._start :] + b"".join(self._later)
        page = self._reader.read_page(self._request, b"{" + _ITEMS + rest if self._between else rest)
        self._take(page.resource_version, page.continues)
        return iter(page.found)

    def _begin(self) -> None:
        """Read what stands before the first object, once that object has begun."""
        head, found, rest = self._text.partition(_ITEMS)
        name_ends = rest.find(b'"', 2)
        if not found or not rest.startswith(b'{"') or name_ends < 0:
            return
        self._between = b"}," + rest[: name_ends + 1]
        self._start = self._searched = self._floor = len(head) + len(_ITEMS)
        meta = self._reader.read_head(self._request, head.rstrip(b",") + b"}")
        self._take(meta.resource_version, meta.continue_ or "")

    def _take(self, resource_version: str, continues: str) -> None:
        self.resource_version = self.resource_version or resource_version
        self.continues = self.continues or continues

    def _cut(self) -> Iterator[T | BadObject]:
        while (end := self._find_border() + 1) > 0:
            found = self._read(end)
            if found is not None:
                self._skipped = (end - self._start) * 3 // 4
                self._start = self._floor = end + 1
                self._searched, self._ceiling = self._start + self._skipped, 0
                yield found
        self._searched = max(self._searched, len(self._text) - len(self._between) + 1)

    def _find_border(self) -> int:
        """Give a place where the object may end and that was not tried yet; -1 if there is none."""
        if self._ceiling:
            last = self._ceiling + len(self._between) - 1
            found = self._text.find(self._between, (self._floor + self._ceiling) // 2, last)
            return found if found >= 0 else self._text.rfind(self._between, self._floor, last)
        found = self._text.find(self._between, self._searched)
        if found < 0 and self._floor > self._start:
            found = self._text.rfind(self._between, self._floor)
        return found

    def _read(self, end: int) -> T | BadObject | None:
        """Read an object; None if it does not end here."""
        try:
            return self._reader.read_object(self._text[self._start : end])
        except (msgspec.DecodeError, RecursionError) as error:
            if _TOO_LATE in str(error):
                self._ceiling = end - 1
            else:
                self._floor = end
                self._searched = 2 * end - self._start
            return None
