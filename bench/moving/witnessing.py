"""Counts moves by a cache of the pods: evicted pods, returned pods, and the balance of the nodes."""

import statistics
import time
from typing import Any

from reberth.cluster.cache import DELETED, Cache
from reberth.cluster.kinds import POD, Kind
from reberth.cluster.pods.requests import CPU, Version
from reberth.cluster.rows import PodRow
from reberth.cluster.snapshot import take
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import view_snapshot
from reberth.records import Pod, Record
from rescheduler.observe.utilisation import shares

_VERSION: Version = (1, 36)


class Witness(Cache):
    """Counts from the call of `begin`."""

    def __init__(self) -> None:
        super().__init__(version=_VERSION)
        self.evicted = 0
        self.returned = 0
        """Pods that came to a node that a pod of the same owner was evicted from."""
        self.last = time.monotonic()
        """When the last pod went."""
        self._left: dict[str, set[str]] = {}
        self._seen: set[str] = set()

    def begin(self) -> None:
        self._seen = {row.uid for row in self.of(POD).rows()}
        self.last = time.monotonic()

    def apply(self, kind: Kind[Any, Any], event: str, subject: Record) -> bool:
        gone = self.of(POD).by_uid(subject.metadata.uid) if isinstance(subject, Pod) else None
        changed = super().apply(kind, event, subject)
        if isinstance(subject, Pod) and subject.metadata.namespace == "default" and self._seen:
            if event == DELETED and gone:
                self._see_gone(gone)
            elif subject.spec.node_name:
                self._see_bound(subject, subject.spec.node_name)
        return changed

    def list_shares(self) -> list[float]:
        """Return the requested share of each node's cpu."""
        facts = SnapshotFacts(take(self, now=time.time()), _VERSION)
        return [float(share) for share in shares(view_snapshot(facts), CPU)]

    def count_above(self, high: float) -> int:
        return sum(share > high for share in self.list_shares())

    def measure_spread(self) -> float:
        return 100 * statistics.pstdev(self.list_shares())

    def is_whole(self, pods: int) -> bool:
        """Tell whether all pods exist and are Ready again."""
        rows = self.of(POD).within("default")
        return sum(row.is_ready and not row.is_terminating for row in rows) == pods

    def _see_gone(self, row: PodRow) -> None:
        self.evicted += 1
        self.last = time.monotonic()
        self._left.setdefault(row.labels.get("app", ""), set()).add(row.node or "")

    def _see_bound(self, pod: Pod, node: str) -> None:
        if pod.metadata.uid in self._seen:
            return
        self._seen.add(pod.metadata.uid)
        self.returned += node in self._left.get((pod.metadata.labels or {}).get("app", ""), ())
