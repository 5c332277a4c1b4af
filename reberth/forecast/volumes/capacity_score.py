"""The VolumeBinding score: how full a node's storage would be with the volumes of a pod.

kube-scheduler: `pkg/scheduler/framework/plugins/volumebinding/scorer.go`: `buildScorerFunction`;
`pkg/scheduler/framework/plugins/volumebinding/volume_binding.go`: `(*VolumeBinding).Score`
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.cluster.kinds import VOLUME
from reberth.forecast.plugins.node_resources import follow
from reberth.forecast.plugins.normalize import MAX_NODE_SCORE
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.plugin_args import UtilizationShapePoint
from reberth.forecast.volumes.claims import capacity_of, class_of_claim, requested_size
from reberth.forecast.volumes.sources import NO_VOLUME, DynamicProvision, StaticBinding, VolumeSources
from reberth.records import PersistentVolumeClaim
from reberth.values.quantity import UNIT, round_up


class StorageResource(NamedTuple):
    """The storage of one class: what the pod requests, and the capacity."""

    requested: Ints
    offered: Ints
    counts: Bools


def score_capacity(
    facts: SnapshotFacts, sources: VolumeSources, feasible: Indices, shape: tuple[UtilizationShapePoint, ...]
) -> Ints:
    """Average over the classes: of existing volumes where a node takes any, of provisioned ones elsewhere."""
    existing = _sum_existing(facts, sources.existing, feasible)
    taken = np.logical_or.reduce([np.zeros(len(feasible), np.bool_), *(use.counts for use in existing)])
    new = [use._replace(counts=use.counts & ~taken) for use in _sum_new(sources.new, feasible)]
    scores, classes = np.zeros((2, len(feasible)), np.int64)
    for use in existing + new:
        scores += np.where(use.counts, _rate(use, shape), 0)
        classes += use.counts
    average: Ints = np.floor(scores / np.where(classes, classes, 1) + 0.5).astype(np.int64)
    return average


def _sum_existing(
    facts: SnapshotFacts, existing: tuple[StaticBinding, ...], feasible: Indices
) -> list[StorageResource]:
    """Sum the chosen volumes by their storageClassName."""
    uses: dict[str, StorageResource] = {}
    for claim, chosen in existing:
        places, which = np.unique(chosen[feasible], return_inverse=True)
        offered, classes = facts.once(("offered", places.tobytes()), partial(_read_offers, facts, places))
        for name, its in classes.items():
            counts = its[which]
            use = uses.setdefault(name, _start(len(feasible)))
            use.requested[counts] += _request(claim)
            use.offered[counts] += offered[which][counts]
            use.counts[counts] = True
    return list(uses.values())


def _read_offers(facts: SnapshotFacts, places: Indices) -> tuple[Ints, Mapping[str, Bools]]:
    """Read the capacity of some volumes, and which are of which class; a place may be NO_VOLUME."""
    volumes = facts.snapshot.of(VOLUME).all
    offered = np.zeros(len(places), np.int64)
    classes: defaultdict[str, Bools] = defaultdict(lambda: np.zeros(len(places), np.bool_))
    for number, place in enumerate(places.tolist()):
        if place != NO_VOLUME:
            offered[number] = round_up(capacity_of(volumes[place]), UNIT)
            name = volumes[place].spec.storage_class_name or ""
            classes[name][number] = True
    return offered, classes


def _sum_new(new: tuple[DynamicProvision, ...], feasible: Indices) -> list[StorageResource]:
    """Sum the volumes to provision. They share one CSIStorageCapacity, as found for the last claim."""
    uses: dict[str, StorageResource] = {}
    for claim, nodes, capacity in new:
        if capacity is not None:
            counts = nodes[feasible]
            use = uses.setdefault(class_of_claim(claim), _start(len(feasible)))
            use.requested[counts] += _request(claim)
            use.offered[counts] = capacity[feasible][counts]
            use.counts[counts] = True
    return list(uses.values())


def _start(size: int) -> StorageResource:
    return StorageResource(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_))


def _request(claim: PersistentVolumeClaim) -> int:
    return round_up(requested_size(claim.spec) or 0, UNIT)


def _rate(use: StorageResource, shape: tuple[UtilizationShapePoint, ...]) -> Ints:
    is_full = (use.offered == 0) | (use.requested > use.offered)
    share = np.where(
        is_full, MAX_NODE_SCORE, use.requested * MAX_NODE_SCORE // np.where(is_full, 1, use.offered)
    )
    return follow(shape, share)
