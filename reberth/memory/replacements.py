"""Which pods may be the replacement of a moved pod: one rule for the draw, the outcome and the brakes.

No API says which pod replaces which. It is a pod of the same controller that was not known when the move was
planned. Of the many pods that were known, only the youngest could be mistaken for it: their uids are recorded
in the open move, and every reader, also a new leader, decides by them. All older ones are told by their age.

That age is the only comparison of times, and it has a margin that is larger than all that can be wrong with
them: creation times are cut to seconds, the API server's time is an estimate (`client/server_clock.py`), and
several API servers may differ by some seconds. Within the margin only the uids decide.
"""

from collections.abc import Iterable

from reberth.cluster.rows import PodRow
from reberth.memory.backoff import instant
from reberth.records import OpenMove

MARGIN = 10.0
"""Seconds by which two times of the API servers may be in the wrong order."""
MOST_KNOWN = 64  # the limit in the custom resource's schema


def list_known(pods: Iterable[PodRow], controller: str, *, now: float) -> tuple[str, ...]:
    """Give the uids of a controller's pods that are too young to be told from a replacement by their age.

    Of more than the history can hold, the oldest are left out.
    """
    young = [pod for pod in pods if is_since(pod.created, now) and _controller_uid(pod) == controller]
    youngest = sorted(young, key=lambda pod: (-pod.created, pod.uid))[:MOST_KNOWN]
    return tuple(sorted(pod.uid for pod in youngest))


def is_alive(pod: PodRow) -> bool:
    """Tell whether a pod can still be a replacement: its controller makes another one for any other pod.

    A kubelet may reject a pod that the scheduler has bound to its node, or evict it: it stays there, Failed.
    """
    return not pod.is_terminating and pod.phase != "Failed"


def may_replace(move: OpenMove, uid: str, created: float) -> bool:
    """Tell whether a pod of the move's controller may be its replacement."""
    if uid == move.pod_uid or uid in (move.known_pods or ()):
        return False
    return created > earliest_birth(move)


def earliest_birth(move: OpenMove) -> float:
    """Give the creation time up to which every pod was there before the move."""
    return instant(move.planned_at) - MARGIN


def is_since(created: float, time: float) -> bool:
    """Tell whether a pod may have been created after that time."""
    return created > time - MARGIN


def _controller_uid(pod: PodRow) -> str:
    return pod.template.controller.uid if pod.template.controller else ""
