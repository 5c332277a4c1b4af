"""Text tables: aligned columns, and columns no wider than a terminal."""

import textwrap
from collections.abc import Collection, Iterator, Sequence

GAP, BELOW = "  ", "    "
# A text column narrower than this is not readable.
_LEAST_ROOM = 24


def printable(text: str) -> str:
    """Escape characters that would break the line or control the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def align(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: str = "") -> Iterator[str]:
    """Align cells in columns; numbers go into right-aligned columns."""
    sizes = _measure(rows)
    for row in rows:
        cells = [
            cell.rjust(size) if column in right else cell.ljust(size)
            for column, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        yield indent + GAP.join(cells).rstrip()


def wrap_table(rows: Sequence[Sequence[str]], *, width: int, indent: str = "") -> Iterator[str]:
    """Align cells in columns; if they are too wide, the last cell or all but the first go below."""
    *sizes, last = _measure(rows)
    taken = len(indent) + sum(sizes) + len(GAP) * len(sizes)
    for *cells, text in rows:
        aligned = indent + GAP.join(cell.ljust(size) for cell, size in zip(cells, sizes, strict=True))
        if taken + min(last, _LEAST_ROOM) <= width:
            yield from wrap_text(text, width=width, first=aligned + GAP, rest=" " * taken)
        elif taken <= width:
            yield aligned.rstrip()
            yield from wrap_text(text, width=width, first=indent + BELOW)
        else:
            yield from wrap_text(cells[0], width=width, first=indent)
            for below in (GAP.join(cells[1:]), text):
                yield from wrap_text(below, width=width, first=indent + BELOW)


def wrap_text(text: str, *, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Wrap a text; `first` is the prefix of the first line, `rest` that of the others."""
    below = first if rest is None else rest
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=below, break_on_hyphens=False)


def _measure(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]
