"""Clusters that a placement names and that are not there: a slip of the pen, or members yet to come."""

from collections.abc import Collection, Iterator

from federation.api import ClusterAffinity, Placement


def list_unknown(placement: Placement | None, known: Collection[str]) -> list[str]:
    """Give the names that stand for no cluster, in their order."""
    named = (name for affinity in _list_affinities(placement) for name in affinity.cluster_names or ())
    return [name for name in dict.fromkeys(named) if name not in known]


def _list_affinities(placement: Placement | None) -> Iterator[ClusterAffinity]:
    if placement is None:
        return
    if placement.cluster_affinity is not None:
        yield placement.cluster_affinity
    for term in placement.cluster_affinities or ():
        yield term
        yield from term.overflow_affinities or ()
