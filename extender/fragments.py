"""The answer of prioritize, put together from words that were made once for each node."""

import msgspec
import numpy as np
import numpy.typing as npt

from reberth.advice import MOST_GRADE, Grades
from reberth.scores import Rows

_TAILS = np.array([b'"Score":%d}' % grade for grade in range(MOST_GRADE + 1)], dtype=np.object_)


class Fragments:
    """The head of each node's entry, by the node's row; -1 is the row of the nodes that nobody has seen."""

    def __init__(self) -> None:
        self._heads: npt.NDArray[np.object_] = np.empty(0, dtype=np.object_)

    def seat(self, node: str, row: int) -> None:
        """Give a node its row."""
        missing = row + 1 - len(self._heads)
        if missing > 0:
            self._heads = np.pad(self._heads, (0, max(missing, len(self._heads))))
        self._heads[row] = _head(node)

    def write(self, nodes: list[str], rows: Rows, grades: Grades) -> bytes:
        """Write one entry for every node."""
        parts: list[bytes] = [b""] * (2 * len(nodes))
        parts[0::2] = self._find_heads(nodes, rows)
        parts[1::2] = _TAILS[grades].tolist()
        return b"[" + b"".join(parts)[1:] + b"]"

    def _find_heads(self, nodes: list[str], rows: Rows) -> list[bytes]:
        unseen = np.flatnonzero(rows < 0)
        if len(unseen) == len(rows):
            return list(map(_head, nodes))
        heads: list[bytes] = self._heads[rows].tolist()
        for place in unseen.tolist():
            heads[place] = _head(nodes[place])
        return heads


def _head(node: str) -> bytes:
    return b',{"Host":%s,' % msgspec.json.encode(node)
