"""How long replacements have been Ready without a break.

A container that ends again and again is Ready for a second or two each time, so that a pod is Ready now tells
nothing. A kubelet writes the time of the condition by its node's clock, so the time is taken by who looks.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from reberth.cluster.rows import PodRow


class ReadySpell(NamedTuple):
    """A time for which a pod is Ready without a break, by the clock of the one who looks."""

    marks: tuple[object, ...]
    since: float
    """The look that was the first to see it."""
    after: float
    """The look before, which did not see it yet; -inf if there was none."""


class ReadyTimer:
    """Since when each of the pods of a controller is Ready.

    All of them: which one replaces the moved pod may change while others land, and change back.
    """

    def __init__(self) -> None:
        self._spells: dict[str, ReadySpell] = {}
        self._looked = -math.inf

    def look(self, pods: Iterable[PodRow], now: float) -> None:
        """Take note of who is Ready.

        A break between two looks shows in the time of a pod's condition, or in its restarts.
        """
        self._spells = {pod.uid: self._continue(pod, now) for pod in pods if pod.is_ready}
        self._looked = now

    def find(self, pod: PodRow | None) -> ReadySpell | None:
        """Give the spell of a pod that was Ready at the last look."""
        return self._spells.get(pod.uid) if pod else None

    def _continue(self, pod: PodRow, now: float) -> ReadySpell:
        known, marks = self._spells.get(pod.uid), (pod.ready_changed, _count_restarts(pod))
        return known if known and known.marks == marks else ReadySpell(marks, now, self._looked)


def has_lasted(pod: PodRow | None, *, ready_for: float, least: float, is_over: bool) -> bool:
    """Tell whether the pod has been Ready for long enough.

    When the time of the move is over, one that was Ready late is enough, unless its containers have ended.
    """
    if pod is None or not pod.is_ready:
        return False
    return ready_for >= least or (is_over and not _count_restarts(pod))


def _count_restarts(pod: PodRow) -> int:
    return pod.problems.restarts if pod.problems else 0
