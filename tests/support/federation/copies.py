"""Works of a Deployment with three replicas, and what they say of its copies."""

from msgspec.structs import replace

from federation.objects.resources import HeldWork
from federation.propagation.works import write_work
from tests.support.federation.objects import WEB, claimed_binding, template, work


def copy(cluster: str, available: int, *, leaving: bool = False) -> HeldWork:
    """The copy in a cluster, with so many of its three replicas available; its Work may be being deleted."""
    identifier = {"ordinal": 0, "version": "v1", "kind": "Deployment", "name": "web"}
    told = {
        "identifier": identifier,
        "status": {"replicas": 3, "availableReplicas": available},
        "health": "Healthy" if available == 3 else "Unhealthy",
    }
    wire = write_work(WEB, claimed_binding(), template(), cluster, 3)
    if leaving:
        wire["metadata"]["deletionTimestamp"] = "2027-01-15T07:59:00Z"
    applied = {"type": "Applied", "status": "True"}
    made = work(wire, conditions=[applied], manifestStatuses=[told])
    return replace(made, metadata=replace(made.metadata, uid=cluster))
