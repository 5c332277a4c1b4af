"""Which existing volume each node could give to a claim that waits for its pod.

As kube-scheduler has it: the volume made for the claim, else the smallest free one that will do; and what one
claim of the pod has got is not there for the next. Which of several equally large ones it takes is chance:
here it is the first by name.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices
from reberth.cluster.tabulating import seal
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.volumes.reachability import reach, reachable
from reberth.forecast.volumes.stock import Offer, Wish, list_free, list_made_for, read_wish
from reberth.records import PersistentVolumeClaim

NO_VOLUME = -1


class Chances(NamedTuple):
    """Volumes on nodes where they can be had, the best first."""

    volumes: Indices
    nodes: Indices


def match_volumes(facts: SnapshotFacts, claims: tuple[PersistentVolumeClaim, ...]) -> list[Indices]:
    """Give for each claim, node by node, its volume's place in the snapshot; NO_VOLUME where there is none.

    The claims choose in their order: the smallest must stand first.
    """
    chosen: list[Indices] = []
    for claim in claims:
        chosen.append(_choose(facts, claim, chosen, among=len(claims)))
    return chosen


def _choose(
    facts: SnapshotFacts, claim: PersistentVolumeClaim, earlier: list[Indices], *, among: int
) -> Indices:
    wish = read_wish(claim)
    volumes, nodes = facts.once(("free volumes", wish, among), lambda: _find_free(facts, wish, among))
    left = ~_is_gone(volumes, nodes, earlier)
    found = np.full(facts.size, NO_VOLUME, np.int32)
    # What is written last stays: so the best goes last.
    found[nodes[left][::-1]] = volumes[left][::-1]
    for offer in reversed(list_made_for(facts, claim, wish)):
        found = _prefer(facts, offer, found, earlier)
    return found


def _prefer(facts: SnapshotFacts, offer: Offer, found: Indices, earlier: list[Indices]) -> Indices:
    """Take a volume that was made for the claim, or none where it cannot be reached; unless it is gone."""
    gone = np.logical_or.reduce([np.zeros(facts.size, np.bool_), *(each == offer.place for each in earlier)])
    made = np.where(reachable(facts, offer.near), np.int32(offer.place), np.int32(NO_VOLUME))
    return np.where(gone, found, made)


def _is_gone(volumes: Indices, nodes: Indices, earlier: Iterable[Indices]) -> Bools:
    gone = np.zeros(len(nodes), np.bool_)
    for chosen in earlier:
        gone |= chosen[nodes] == volumes
    return gone


def _find_free(facts: SnapshotFacts, wish: Wish, among: int) -> Chances:
    """List the free volumes node by node: of those that are alike no more than there are claims."""
    offers = list(list_free(facts, wish, at_most=among))
    near = [reach(facts, alternatives) for _, alternatives in offers]
    places = np.array([offer.place for offer, _ in offers], np.int32)
    volumes = np.repeat(places, [len(nodes) for nodes in near])
    return Chances(seal(volumes), seal(np.concatenate([np.zeros(0, np.int32), *near])))
