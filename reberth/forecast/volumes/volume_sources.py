"""Where the volumes of a pod would come from, node by node, for the claims that wait for their pod."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.volumes.claims import ask_size
from reberth.forecast.volumes.provisioning import NO_ROOM, allow, make_room
from reberth.forecast.volumes.sources import NO_VOLUME, match_volumes
from reberth.records import PersistentVolumeClaim

_SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Existing(NamedTuple):
    """A claim, and which volume each node has for it."""

    claim: PersistentVolumeClaim
    chosen: Indices


class New(NamedTuple):
    """A claim, the nodes where a volume would be made for it, and the room there, if anybody asks."""

    claim: PersistentVolumeClaim
    nodes: Bools
    room: Ints | None


class Sources(NamedTuple):
    """What each node would take, and which nodes lack a volume, or room for one. No node lacks both."""

    existing: tuple[Existing, ...]
    new: tuple[New, ...]
    lacks_volume: Bools
    lacks_room: Bools


def find_sources(facts: SnapshotFacts, claims: Iterable[PersistentVolumeClaim]) -> Sources:
    """Let each claim find a volume, or else have one made. A claim may be promised to one node already."""
    promised = [(claim, node) for claim in claims if (node := _read_selected(claim)) is not None]
    free = sorted((claim for claim in claims if _read_selected(claim) is None), key=_size_of)
    chosen = match_volumes(facts, tuple(free))
    existing = tuple(map(Existing, free, chosen))
    everywhere = np.ones(facts.size, np.bool_)
    new = [New(claim, everywhere, make_room(facts, claim)) for claim, _ in promised]
    new += [
        New(each.claim, each.chosen == NO_VOLUME, make_room(facts, each.claim))
        for each in existing
        if (each.chosen == NO_VOLUME).any()
    ]
    lacks_volume, lacks_room = _check(facts, new)
    elsewhere = ~np.logical_and.reduce([everywhere, *(_is_node(facts, node) for _, node in promised)])
    return Sources(existing, tuple(new), lacks_volume | elsewhere, lacks_room & ~elsewhere)


def _read_selected(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(_SELECTED_NODE)


def _size_of(claim: PersistentVolumeClaim) -> int:
    return ask_size(claim.spec) or 0


def _check(facts: SnapshotFacts, new: list[New]) -> tuple[Bools, Bools]:
    """Find out where volumes cannot be made. The first claim that fails on a node says why."""
    lacks_volume, lacks_room = np.zeros((2, facts.size), np.bool_)
    for claim, nodes, room in new:
        lacks_volume |= nodes & ~lacks_room & ~allow(facts, claim)
        if room is not None:
            lacks_room |= nodes & ~lacks_volume & (room == NO_ROOM)
    return lacks_volume, lacks_room


def _is_node(facts: SnapshotFacts, name: str) -> Bools:
    nodes = np.zeros(facts.size, np.bool_)
    place = facts.snapshot.nodes.index.get(name)
    if place is not None:
        nodes[place] = True
    return nodes
