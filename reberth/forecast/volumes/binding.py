"""VolumeBinding: whether each node can reach, find or provision the volumes of a pod's claims.

kube-scheduler:
* `pkg/scheduler/framework/plugins/volumebinding/volume_binding.go`: `(*VolumeBinding).podHasPVCs`,
  `(*VolumeBinding).PreFilter`, `(*VolumeBinding).Filter`, `(*VolumeBinding).Score`
* `pkg/scheduler/framework/plugins/volumebinding/binder.go`: `(*volumeBinder).GetPodVolumeClaims`,
  `(*volumeBinder).FindPodVolumes`, `(*volumeBinder).checkBoundClaims`
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.cluster.pods.requests import Version
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from reberth.forecast.state.verdict import FITS, FilterVerdict, Refusal, Rejected, Unforeseeable, refuse
from reberth.forecast.state.view import View
from reberth.forecast.volumes.capacity_score import score_capacity
from reberth.forecast.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    PodClaim,
    class_of_claim,
    find_class,
    find_volume,
    is_fully_bound,
    list_claims,
)
from reberth.forecast.volumes.csi_migration import find_migrated_nodes, find_migrated_volume, migrate_affinity
from reberth.forecast.volumes.reachability import is_reachable, read_node_affinity
from reberth.forecast.volumes.sources import find_sources
from reberth.records import OwnerReference, PersistentVolume, PersistentVolumeClaim
from reberth.selectors import SelectorError
from reberth.values.quantity import QuantityError

# Feature gate StorageCapacityScoring: off in 1.36, on in 1.37.
_SCORES_CAPACITY: Version = (1, 37)
# `pkg/scheduler/apis/config/v1/defaults.go`: `SetDefaults_VolumeBindingArgs`
_DEFAULT_SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


class PodVolumeClaims(NamedTuple):
    """The claims that are bound, and those with WaitForFirstConsumer that are not."""

    bound: list[PersistentVolumeClaim]
    waiting: list[PersistentVolumeClaim]


def filter_volume_binding(incoming: IncomingPod, view: View, _arguments: VolumeBindingArgs) -> FilterVerdict:
    """Refuse nodes where a claim cannot be bound. The arguments only affect binding timeouts and scores."""
    claims = list_claims(incoming, view.facts)
    if not claims:
        return FITS
    parted = _check_all(incoming, view.facts, claims) or _part(view.facts, claims)
    if not isinstance(parted, PodVolumeClaims):
        return parted
    try:
        return tuple(_refuse(view.facts, parted))
    except (QuantityError, SelectorError) as error:
        return Unforeseeable(f"a volume or claim is malformed: {error}")


def score_volume_binding(
    incoming: IncomingPod, view: View, feasible: Indices, arguments: VolumeBindingArgs
) -> Ints | None:
    """Score the storage capacity left for the pod's volumes, from 1.37 on.

    Of several CSIStorageCapacities, or of several equally large volumes, kube-scheduler may take any.
    """
    claims = list_claims(incoming, view.facts) if view.facts.version >= _SCORES_CAPACITY else ()
    parted = _part(view.facts, claims)
    if not claims or not isinstance(parted, PodVolumeClaims):
        return None
    sources = find_sources(view.facts, parted.waiting)
    return score_capacity(view.facts, sources, feasible, arguments.shape or _DEFAULT_SHAPE)


def _check_all(
    incoming: IncomingPod, facts: SnapshotFacts, claims: Iterable[PodClaim]
) -> Rejected | Unforeseeable | None:
    checks = (_check(incoming, facts, claim) for claim in claims)
    return next((verdict for verdict in checks if verdict), None)


def _check(incoming: IncomingPod, facts: SnapshotFacts, claim: PodClaim) -> Rejected | Unforeseeable | None:
    name, record = claim.name, claim.record
    if record is None:
        return Rejected(_miss(claim))
    if record.status.phase == "Lost":
        volume = record.spec.volume_name or ""
        return Rejected(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"')
    if record.metadata.deletion_timestamp:
        return Rejected(f'persistentvolumeclaim "{name}" is being deleted')
    if claim.is_expected:
        return _check_expected(facts, record)
    if claim.is_ephemeral and not _is_controlled(record.metadata.owner_references or (), incoming.uid):
        namespace = incoming.namespace
        return Rejected(
            f"PVC {namespace}/{name} was not created for pod {namespace}/{incoming.name} (pod is not owner)"
        )
    return None


def _miss(claim: PodClaim) -> str:
    if claim.is_ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{claim.name}"'
    return f'persistentvolumeclaim "{claim.name}" not found'


def _check_expected(facts: SnapshotFacts, claim: PersistentVolumeClaim) -> Unforeseeable | None:
    """A claim that does not exist yet can be forecast only if its class waits for the pod."""
    found = find_class(facts, class_of_claim(claim))
    if found and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return None
    return Unforeseeable(
        f"ephemeral volume with claim {claim.metadata.name} cannot be forecast: the claim does not exist yet,"
        " and its StorageClass is not WaitForFirstConsumer"
    )


def _is_controlled(owners: Iterable[OwnerReference], uid: str) -> bool:
    return any(owner.controller and owner.uid == uid for owner in owners)


def _part(facts: SnapshotFacts, claims: Iterable[PodClaim]) -> PodVolumeClaims | Rejected:
    parted, is_late = PodVolumeClaims([], []), False
    for claim in (each.record for each in claims if each.record):
        found = find_class(facts, class_of_claim(claim))
        if is_fully_bound(claim):
            parted.bound.append(claim)
        elif found and found.volume_binding_mode is None:
            return Rejected(
                'running PreFilter plugin "VolumeBinding": VolumeBindingMode not set for StorageClass'
                f' "{found.metadata.name}"'
            )
        elif found and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name:
            parted.waiting.append(claim)
        else:
            is_late = True
    return Rejected("pod has unbound immediate PersistentVolumeClaims") if is_late else parted


def _refuse(facts: SnapshotFacts, claims: PodVolumeClaims) -> Iterator[Refusal]:
    far, gone = _check_bound(facts, claims.bound)
    yield from refuse("node(s) didn't match PersistentVolume's node affinity", far, final=True)
    if claims.waiting:
        sources = find_sources(facts, claims.waiting)
        lacks = "node(s) didn't find available persistent volumes to bind"
        yield from refuse(lacks, sources.lacks_volume, final=True)
        yield from refuse("node(s) did not have enough free storage", sources.lacks_capacity, final=True)
    missing = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    yield from refuse(missing, gone, final=True)


def _check_bound(facts: SnapshotFacts, claims: Iterable[PersistentVolumeClaim]) -> tuple[Bools, Bools]:
    """Tell which nodes cannot reach a volume, and which meet a missing volume first."""
    far = np.zeros(facts.size, np.bool_)
    for claim in claims:
        volume = find_volume(facts, claim.spec.volume_name)
        if volume is None:
            return far, ~far
        far |= ~_find_near(facts, volume)
    return far, np.zeros(facts.size, np.bool_)


def _find_near(facts: SnapshotFacts, volume: PersistentVolume) -> Bools:
    """Tell which nodes can reach a volume; migrated nodes use the topology label of the CSI driver.

    `pkg/scheduler/framework/plugins/volumebinding/binder.go`: `(*volumeBinder).tryTranslatePVToCSI`
    """
    affinity = volume.spec.node_affinity
    near = is_reachable(facts, read_node_affinity(affinity.required if affinity else None))
    moved = None if volume.spec.csi else find_migrated_volume(volume.spec, volume.metadata.labels)
    if not moved or not moved.driver.zone:
        return near
    migrated = read_node_affinity(migrate_affinity(volume, moved.driver.zone))
    return np.where(find_migrated_nodes(facts, moved.driver), is_reachable(facts, migrated), near)
