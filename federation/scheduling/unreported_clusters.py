"""Clusters that have yet to say what they serve: a workload is placed without them, and once more with them.

A Cluster that has just been made looks like one that serves nothing. Whoever is placed in that moment would
stay where it was put. So the binding names those that would have been in question, and is scheduled afresh
when one of them has spoken.
"""

from collections.abc import Iterable, Mapping

from federation.api import NOT_READY, ResourceBinding
from federation.scheduling.filters import API_ENABLEMENT, TAINT_TOLERATION
from federation.scheduling.fleet import Fleet, Member
from federation.scheduling.outcome import ClusterVerdict

UNREPORTED_CLUSTERS = "reberth.dev/unheard-clusters"
_SEPARATOR = ","


def list_unreported(tried: Iterable[Mapping[str, ClusterVerdict]], fleet: Fleet) -> tuple[str, ...]:
    """List the clusters that nothing else speaks against than that they have said nothing yet."""
    reasons = {API_ENABLEMENT, TAINT_TOLERATION}
    found = {
        name
        for verdicts in tried
        for name, verdict in verdicts.items()
        if API_ENABLEMENT in verdict.reasons and verdict.reasons.keys() <= reasons
    }
    return tuple(sorted(name for name in found if _is_new(fleet.members[fleet.places[name]])))


def write_unreported(clusters: Iterable[str]) -> str | None:
    """Write what a binding says of them; None where there are none."""
    return _SEPARATOR.join(clusters) or None


def has_reported(binding: ResourceBinding, fleet: Fleet) -> bool:
    """Tell whether a cluster has spoken that had not when the binding was placed."""
    names = (binding.metadata.annotations or {}).get(UNREPORTED_CLUSTERS)
    places = (fleet.places.get(name) for name in names.split(_SEPARATOR)) if names else ()
    return any(place is not None and _has_spoken(fleet.members[place]) for place in places)


def _is_new(member: Member) -> bool:
    return not member.apis and all(taint.key == NOT_READY for taint in member.taints)


def _has_spoken(member: Member) -> bool:
    is_kept_away = any(taint.key == NOT_READY for taint in member.taints)
    return bool(member.apis) and not is_kept_away and not member.is_leaving
