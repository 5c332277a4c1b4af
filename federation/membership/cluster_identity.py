"""Which Cluster stands for a member: two names for one API server would write against each other.

A member is known by the uid of its namespace kube-system, which is written into spec.id as in Karmada.
"""

from collections.abc import Iterable, Mapping

from federation.api import Cluster

KUBE_SYSTEM = "kube-system"


def find_owner(identity: str, clusters: Iterable[Cluster], known: Mapping[str, str]) -> str | None:
    """Return the Cluster that stands for the member with this identity; None if none does.

    It is one that says so in spec.id, and of several the oldest. What a member has told itself (`known`)
    takes precedence over spec.id, which may have been copied from another Cluster.
    """
    claims = [
        (each.spec.id != identity, each.metadata.creation_timestamp or "", each.metadata.name)
        for each in clusters
        if known.get(each.metadata.name, each.spec.id) == identity
    ]
    return min(claims)[-1] if claims else None
