"""The existing volumes that claims may still get: the free ones, and those made for a certain claim."""

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
    """What a volume must have to do for a claim."""

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
    """Free volumes by class, and the others by the claim that they are for: places in the snapshot."""

    free: Mapping[str, list[int]]
    made_for: Mapping[tuple[str | None, str | None], list[int]]


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
    facts: SnapshotFacts, wish: VolumeRequirements, *, at_most: int
) -> Iterator[tuple[VolumeOffer, NodeSelectorTerms]]:
    """Give the free volumes that would do, the best first, and the nodes near each.

    Of volumes that are alike there are no more than so many.
    """
    alike: defaultdict[NodeSelectorTerms, int] = defaultdict(int)
    for offer in _sort_free(facts, wish.storage_class):
        if _would_do(offer, wish) and _suits(offer.volume, wish):
            near = offer.near
            alike[near] += 1
            if alike[near] <= at_most:
                yield offer, near


def list_made_for(
    facts: SnapshotFacts, claim: PersistentVolumeClaim, wish: VolumeRequirements
) -> list[VolumeOffer]:
    """Give the volumes that were made for this claim. They need not suit it in all, but be large enough."""
    meta = claim.metadata
    return [
        offer
        for place in _take_stock(facts).made_for.get((meta.namespace, meta.name), ())
        if _is_for(offer := _offer(facts, place), meta.uid)
        and class_of_volume(offer.volume) == wish.storage_class
        and _would_do(offer, wish)
    ]


def _sort_free(facts: SnapshotFacts, storage_class: str) -> list[VolumeOffer]:
    """Put the free volumes of a class in order: the smallest first, those of a size by name."""
    places = _take_stock(facts).free.get(storage_class, ())
    return facts.once(
        ("free volumes of", storage_class),
        lambda: sorted((_offer(facts, place) for place in places), key=lambda offer: offer.size),
    )


def _offer(facts: SnapshotFacts, place: int) -> VolumeOffer:
    volume = facts.snapshot.of(VOLUME).all[place]
    return VolumeOffer(place, volume, capacity_of(volume))


def _take_stock(facts: SnapshotFacts) -> VolumeStock:
    return facts.once("stock of volumes", lambda: _part(facts.snapshot.of(VOLUME).all))


def _part(volumes: tuple[PersistentVolume, ...]) -> VolumeStock:
    stock = VolumeStock(defaultdict(list), defaultdict(list))
    for place, volume in enumerate(volumes):
        owner = volume.spec.claim_ref
        if volume.metadata.deletion_timestamp:
            continue
        if owner:
            stock.made_for[owner.namespace, owner.name].append(place)
        elif volume.status.phase == "Available":
            stock.free[class_of_volume(volume)].append(place)
    return stock


def _would_do(offer: VolumeOffer, wish: VolumeRequirements) -> bool:
    spec = offer.volume.spec
    return (
        offer.size >= wish.size
        and (spec.volume_mode or _FILESYSTEM) == wish.mode
        and (spec.volume_attributes_class_name or "") == wish.attributes
    )


def _suits(volume: PersistentVolume, wish: VolumeRequirements) -> bool:
    return wish.selector.matches(volume.metadata.labels) and wish.access.issubset(
        volume.spec.access_modes or ()
    )


def _is_for(offer: VolumeOffer, uid: str) -> bool:
    owner = offer.volume.spec.claim_ref
    return owner is not None and owner.uid in {None, "", uid}
