"""The brake of losses: while too many members seem to be lost, nobody is driven out of any.

It is then more likely that the hub is cut off than that they all are. Without a brake, the first member that
answers would get the workloads of all others. All follows from the conditions Ready, so that it survives a
restart: how many members are lost, when there were too many, and when the last of them came back. While the
brake is on, the time of a loss does not count; afterwards it begins anew.
"""

from collections.abc import Iterable
from typing import NamedTuple

from federation.api import Cluster
from federation.membership.cluster_status import COMPLETE_APIS, NOT_REACHABLE, READY
from federation.objects.conditions import find_condition
from reberth.values.timestamp import parse_time

_JOINING = 300.0
"""A member created so shortly before it became Ready was not lost before, unless its APIs were known."""


class LossBrake(NamedTuple):
    """`until` when the brake is on, if it is; losses count from `counted_from` at the earliest."""

    until: float | None = None
    counted_from: float = 0.0
    lost: int = 0
    members: int = 0

    @property
    def is_on(self) -> bool:
        return self.until is not None


NO_BRAKE = LossBrake()


def find_brake(clusters: Iterable[Cluster], *, fraction: float, longest: float, now: float) -> LossBrake:
    """Tell whether more than this fraction of the members is lost, and from when losses count."""
    members = [each for each in clusters if each.metadata.deletion_timestamp is None]
    lost = sorted(at for each in members if (at := _find_loss(each)) is not None)
    allowed = int(fraction * len(members) + 1e-9)
    if len(lost) <= allowed:
        back = sorted((at for each in members if (at := _find_recovery(each)) is not None), reverse=True)
        return LossBrake(None, _find_end(lost, back, allowed), len(lost), len(members))
    end = lost[allowed] + longest
    if now < end:
        return LossBrake(end, end, len(lost), len(members))
    return LossBrake(None, end, len(lost), len(members))


def _find_end(lost: list[float], back: list[float], allowed: int) -> float:
    """Return when the member came back with which there were few enough lost ones; 0 if they always were."""
    for count, at in enumerate(back, 1):
        if count + sum(since < at for since in lost) > allowed:
            return at
    return 0.0


def _find_loss(cluster: Cluster) -> float | None:
    """Return since when the member cannot be reached; None if it can."""
    ready = find_condition(cluster.status.conditions, READY)
    if ready is None or ready.status == "True" or ready.reason != NOT_REACHABLE:
        return None
    return parse_time(ready.last_transition_time) if ready.last_transition_time else 0.0


def _find_recovery(cluster: Cluster) -> float | None:
    """Return when the member became Ready; None if it is not, or has just joined."""
    ready = find_condition(cluster.status.conditions, READY)
    if ready is None or ready.status != "True" or not ready.last_transition_time:
        return None
    at = parse_time(ready.last_transition_time)
    return None if _has_joined(cluster, at) else at


def _has_joined(cluster: Cluster, at: float) -> bool:
    """Tell whether the member became Ready then for the first time.

    What a member serves is read when it answers for the first time.
    """
    created, apis = (
        cluster.metadata.creation_timestamp,
        find_condition(cluster.status.conditions, COMPLETE_APIS),
    )
    if not created or at - parse_time(created) >= _JOINING:
        return False
    return apis is None or not apis.last_transition_time or parse_time(apis.last_transition_time) >= at
