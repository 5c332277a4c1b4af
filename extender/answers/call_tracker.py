"""Does the scheduler ask at all? A prioritizer that fails is skipped in silence, so nobody else would say.

Pods that get a node while no call comes are counted from the last call on. Of several replicas one may get
all the calls, since the scheduler keeps its connection: the others then see pods placed and are not asked. So
it is a warning and never a reason not to be ready.
"""

from collections.abc import Iterable

from extender.answers.settings import CallTrackerSettings
from reberth.cluster.rows import PodRow

_MOST_EXPECTED = 10_000


class CallTracker:
    """When each part was asked last, and how many pods have been placed since that it was not asked about."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.last_asked: dict[str, float] = dict.fromkeys(parts, 0.0)
        self.placed_since: dict[str, int] = dict.fromkeys(parts, 0)
        self._expected: dict[str, dict[str, None]] = {part: {} for part in parts}

    def hear(self, part: str, now: float) -> None:
        """A call has come."""
        self.last_asked[part] = now
        self.placed_since[part] = 0

    def expect(self, part: str, uid: str) -> None:
        """The call is about this pod, of which the mirror will tell that it is placed."""
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
        """Say of which of the parts that should be asked too many pods have seen nothing."""
        counts = {part: self.placed_since[part] for part in parts}
        return [
            f"{pods} pods were placed since /{part} was asked last; of several replicas one is enough"
            for part, pods in counts.items()
            if pods >= settings.pods
        ]
