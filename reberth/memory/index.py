"""The memory, indexed so that a call for one pod is answered without visiting every node.

Watches feed it object by object, in any order; its content depends on the objects alone. Nodes have rows, so
that an answer about thousands of nodes is a few array operations. The last row, at -1, is for nodes that are
not cached yet: nothing is known for or against them.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import repeat

import numpy as np
import numpy.typing as npt

from reberth.cluster.node_lifecycle import LeavingNode, YoungNode, judge_node
from reberth.cluster.pods.identity import Signature, name_history
from reberth.memory.addon_scores import MOST_GRADE, Grades, Rows, ScoreSettings, ScoreTable, choose_weights
from reberth.memory.history import is_history_of
from reberth.memory.notes import ANNOTATION, NoteIndex, read_notes
from reberth.records import EvictionHistory, Node, NodePlacementScore, OpenMove
from reberth.values.refusal import Refused

UNSEEN = -1
_MOST_WELCOME = 64  # results kept; they are dropped whenever a node changes

# A history's namespace and name.
_Key = tuple[str, str]
# A controller's namespace and uid: a history speaks for the pods of its own namespace alone. Its writer may
# know the uids of others.
_Controller = tuple[str, str]


class MemoryIndex:
    """The notes on nodes, their standing and scores, and the histories of workloads."""

    def __init__(self, settings: ScoreSettings) -> None:
        self.rows: dict[str, int] = {}
        self.notes = NoteIndex()
        self.standing: dict[str, LeavingNode | YoungNode] = {}
        self.unreadable: set[str] = set()  # nodes whose annotation cannot be read
        self.settings = settings
        self.choice = choose_weights(None, settings)  # of a pod without an annotation
        self.scores = ScoreTable(settings)
        self._free: list[int] = []
        # By the identity of the mapping, which is kept alive so that no other object gets the same id.
        self._welcome: dict[tuple[int, bool], tuple[Mapping[str, object], Grades]] = {}
        self._shunned: npt.NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        self._histories: dict[_Key, EvictionHistory] = {}
        self._moves: dict[_Controller, dict[_Key, tuple[OpenMove, ...]]] = {}

    def put_first(self, nodes: Iterable[tuple[Node, LeavingNode | YoungNode | None]]) -> None:
        """Add the first nodes, already judged as leaving, young or neither."""
        judged = {node.metadata.name: (node, standing) for node, standing in nodes}
        self.rows = {name: row for row, name in enumerate(judged)}
        self.scores.seat_first(self.rows)
        self._shunned = np.zeros(len(judged) + 1, dtype=np.bool_)
        for name, (node, standing) in judged.items():
            if node.metadata.annotations and ANNOTATION in node.metadata.annotations:
                self._put_notes(name, node.metadata.annotations[ANNOTATION])
            if standing:
                self._put_standing(name, standing)

    def put_node(self, node: Node) -> None:
        name, annotation = node.metadata.name, (node.metadata.annotations or {}).get(ANNOTATION)
        is_new = name not in self.rows
        if is_new:
            self._give_row(name)
        if annotation is not None or not is_new:
            self._put_notes(name, annotation)
        self._put_standing(name, judge_node(node))

    def drop_node(self, name: str) -> None:
        if name not in self.rows:
            return
        self._put_notes(name, None)
        self._put_standing(name, None)
        self.scores.unseat(name)
        self._free.append(self.rows.pop(name))
        self._welcome.clear()

    def put_history(self, history: EvictionHistory) -> None:
        key = (history.metadata.namespace, history.metadata.name)
        self.drop_history(*key)
        self._histories[key] = history
        for uid in {move.controller_uid for move in history.status.open or ()}:
            moves = tuple(move for move in history.status.open or () if move.controller_uid == uid)
            self._moves.setdefault((history.metadata.namespace, uid), {})[key] = moves

    def drop_history(self, namespace: str, name: str) -> None:
        history = self._histories.pop((namespace, name), None)
        if history is None:
            return
        for controller in {(namespace, move.controller_uid) for move in history.status.open or ()}:
            del self._moves[controller][namespace, name]
            if not self._moves[controller]:
                del self._moves[controller]

    def put_score(self, score: NodePlacementScore) -> None:
        self.scores.put(score)

    def drop_score(self, name: str) -> None:
        self.scores.drop(name)

    def history_of(self, signature: Signature) -> EvictionHistory | None:
        history = self._histories.get((signature.namespace, name_history(signature.root)))
        return history if history and is_history_of(history, signature.root) else None

    def moves_of(self, namespace: str, controller_uid: str) -> list[OpenMove]:
        """Give the open moves of the pods of a controller."""
        found = self._moves.get((namespace, controller_uid), {})
        return [move for moves in found.values() for move in moves]

    def gather_names(self) -> None:
        """Copy the names of the nodes, and their rows, into contiguous memory.

        Hundreds of them are looked up with every call. Scattered over the memory of the whole cache, they
        cost three times as much when other programs use the processor's caches too.
        """
        names = [name.encode().decode() for name in self.rows]
        rows = np.fromiter(self.rows.values(), np.intp, len(names)).tolist()
        self.rows = dict(zip(names, rows, strict=True))

    def locate(self, nodes: Collection[str]) -> Rows:
        """Give the rows of nodes; -1 for those that are not cached yet."""
        return np.fromiter(map(self.rows.get, nodes, repeat(UNSEEN)), np.intp, len(nodes))

    def are_distinct(self, rows: Rows) -> bool:
        """Tell whether the rows belong to different nodes; at most one of the nodes may be unknown."""
        table = np.zeros(len(self._shunned), dtype=np.bool_)
        table[rows] = True
        return int(np.count_nonzero(table)) == len(rows)

    def spread(self, values: Mapping[str, float], rows: Rows) -> npt.NDArray[np.float64]:
        """Give the value of the node in each row; 0 for nodes without a value and uncached ones."""
        if not values:
            return np.zeros(len(rows))
        table = np.zeros(len(self._shunned))
        table[self.locate(values)] = list(values.values())
        table[UNSEEN] = 0.0
        return table[rows]

    def welcomes(self, noted: Mapping[str, object], rows: Rows, *, standing: bool) -> Grades:
        """Grade these nodes 0, which must not change, and leaving or young ones; all others 10.

        A repeated call with the same mapping is quick.
        """
        key = (id(noted), standing)
        known = self._welcome.get(key)
        if known is None:
            if len(self._welcome) >= _MOST_WELCOME:
                self._welcome.clear()
            known = self._welcome[key] = noted, self._grade_welcome(noted, standing=standing)
        return known[1].take(rows)

    def _grade_welcome(self, noted: Mapping[str, object], *, standing: bool) -> Grades:
        table = np.full(len(self._shunned), MOST_GRADE, dtype=np.uint8)
        if standing:
            table[self._shunned] = 0
        table[self.locate(noted)] = 0
        table[UNSEEN] = MOST_GRADE
        return table

    def _give_row(self, name: str) -> None:
        self._welcome.clear()
        row = self._free.pop() if self._free else len(self.rows)
        missing = row + 2 - len(self._shunned)
        if missing > 0:
            self._shunned = np.pad(self._shunned, (0, missing + row))
        self.rows[name] = row
        self.scores.seat(name, row)

    def _put_notes(self, name: str, annotation: str | None) -> None:
        notes = read_notes(annotation)
        self.unreadable.discard(name)
        if isinstance(notes, Refused):
            self.unreadable.add(name)
            self.notes.drop(name)
        else:
            self.notes.put(name, notes)

    def _put_standing(self, name: str, standing: LeavingNode | YoungNode | None) -> None:
        row, is_shunned = self.rows[name], standing is not None
        if self._shunned[row] != is_shunned:
            self._shunned[row] = is_shunned
            self._welcome.clear()
        self.standing.pop(name, None)
        if standing:
            self.standing[name] = standing
