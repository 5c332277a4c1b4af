"""How long a replacement has been Ready without a break.

A container that ends again and again is Ready for a second or two each time, so that a pod is Ready now tells
nothing. A kubelet writes the time of the condition by its node's clock, so the time is taken by who looks.
"""

from reberth.cluster.rows import PodRow


class ReadyTimer:
    """Since when one pod is Ready, by the clock of the one who looks."""

    def __init__(self) -> None:
        self._spell: tuple[object, ...] | None = None
        self._since = 0.0

    def observe(self, pod: PodRow | None, now: float) -> float:
        """Return for how long the pod has been seen Ready, in seconds.

        A break between two looks shows in the time of its condition, or in its restarts.
        """
        spell = (pod.uid, pod.ready_changed, _count_restarts(pod)) if pod and pod.is_ready else None
        if spell is None or spell != self._spell:
            self._spell, self._since = spell, now
        return now - self._since


def has_lasted(pod: PodRow | None, *, ready_for: float, least: float, is_over: bool) -> bool:
    """Tell whether the pod has been Ready for long enough.

    When the time of the move is over, one that was Ready late is enough, unless its containers have ended.
    """
    if pod is None or not pod.is_ready:
        return False
    return ready_for >= least or (is_over and not _count_restarts(pod))


def _count_restarts(pod: PodRow) -> int:
    return pod.problems.restarts if pod.problems else 0
