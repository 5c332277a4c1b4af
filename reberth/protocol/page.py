"""A page of a list, read while it arrives: object by object, so that it is never in memory as a whole.

The API server writes the objects one behind the other, and all begin with the same field. What stands between
two such beginnings is tried as an object. This cannot go wrong: an object that is cut off is never valid
JSON, so the text up to a wrong cut is not taken, and the next cut is tried. What is left when the page has
ended is read as a page is otherwise; in a page of another form that is all of it.

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
        self._skipped = 0  # in search of its end: most objects of a page are about equally long
        self._between = b""  # what stands between two objects, with the name of the first field

    def feed(self, piece: bytes) -> Iterator[T | BadObject]:
        """Give the objects that are complete with this piece; read them before the next piece comes.

        Raises Unreadable if the one that is arriving is larger than an object, or a page, may be.
        """
        held = len(self._text) - self._start
        # Without the beginning of an object it is read as a whole.
        most = LARGEST_OBJECT if self._between else LARGEST_PAGE
        if held > most:
            raise Unreadable(self._request, f"no end of an object in {held} bytes, at most {most} are read")
        self._text = self._text[self._start :] + piece
        self._searched -= self._start
        self._start = 0
        if not self._between:
            self._begin()
        return self._cut() if self._between else iter(())

    def end(self) -> Iterator[T | BadObject]:
        """Give what is left when the page has ended. Raises Unreadable if it is incomplete."""
        rest = self._text[self._start :]
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
        self._start = self._searched = len(head) + len(_ITEMS)
        meta = self._reader.read_head(self._request, head.rstrip(b",") + b"}")
        self._take(meta.resource_version, meta.continue_ or "")

    def _take(self, resource_version: str, continues: str) -> None:
        self.resource_version = self.resource_version or resource_version
        self.continues = self.continues or continues

    def _cut(self) -> Iterator[T | BadObject]:
        while (end := self._text.find(self._between, self._searched) + 1) > 0:
            found = self._read(self._text[self._start : end])
            if found is not None:
                self._skipped = (end - self._start) * 3 // 4
                self._start = end + 1
                self._searched = self._start + self._skipped
                yield found
            elif self._skipped:  # this object is shorter than the one before
                self._skipped, self._searched = 0, self._start
            else:
                self._searched = end
        self._searched = max(self._searched, len(self._text) - len(self._between) + 1)

    def _read(self, text: bytes) -> T | BadObject | None:
        """Read an object; None if the text is only a part of one."""
        try:
            return self._reader.read_object(text)
        except (msgspec.DecodeError, RecursionError):
            return None
