"""The existing volumes that claims may still be bound to: free ones, and those reserved for a certain claim.

kube-scheduler: `k8s.io/component-helpers/storage/volume/pv_helpers.go`: `FindMatchingVolume`,
`CheckVolumeModeMismatches`, `CheckAccessModes`, `IsVolumeBoundToClaim`
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reberth.cluster.kinds import VOLUME
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.volumes.claims import capacity_of, class_of_claim, class_of_volume, requested_size
from reberth.forecast.volumes.reachability import NodeSelectorTerms, read_node_affinity
from reberth.records import PersistentVolume, PersistentVolumeClaim
from reberth.selectors import EVERYTHING, Selector, compile_selector

_FILESYSTEM = "Filesystem"


class VolumeRequirements(NamedTuple):
    """What a claim requires of a volume."""

    storage_class: str
    size: int
    mode: str
    attributes: str
    access: frozenset[str]
    selector: Selector


class VolumeOffer(NamedTuple):
    """A volume, and its place in the snapshot."""

    place: int
    volume: PersistentVolume
    size: int

    @property
    def near(self) -> NodeSelectorTerms:
        affinity = self.volume.spec.node_affinity
        return read_node_affinity(affinity.required if affinity else None)


class VolumeStock(NamedTuple):
    """Free volumes by class, and reserved ones by their claimRef: places in the snapshot."""

    free: Mapping[str, list[int]]
    reserved: Mapping[tuple[str | None, str | None], list[int]]


def read_requirements(claim: PersistentVolumeClaim) -> VolumeRequirements:
    spec = claim.spec
    return VolumeRequirements(
        class_of_claim(claim),
        requested_size(spec) or 0,
        spec.volume_mode or _FILESYSTEM,
        spec.volume_attributes_class_name or "",
        frozenset(spec.access_modes or ()),
        EVERYTHING if spec.selector is None else compile_selector(spec.selector),
    )


def list_free(
    facts: SnapshotFacts, needed: VolumeRequirements, *, at_most: int
) -> Iterator[tuple[VolumeOffer, NodeSelectorTerms]]:
    """Give the free volumes that match, the best first, and the node affinity of each.

    Of volumes with the same node affinity, `at_most` are given.
    """
    alike: defaultdict[NodeSelectorTerms, int] = defaultdict(int)
    for offer in _sort_free(facts, needed.storage_class):
        if _has_size_and_mode(offer, needed) and _matches(offer.volume, needed):
            near = offer.near
            alike[near] += 1
            if alike[near] <= at_most:
                yield offer, near


def list_reserved(
    facts: SnapshotFacts, claim: PersistentVolumeClaim, needed: VolumeRequirements
) -> list[VolumeOffer]:
    """Give the volumes reserved for this claim. Access modes and selector need not match; the size must."""
    meta = claim.metadata
    return [
        offer
        for place in _volume_stock(facts).reserved.get((meta.namespace, meta.name), ())
        if _is_for(offer := _offer(facts, place), meta.uid)
        and class_of_volume(offer.volume) == needed.storage_class
        and _has_size_and_mode(offer, needed)
    ]


def _sort_free(facts: SnapshotFacts, storage_class: str) -> list[VolumeOffer]:
    """Sort the free volumes of a class: the smallest first, those of one size by name."""
    places = _volume_stock(facts).free.get(storage_class, ())
    return facts.once(
        ("free volumes of", storage_class),
        lambda: sorted((_offer(facts, place) for place in places), key=lambda offer: offer.size),
    )


def _offer(facts: SnapshotFacts, place: int) -> VolumeOffer:
    volume = facts.snapshot.of(VOLUME).all[place]
    return VolumeOffer(place, volume, capacity_of(volume))


def _volume_stock(facts: SnapshotFacts) -> VolumeStock:
    return facts.once("stock of volumes", lambda: _part(facts.snapshot.of(VOLUME).all))


def _part(volumes: tuple[PersistentVolume, ...]) -> VolumeStock:
    stock = VolumeStock(defaultdict(list), defaultdict(list))
    for place, volume in enumerate(volumes):
        owner = volume.spec.claim_ref
        if volume.metadata.deletion_timestamp:
            continue
        if owner:
            stock.reserved[owner.namespace, owner.name].append(place)
        elif volume.status.phase == "Available":
            stock.free[class_of_volume(volume)].append(place)
    return stock


def _has_size_and_mode(offer: VolumeOffer, needed: VolumeRequirements) -> bool:
    spec = offer.volume.spec
    return (
        offer.size >= needed.size
        and (spec.volume_mode or _FILESYSTEM) == needed.mode
        and (spec.volume_attributes_class_name or "") == needed.attributes
    )


def _matches(volume: PersistentVolume, needed: VolumeRequirements) -> bool:
    return needed.selector.matches(volume.metadata.labels) and needed.access.issubset(
        volume.spec.access_modes or ()
    )


def _is_for(offer: VolumeOffer, uid: str) -> bool:
    owner = offer.volume.spec.claim_ref
    return owner is not None and owner.uid in {None, "", uid}
