"""The response of prioritize, joined from entries that are made once for each node and grade.

All entries have the same length: they are padded with spaces, which JSON allows between its parts. So a
response about thousands of nodes copies a few bytes for each, without a Python object.
"""

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from reberth.memory.addon_scores import MOST_GRADE, Grades, Rows

_TAILS = np.array([b'"Score":%2d}' % grade for grade in range(MOST_GRADE + 1)])

# By row and grade.
_Entries = npt.NDArray[np.void]


class LocatedNodes(NamedTuple):
    """Nodes, each once, and their rows in the memory index."""

    names: list[str]
    rows: Rows
    are_seen: bool
    """Each has a row of its own."""


class Fragments:
    """The entries of each node by its row; -1 is the row of the nodes that are not cached yet."""

    def __init__(self) -> None:
        self._entries = _make_entries(rows=1, width=1)

    def seat(self, node: str, row: int) -> None:
        """Give a node its row."""
        head = _head(node)
        self._make_room(row + 2, len(head))
        heads = self._entries["head"]
        heads[row] = head.ljust(heads.itemsize)

    def write(self, nodes: LocatedNodes, grades: Grades) -> bytes:
        """Write one entry for every node."""
        entries = self._entries.reshape(-1).take(nodes.rows * len(_TAILS) + grades)
        if nodes.are_seen:
            return b"[%b]" % entries.tobytes()[1:]
        return b"[%b]" % _join_some_unseen(nodes, entries)[1:]

    def _make_room(self, rows: int, width: int) -> None:
        known = self._entries["head"][:, 0]
        if rows > len(known):
            rows = max(rows, 2 * len(known))
        elif width <= known.itemsize:
            return
        rows, width = max(rows, len(known)), max(width, known.itemsize)
        self._entries = _make_entries(rows, width)
        self._entries["head"][: len(known)] = np.char.ljust(known, width)[:, np.newaxis]


def _make_entries(rows: int, width: int) -> _Entries:
    entries = np.zeros((rows, len(_TAILS)), dtype=[("head", f"S{width}"), ("tail", _TAILS.dtype)])
    entries["tail"] = _TAILS
    return entries


def _join_some_unseen(nodes: LocatedNodes, entries: _Entries) -> bytes:
    heads: list[bytes] = entries["head"].tolist()
    for place in np.flatnonzero(nodes.rows < 0).tolist():
        heads[place] = _head(nodes.names[place])
    return b"".join(head + tail for head, tail in zip(heads, entries["tail"].tolist(), strict=True))


def _head(node: str) -> bytes:
    return b',{"Host":%b,' % msgspec.json.encode(node)
