"""Taints and tolerations: which taints of a node a pod tolerates."""

from collections.abc import Iterable

from reberth.records import Taint, Toleration

_KEEPING_AWAY = {"NoSchedule", "NoExecute"}


def tolerates(tolerations: Iterable[Toleration] | None, taint: Taint) -> bool:
    return any(_covers(toleration, taint) for toleration in tolerations or ())


def find_untolerated(
    taints: Iterable[Taint] | None, tolerations: Iterable[Toleration] | None
) -> Taint | None:
    """Find the first taint that these tolerations do not tolerate."""
    for taint in taints or ():
        if taint.effect in _KEEPING_AWAY and not tolerates(tolerations, taint):
            return taint
    return None


def count_unpreferred(taints: Iterable[Taint] | None, tolerations: Iterable[Toleration] | None) -> int:
    """Count the PreferNoSchedule taints that are not tolerated."""
    soft = [taint for taint in taints or () if taint.effect == "PreferNoSchedule"]
    return sum(not tolerates(tolerations, taint) for taint in soft)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {None, "", "Equal"}:
        return (toleration.value or "") == (taint.value or "")
    # Lt and Gt need a feature gate, which is assumed to be off: they tolerate nothing.
    return toleration.operator == "Exists"
