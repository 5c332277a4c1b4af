"""VolumeZone: volumes whose labels name their zone or region.

kube-scheduler: `pkg/scheduler/framework/plugins/volumezone/volume_zone.go`: `(*VolumeZone).PreFilter`,
`(*VolumeZone).getPVbyPod`, `(*VolumeZone).Filter`, `(*VolumeZone).getPVTopologies`, `translateToGALabel`
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.verdict import FITS, FilterVerdict, Rejected, refuse
from reberth.forecast.state.view import View
from reberth.forecast.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    PodClaim,
    class_of_claim,
    find_class,
    find_volume,
    list_claims,
)
from reberth.records import PersistentVolume, PersistentVolumeClaim

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
# Each label of a volume, and the GA label that a node may have instead.
_GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}


class VolumeTopology(NamedTuple):
    """A topology label of a volume, and the values of which a node must have one."""

    key: str
    values: frozenset[str]


def filter_volume_zone(incoming: IncomingPod, view: View) -> FilterVerdict:
    claims = [claim for claim in list_claims(incoming, view.facts) if not claim.is_ephemeral]
    places: list[VolumeTopology] = []
    for claim in claims:
        found = _find_places(view.facts, claim)
        if isinstance(found, Rejected):
            return found
        places += found
    if not places:
        return FITS
    mismatch = ~np.logical_and.reduce([_is_there(view.facts, place) for place in places])
    return refuse("node(s) had no available volume zone", mismatch & _is_zoned(view.facts), final=True)


def _find_places(facts: SnapshotFacts, claim: PodClaim) -> list[VolumeTopology] | Rejected:
    if claim.record is None:
        return Rejected(f'persistentvolumeclaim "{claim.name}" not found')
    name = claim.record.spec.volume_name
    if not name:
        return _judge_unbound(facts, claim.record)
    volume = find_volume(facts, name)
    return Rejected(f'persistentvolume "{name}" not found') if volume is None else list(_read(volume))


def _judge_unbound(facts: SnapshotFacts, claim: PersistentVolumeClaim) -> list[VolumeTopology] | Rejected:
    """An unbound claim has no topology, if it is WaitForFirstConsumer."""
    name = class_of_claim(claim)
    if not name:
        return Rejected("PersistentVolumeClaim had no pv name and storageClass name")
    found = find_class(facts, name)
    if found is None:
        return Rejected(f'storageclass.storage.k8s.io "{name}" not found')
    if found.volume_binding_mode is None:
        return Rejected(f'VolumeBindingMode not set for StorageClass "{name}"')
    if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return []
    return Rejected("PersistentVolume had no name")


def _read(volume: PersistentVolume) -> Iterator[VolumeTopology]:
    """Read the labels; one with an empty value among its values is ignored."""
    labels = volume.metadata.labels or {}
    for key in _GA_LABELS:
        values = frozenset(value.strip() for value in labels.get(key, "").split("__"))
        if "" not in values:
            yield VolumeTopology(key, values)


def _is_there(facts: SnapshotFacts, place: VolumeTopology) -> Bools:
    own = facts.label(place.key).ask(lambda value: value in place.values)
    newer = facts.label(_GA_LABELS[place.key]).ask(lambda value: value in place.values)
    return np.where(facts.label(place.key).codes >= 0, own, newer)


def _is_zoned(facts: SnapshotFacts) -> Bools:
    """Tell which nodes have a topology label; the others accept every volume."""
    return facts.once(
        "zoned", lambda: np.logical_or.reduce([facts.label(key).codes >= 0 for key in _GA_LABELS])
    )
