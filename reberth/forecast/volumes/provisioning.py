"""Where a volume could be provisioned: the allowedTopologies of its class, and CSIStorageCapacity.

kube-scheduler: `pkg/scheduler/framework/plugins/volumebinding/binder.go`:
`(*volumeBinder).checkVolumeProvisions`, `(*volumeBinder).hasEnoughCapacity`, `capacitySufficient`,
`(*volumeBinder).nodeHasAccess`
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.cluster.kinds import CSI_CAPACITY, CSI_DRIVER
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.volumes.claims import class_of_claim, find_class, requested_size
from reberth.forecast.volumes.reachability import find_reachable, is_reachable, read_node_affinity
from reberth.records import (
    CSIStorageCapacity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolumeClaim,
    Quantity,
    StorageClass,
)
from reberth.selectors import SelectorError, compile_selector
from reberth.values.quantity import UNIT, round_up, value

NO_CAPACITY = -1

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class StoragePool(NamedTuple):
    """A CSIStorageCapacity: capacity, maximumVolumeSize (else capacity), and the nodes with access."""

    capacity: int
    largest: int
    nodes: Indices


def allows_provisioning(facts: SnapshotFacts, claim: PersistentVolumeClaim) -> Bools:
    """Tell for which nodes the StorageClass of a claim provisions volumes."""
    found = find_class(facts, class_of_claim(claim))
    if found is None or not found.provisioner or found.provisioner == _NO_PROVISIONER:
        return np.zeros(facts.size, np.bool_)
    return is_reachable(facts, read_node_affinity(_read_topologies(found)))


def find_capacity(facts: SnapshotFacts, claim: PersistentVolumeClaim) -> Ints | None:
    """Give the capacity that each node would use, or NO_CAPACITY; None if the driver does not report any.

    The capacity must be sufficient. Of several kube-scheduler may take any: here it is the first by name.
    """
    size = requested_size(claim.spec)
    name = class_of_claim(claim)
    if size is None or not _reports_capacity(facts, name):
        return None
    needed = round_up(size, UNIT)
    return facts.once(("capacity", name, needed), lambda: _find_sufficient(facts, name, needed))


def _read_topologies(found: StorageClass) -> NodeSelector | None:
    if not found.allowed_topologies:
        return None
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                tuple(
                    NodeSelectorRequirement(each.key, "In", each.values)
                    for each in term.match_label_expressions or ()
                )
            )
            for term in found.allowed_topologies
        )
    )


def _reports_capacity(facts: SnapshotFacts, class_name: str) -> bool:
    found = find_class(facts, class_name)
    driver = facts.snapshot.of(CSI_DRIVER).named("", found.provisioner) if found else None
    return bool(driver and driver.spec.storage_capacity)


def _find_sufficient(facts: SnapshotFacts, class_name: str, needed: int) -> Ints:
    found = np.full(facts.size, NO_CAPACITY, np.int64)
    for pool in reversed(_pools(facts).get(class_name, ())):
        if pool.largest >= needed:
            found[pool.nodes] = pool.capacity
    return found


def _pools(facts: SnapshotFacts) -> Mapping[str, list[StoragePool]]:
    return facts.once("pools", lambda: _list_pools(facts))


def _list_pools(facts: SnapshotFacts) -> Mapping[str, list[StoragePool]]:
    found: defaultdict[str, list[StoragePool]] = defaultdict(list)
    for record in facts.snapshot.of(CSI_CAPACITY):
        largest = _read(record.maximum_volume_size, _read(record.capacity, NO_CAPACITY))
        pool = StoragePool(_read(record.capacity, 0), largest, _find_near(facts, record))
        found[record.storage_class_name].append(pool)
    return found


def _read(quantity: Quantity | None, otherwise: int) -> int:
    return otherwise if quantity is None else value(quantity)


def _find_near(facts: SnapshotFacts, record: CSIStorageCapacity) -> Indices:
    """Find the nodes with access: none, if nodeTopology is malformed."""
    try:
        return find_reachable(facts, (compile_selector(record.node_topology),))
    except SelectorError:
        return np.zeros(0, np.int32)
