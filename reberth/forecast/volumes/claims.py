"""The claims of a pod: those that it names, and those made for its ephemeral volumes.

kube-scheduler: `k8s.io/component-helpers/storage/volume/helpers.go`: `GetPersistentVolumeClaimClass`,
`GetPersistentVolumeClass`; `pkg/scheduler/framework/plugins/volumebinding/binder.go`:
`(*volumeBinder).isPVCFullyBound`
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reberth.cluster.kinds import CLAIM, STORAGE_CLASS, VOLUME
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.records import (
    ClaimSpec,
    Labels,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PodSpec,
    Quantities,
    StorageClass,
    Volume,
)
from reberth.values.quantity import nanos

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

# This annotation takes precedence over storageClassName.
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


class PodClaim(NamedTuple):
    """A claim as a pod names it. Its record is None if there is no such claim.

    An expected claim belongs to a pod that does not exist yet: its record comes from the volumeClaimTemplate.
    """

    name: str
    record: PersistentVolumeClaim | None
    is_ephemeral: bool = False
    is_expected: bool = False


def list_claims(incoming: IncomingPod, facts: SnapshotFacts) -> tuple[PodClaim, ...]:
    """Give the claims of the incoming pod, in the order of its volumes."""
    if not incoming.template.spec.volumes:
        return ()
    named = name_claims(incoming.template.spec, incoming.own.claims, incoming.name)
    return tuple([_look_up(incoming, facts, name, volume) for name, volume in named])


def name_claims(spec: PodSpec, claims: Iterable[str], pod: str) -> Iterator[tuple[str, Volume]]:
    """Name the claims of a template's volumes, given the claim names of its pod."""
    left = iter(claims)
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield next(left), volume
        elif volume.ephemeral is not None:
            yield f"{pod}-{volume.name}", volume


def find_volume(facts: SnapshotFacts, name: str | None) -> PersistentVolume | None:
    return facts.snapshot.of(VOLUME).named("", name) if name else None


def find_class(facts: SnapshotFacts, name: str) -> StorageClass | None:
    return facts.snapshot.of(STORAGE_CLASS).named("", name)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    return _class_of(claim.metadata.annotations, claim.spec.storage_class_name)


def class_of_volume(volume: PersistentVolume) -> str:
    return _class_of(volume.metadata.annotations, volume.spec.storage_class_name)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Tell whether the claim names a volume and binding is completed."""
    return bool(claim.spec.volume_name) and _BIND_COMPLETED in (claim.metadata.annotations or {})


def requested_size(spec: ClaimSpec) -> int | None:
    """Give the storage that a claim requests, in nanos; None if it requests none."""
    requests = spec.resources.requests if spec.resources else None
    return _read_storage(requests)


def capacity_of(volume: PersistentVolume) -> int:
    return _read_storage(volume.spec.capacity) or 0


def _read_storage(amounts: Quantities | None) -> int | None:
    return nanos(amounts["storage"]) if amounts and "storage" in amounts else None


def _class_of(annotations: Labels | None, field: str | None) -> str:
    return (annotations or {}).get(_CLASS_ANNOTATION, field or "")


def _look_up(incoming: IncomingPod, facts: SnapshotFacts, name: str, volume: Volume) -> PodClaim:
    if volume.ephemeral is not None and incoming.is_expected:
        template = volume.ephemeral.volume_claim_template
        meta = ObjectMeta(name=name, namespace=incoming.namespace)
        record = PersistentVolumeClaim(meta, template.spec if template else ClaimSpec())
        return PodClaim(name, record, is_ephemeral=True, is_expected=True)
    found = facts.snapshot.of(CLAIM).named(incoming.namespace, name)
    return PodClaim(name, found, is_ephemeral=volume.ephemeral is not None)
