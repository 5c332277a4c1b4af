"""Detects that kube-scheduler does not call: it silently skips an extender whose prioritize call fails.

The tracker counts the pods that got a node since the last call. With several replicas one may receive all
calls, since the scheduler keeps its connection: the others then see pods placed without a call. So this is a
warning and never a reason not to be ready.
"""

from collections.abc import Iterable

from extender.answers.settings import CallTrackerSettings
from reberth.cluster.rows import PodRow

# Limits the memory for pods that were asked about and never got a node.
_MOST_EXPECTED = 10_000


class CallTracker:
    """When each part was called last, and how many pods were placed without a call since then."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.last_asked: dict[str, float] = dict.fromkeys(parts, 0.0)
        self.placed_since: dict[str, int] = dict.fromkeys(parts, 0)
        self._expected: dict[str, dict[str, None]] = {part: {} for part in parts}

    def hear(self, part: str, now: float) -> None:
        """Record a call."""
        self.last_asked[part] = now
        self.placed_since[part] = 0

    def expect(self, part: str, uid: str) -> None:
        """Remember the pod of a call, so that it is not counted when the cache sees it placed."""
        expected = self._expected[part]
        expected[uid] = None
        if len(expected) > _MOST_EXPECTED:
            del expected[next(iter(expected))]

    def place(self, pod: PodRow, settings: CallTrackerSettings) -> None:
        """Count a pod that has just got its node."""
        for part, expected in self._expected.items():
            if pod.uid in expected:
                del expected[pod.uid]
            elif pod.template.spec.scheduler_name in settings.schedulers:
                self.placed_since[part] += 1

    def warnings(self, settings: CallTrackerSettings, *, parts: Iterable[str]) -> list[str]:
        """Warn about parts that the scheduler should call but did not for too many pods."""
        counts = {part: self.placed_since[part] for part in parts}
        return [
            f"{pods} pods were placed since the last call of /{part}; one of several replicas is enough"
            for part, pods in counts.items()
            if pods >= settings.pods
        ]
