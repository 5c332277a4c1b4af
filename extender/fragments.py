"""The answer of prioritize, put together from words that were made once for each node.

They are equally long, filled up with spaces, which mean nothing between the parts of JSON. So an answer about
thousands of nodes is a copy of some bytes for each, without an object of Python's.
"""

import msgspec
import numpy as np
import numpy.typing as npt

from reberth.advice import MOST_GRADE, Grades
from reberth.scores import Rows

_TAILS = np.array([b'"Score":%2d}' % grade for grade in range(MOST_GRADE + 1)])


class Fragments:
    """The head of each node's entry, by the node's row; -1 is the row of the nodes that nobody has seen."""

    def __init__(self) -> None:
        self._heads: npt.NDArray[np.bytes_] = np.zeros(1, dtype="S1")

    def seat(self, node: str, row: int) -> None:
        """Give a node its row."""
        head = _head(node)
        if len(head) > self._heads.itemsize:
            self._heads = np.char.ljust(self._heads, len(head))
        missing = row + 2 - len(self._heads)
        if missing > 0:
            self._heads = np.pad(self._heads, (0, max(missing, len(self._heads))))
        self._heads[row] = head.ljust(self._heads.itemsize)

    def write(self, nodes: list[str], rows: Rows, grades: Grades) -> bytes:
        """Write one entry for every node."""
        heads, tails = self._heads.take(rows), _TAILS.take(grades)
        if len(rows) and rows.min() < 0:
            return b"[%b]" % _join_some_unseen(nodes, rows, heads, tails)[1:]
        entries = np.empty(len(rows), dtype=[("head", heads.dtype), ("tail", tails.dtype)])
        entries["head"], entries["tail"] = heads, tails
        return b"[%b]" % entries.tobytes()[1:]


def _join_some_unseen(
    nodes: list[str], rows: Rows, heads: npt.NDArray[np.bytes_], tails: npt.NDArray[np.bytes_]
) -> bytes:
    found: list[bytes] = heads.tolist()
    for place in np.flatnonzero(rows < 0).tolist():
        found[place] = _head(nodes[place])
    return b"".join(head + tail for head, tail in zip(found, tails.tolist(), strict=True))


def _head(node: str) -> bytes:
    return b',{"Host":%b,' % msgspec.json.encode(node)
