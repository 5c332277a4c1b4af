"""Sees which pods go and which moves open, and writes down what must never be."""

from typing import Any

from reberth.cluster.cache import DELETED, Cache
from reberth.cluster.kinds import POD, Kind
from reberth.cluster.pods.requests import NEWEST
from reberth.records import EvictionHistory, Pod, Record


class Witness(Cache):
    """A mirror of pods and histories."""

    def __init__(self, replicas: int) -> None:
        super().__init__(version=NEWEST)
        self.broken: list[str] = []
        self.gone: set[str] = set()
        """The names of the pods that went; who goes while the API server is down is not seen."""
        self.moves: set[str] = set()
        """The ids of all moves that were open once."""
        self._least = replicas - 1

    def apply(self, kind: Kind[Any, Any], event: str, subject: Record) -> bool:
        changed = super().apply(kind, event, subject)
        if isinstance(subject, Pod) and subject.metadata.namespace == "default":
            self._see_pod(event, subject)
        if isinstance(subject, EvictionHistory):
            self._see_history(subject)
        return changed

    def _see_pod(self, event: str, pod: Pod) -> None:
        app = (pod.metadata.labels or {}).get("app", "")
        if event != DELETED and not pod.metadata.deletion_timestamp:
            return
        self.gone.add(pod.metadata.name)
        rows = self.of(POD).within("default")
        ready = sum(row.is_ready and not row.is_terminating for row in rows if row.labels.get("app") == app)
        if ready < self._least:
            self.broken.append(f"{app} has {ready} Ready pods after {pod.metadata.name} went")

    def _see_history(self, history: EvictionHistory) -> None:
        opened = history.status.open or ()
        self.moves.update(move.id for move in opened)
        if len(opened) > 1:
            self.broken.append(f"{history.metadata.name} has {len(opened)} open moves")
