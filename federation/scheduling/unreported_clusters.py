"""Clusters that have not reported their API resources yet: workloads are rescheduled once they have.

A Cluster that was just created looks like one that serves no API. A workload that is placed at that moment
would stay away from it for good. So the binding names the clusters that were rejected for this reason alone,
and is scheduled afresh when one of them has reported.
"""

from collections.abc import Iterable, Mapping

from federation.api import NOT_READY, ResourceBinding
from federation.scheduling.filters import API_ENABLEMENT, TAINT_TOLERATION
from federation.scheduling.fleet import Fleet, Member
from federation.scheduling.outcome import ClusterVerdict

UNREPORTED_CLUSTERS = "reberth.dev/unheard-clusters"
_SEPARATOR = ","


def list_unreported(tried: Iterable[Mapping[str, ClusterVerdict]], fleet: Fleet) -> tuple[str, ...]:
    """List the clusters that are rejected only because they have not reported yet."""
    reasons = {API_ENABLEMENT, TAINT_TOLERATION}
    found = {
        name
        for verdicts in tried
        for name, verdict in verdicts.items()
        if API_ENABLEMENT in verdict.reasons and verdict.reasons.keys() <= reasons
    }
    return tuple(sorted(name for name in found if _is_new(fleet.members[fleet.places[name]])))


def write_unreported(clusters: Iterable[str]) -> str | None:
    """Write the annotation of the binding; None if there are none."""
    return _SEPARATOR.join(clusters) or None


def has_reported(binding: ResourceBinding, fleet: Fleet) -> bool:
    """Tell whether a cluster has reported since the binding was placed."""
    names = (binding.metadata.annotations or {}).get(UNREPORTED_CLUSTERS)
    places = (fleet.places.get(name) for name in names.split(_SEPARATOR)) if names else ()
    return any(place is not None and _has_reported(fleet.members[place]) for place in places)


def _is_new(member: Member) -> bool:
    return not member.apis and all(taint.key == NOT_READY for taint in member.taints)


def _has_reported(member: Member) -> bool:
    is_kept_away = any(taint.key == NOT_READY for taint in member.taints)
    return bool(member.apis) and not is_kept_away and not member.is_leaving
