"""What the status of a workload says about its rollout."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from reberth.cluster.columns import read_pods
from reberth.cluster.kinds import DEPLOYMENT
from reberth.cluster.pods.identity import find_controller
from reberth.cluster.rows import PodRow
from reberth.cluster.tables import NamespaceRows
from reberth.cluster.templates import Template
from reberth.forecast.replacement.revisions import REVISION, read_partition
from reberth.other_projects.table import OtherKind, has_begun_rollout, read_table
from reberth.records import CustomOwner, Owner, Rollout
from rescheduler.model.replacing_kinds import BUILT_IN, kind_of


def is_rolling(owner: Owner, kind: str) -> bool:
    """Tell whether a Deployment or StatefulSet replaces pods.

    An object without a generation was written by hand, so its status says nothing.
    """
    if is_unobserved(owner):
        return True
    if not owner.metadata.generation:
        return False
    status, desired = owner.status, owner.spec.replicas or 0
    if kind == DEPLOYMENT.name:
        return status.updated_replicas < desired or status.replicas > status.updated_replicas
    return has_two_revisions(owner) and status.updated_replicas < desired - read_partition(owner)


def is_argo_rolling(rollout: Rollout, *, is_divided: bool) -> bool:
    """Without the hashes, or after an abort, the ReplicaSets tell: the new one is still being removed."""
    status = rollout.status
    observed = status.observed_generation or ""
    if observed.isdecimal() and int(observed) < rollout.metadata.generation:
        return True
    if status.abort or not (status.current_pod_hash and status.stable_rs):
        return is_divided
    return status.current_pod_hash != status.stable_rs


@cache
def any_rolling(named: tuple[str, str]) -> Callable[[tuple[CustomOwner, ...]], bool]:
    """Give the question whether one of the objects of a kind of another project has a rollout in progress.

    It is one question for each kind: what was answered of a namespace is kept by it.
    """
    return partial(_find_rolling, read_table()[named])


def _find_rolling(kind: OtherKind, owners: Iterable[CustomOwner]) -> bool:
    """An object without a generation was written by hand, so its status says nothing."""
    told = (
        {"metadata": {"generation": each.metadata.generation}, "status": each.status}
        for each in owners
        if each.metadata.generation
    )
    return any(has_begun_rollout(kind, each) for each in told)


def has_two_revisions(owner: Owner) -> bool:
    status = owner.status
    return owner.metadata.generation > 0 and status.current_revision != status.update_revision


def is_unobserved(owner: Owner) -> bool:
    return owner.status.observed_generation < owner.metadata.generation


def list_divided(replica_sets: Iterable[Owner]) -> frozenset[str]:
    """List the owners that have pods in more than one ReplicaSet, by their uids."""
    occupied = (each for each in replica_sets if each.spec.replicas or each.status.replicas)
    counts = Counter(owner.uid for each in occupied if (owner := find_controller(each.metadata)))
    return frozenset(uid for uid, count in counts.items() if count > 1)


def list_mixed(pods: NamespaceRows[PodRow]) -> frozenset[str]:
    """List the controllers, other than Kubernetes' own, whose pods have several revisions, by their uids."""
    return pods.once("mixed revisions", lambda: frozenset(_find_mixed(pods.read(read_pods).templates)))


def _find_mixed(templates: Iterable[Template]) -> Iterator[str]:
    known: dict[str, str] = {}
    for each in templates:
        revision, controller = each.labels.get(REVISION), each.controller
        if revision is None or controller is None or kind_of(controller) in BUILT_IN:
            continue
        if known.setdefault(controller.uid, revision) != revision:
            yield controller.uid
