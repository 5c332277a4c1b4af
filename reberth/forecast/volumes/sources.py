"""Where the volumes of a pod's unbound claims would come from, node by node: an existing volume or a new one.

As kube-scheduler does: the volume that was made for the claim, else the smallest free one that fits; a volume
chosen for one claim of the pod is not available to the next. Which of several equally large volumes
kube-scheduler takes depends on chance: here it is the first by name.

kube-scheduler: `pkg/scheduler/framework/plugins/volumebinding/binder.go`:
`(*volumeBinder).FindPodVolumes`, `(*volumeBinder).findMatchingVolumes`;
`k8s.io/component-helpers/storage/volume/pv_helpers.go`: `FindMatchingVolume`
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints, seal
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.volumes.claims import requested_size
from reberth.forecast.volumes.provisioning import NO_CAPACITY, allows_provisioning, find_capacity
from reberth.forecast.volumes.reachability import find_reachable, is_reachable
from reberth.forecast.volumes.stock import (
    VolumeOffer,
    VolumeRequirements,
    list_free,
    list_reserved,
    read_requirements,
)
from reberth.records import PersistentVolumeClaim

NO_VOLUME = -1

_SELECTED_NODE = "volume.kubernetes.io/selected-node"


class VolumeCandidates(NamedTuple):
    """Volumes, each with a node that can reach it, the best first."""

    volumes: Indices
    nodes: Indices


class StaticBinding(NamedTuple):
    """A claim, and the existing volume that it would be bound to on each node."""

    claim: PersistentVolumeClaim
    chosen: Indices


class DynamicProvision(NamedTuple):
    """A claim, the nodes where a volume would be provisioned for it, and the capacity there, if reported."""

    claim: PersistentVolumeClaim
    nodes: Bools
    capacity: Ints | None


class VolumeSources(NamedTuple):
    """What each node would use, and which nodes lack a volume, or capacity for one. No node lacks both."""

    existing: tuple[StaticBinding, ...]
    new: tuple[DynamicProvision, ...]
    lacks_volume: Bools
    lacks_capacity: Bools


def find_sources(facts: SnapshotFacts, claims: Iterable[PersistentVolumeClaim]) -> VolumeSources:
    """Let each claim find a volume, or else provision one. The selected-node annotation may name a node."""
    selected = [(claim, node) for claim in claims if (node := _read_selected(claim)) is not None]
    free = sorted((claim for claim in claims if _read_selected(claim) is None), key=_size_of)
    chosen = choose_volumes(facts, tuple(free))
    existing = tuple(map(StaticBinding, free, chosen))
    everywhere = np.ones(facts.size, np.bool_)
    new = [DynamicProvision(claim, everywhere, find_capacity(facts, claim)) for claim, _ in selected]
    new += [
        DynamicProvision(each.claim, each.chosen == NO_VOLUME, find_capacity(facts, each.claim))
        for each in existing
        if (each.chosen == NO_VOLUME).any()
    ]
    lacks_volume, lacks_capacity = _check(facts, new)
    elsewhere = ~np.logical_and.reduce([everywhere, *(_is_node(facts, node) for _, node in selected)])
    return VolumeSources(existing, tuple(new), lacks_volume | elsewhere, lacks_capacity & ~elsewhere)


def _read_selected(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(_SELECTED_NODE)


def _size_of(claim: PersistentVolumeClaim) -> int:
    return requested_size(claim.spec) or 0


def _check(facts: SnapshotFacts, new: list[DynamicProvision]) -> tuple[Bools, Bools]:
    """Find where volumes cannot be provisioned. The first claim that fails on a node gives the reason."""
    lacks_volume, lacks_capacity = np.zeros((2, facts.size), np.bool_)
    for claim, nodes, capacity in new:
        lacks_volume |= nodes & ~lacks_capacity & ~allows_provisioning(facts, claim)
        if capacity is not None:
            lacks_capacity |= nodes & ~lacks_volume & (capacity == NO_CAPACITY)
    return lacks_volume, lacks_capacity


def _is_node(facts: SnapshotFacts, name: str) -> Bools:
    nodes = np.zeros(facts.size, np.bool_)
    place = facts.snapshot.nodes.index.get(name)
    if place is not None:
        nodes[place] = True
    return nodes


def choose_volumes(facts: SnapshotFacts, claims: tuple[PersistentVolumeClaim, ...]) -> list[Indices]:
    """Give for each claim, node by node, its volume's place in the snapshot; NO_VOLUME where there is none.

    The claims choose in order: the smallest must come first.
    """
    chosen: list[Indices] = []
    for claim in claims:
        chosen.append(_choose(facts, claim, chosen, among=len(claims)))
    return chosen


def _choose(
    facts: SnapshotFacts, claim: PersistentVolumeClaim, earlier: list[Indices], *, among: int
) -> Indices:
    needed = read_requirements(claim)
    volumes, nodes = facts.once(("free volumes", needed, among), lambda: _find_free(facts, needed, among))
    left = ~_is_taken(volumes, nodes, earlier)
    found = np.full(facts.size, NO_VOLUME, np.int32)
    # The last write wins: so the best volume is written last.
    found[nodes[left][::-1]] = volumes[left][::-1]
    for offer in reversed(list_reserved(facts, claim, needed)):
        found = _prefer(facts, offer, found, earlier)
    return found


def _prefer(facts: SnapshotFacts, offer: VolumeOffer, found: Indices, earlier: list[Indices]) -> Indices:
    """Take a volume reserved for the claim, or none where it cannot be reached; unless it is taken."""
    gone = np.logical_or.reduce([np.zeros(facts.size, np.bool_), *(each == offer.place for each in earlier)])
    made = np.where(is_reachable(facts, offer.near), np.int32(offer.place), np.int32(NO_VOLUME))
    return np.where(gone, found, made)


def _is_taken(volumes: Indices, nodes: Indices, earlier: Iterable[Indices]) -> Bools:
    gone = np.zeros(len(nodes), np.bool_)
    for chosen in earlier:
        gone |= chosen[nodes] == volumes
    return gone


def _find_free(facts: SnapshotFacts, needed: VolumeRequirements, among: int) -> VolumeCandidates:
    """List the free volumes node by node: of identical ones no more than there are claims."""
    offers = list(list_free(facts, needed, at_most=among))
    near = [find_reachable(facts, alternatives) for _, alternatives in offers]
    places = np.array([offer.place for offer, _ in offers], np.int32)
    volumes = np.repeat(places, [len(nodes) for nodes in near])
    return VolumeCandidates(seal(volumes), seal(np.concatenate([np.zeros(0, np.int32), *near])))
