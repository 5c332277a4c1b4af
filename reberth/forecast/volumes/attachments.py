"""Volumes attached to nodes: those that pods there use, and those not detached yet.

A volume is known by its CSI driver and handle; one that is still to be provisioned, by its claim.

kube-scheduler: `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`:
`(*CSILimits).filterAttachableVolumes`, `(*CSILimits).checkAttachableInlineVolume`,
`(*CSILimits).getCSIDriverInfo`, `(*CSILimits).getCSIDriverInfoFromSC`,
`(*CSILimits).getNodeVolumeAttachmentInfo`
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints, seal
from reberth.cluster.kinds import ATTACHMENT, CLAIM
from reberth.cluster.pods.requests import Version
from reberth.cluster.templates import Template
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View, view_snapshot
from reberth.forecast.volumes.claims import class_of_claim, find_class, find_volume, name_claims
from reberth.forecast.volumes.csi_migration import (
    IN_TREE_DRIVERS,
    PORTWORX,
    UNCOUNTED,
    InTreeDriver,
    MigratedVolume,
    find_migrated_nodes,
    find_migrated_volume,
)
from reberth.records import PersistentVolumeClaim, PodSpec

# Since 1.36 Portworx volumes count on every node with a CSINode, like those of the other in-tree drivers; in
# 1.35 only where the CSINode's annotation names the driver.
# `pkg/scheduler/framework/plugins/nodevolumelimits/utils.go`: `isCSIMigrationOn`
_ALWAYS_MIGRATES_PORTWORX: Version = (1, 36)


class Attachable(NamedTuple):
    """A volume that a node must attach; `in_tree` is the driver that its object names, if migrated."""

    driver: str
    handle: tuple[str, ...]
    in_tree: InTreeDriver | None = None


@dataclass(frozen=True, eq=False)
class VolumeUsage:
    """The volumes of one CSI driver: which pod uses which, and which is attached to which node."""

    facts: SnapshotFacts
    numbers: Mapping[tuple[str, ...], int]
    volume: Indices  # of each use by a pod, sorted
    pod: Indices
    in_tree: tuple[tuple[InTreeDriver, Bools], ...]  # which uses are of volumes of in-tree drivers
    attached: Indices
    attached_to: Indices

    def count(self, view: View) -> Ints:
        """Count the volumes on each node: those of the snapshot, corrected for moved pods."""
        used, (at_first, counts) = self._locate(view, slice(None)), self._begin
        moved = np.zeros(len(self.numbers), np.bool_)
        moved[self.volume[used != at_first]] = True
        if not moved.any():
            return counts
        return counts - self._tally(at_first, moved) + self._tally(used, moved)

    def using(self, view: View, handle: tuple[str, ...]) -> Bools:
        """Tell on which nodes a pod uses this volume."""
        nodes = np.zeros(view.facts.size, np.bool_)
        number = self.numbers.get(handle)
        if number is not None:
            first, last = np.searchsorted(self.volume, [number, number + 1])
            used = self._locate(view, slice(first, last))
            nodes[used[used >= 0]] = True
        return nodes

    @cached_property
    def _begin(self) -> tuple[Indices, Ints]:
        """Find where the uses are in the snapshot, and how many volumes are on each node."""
        used = self._locate(view_snapshot(self.facts), slice(None))
        return used, seal(self._tally(used, np.ones(len(self.numbers), np.bool_)))

    def _locate(self, view: View, uses: slice) -> Indices:
        """Give the node of each use; -1 where it does not count."""
        pods = self.pod[uses]
        nodes = np.where(view.counted[pods], view.node[pods], np.int32(-1))
        for driver, marks in self.in_tree:
            nodes[marks[uses] & ~counts_migrated(view.facts, driver)[nodes]] = -1
        return nodes

    def _tally(self, used: Indices, among: Bools) -> Ints:
        """Count some of the volumes on each node: each once, however many pods use it."""
        uses, attached = (used >= 0) & among[self.volume], among[self.attached]
        volumes = np.concatenate([self.volume[uses], self.attached[attached]]).astype(np.int64)
        nodes = np.concatenate([used[uses], self.attached_to[attached]])
        different = np.unique(volumes * self.facts.size + nodes)
        return np.bincount(different % max(self.facts.size, 1), minlength=self.facts.size)


def find_volume_usage(facts: SnapshotFacts, driver: str) -> VolumeUsage:
    collected = facts.once("volumes in use", lambda: _collect(facts))
    return facts.once(("uses", driver), lambda: _tabulate(facts, collected[driver]))


def list_attachables(
    facts: SnapshotFacts, spec: PodSpec, claims: Iterable[PersistentVolumeClaim]
) -> Iterator[Attachable]:
    """Give the volumes of a pod that count against a driver's limit."""
    yield from _list_claimed(facts, claims)
    yield from _list_inline(spec)


def _list_claimed(facts: SnapshotFacts, claims: Iterable[PersistentVolumeClaim]) -> Iterator[Attachable]:
    return filter(None, (_find_attachable(facts, claim) for claim in claims))


def _list_inline(spec: PodSpec) -> Iterator[Attachable]:
    """Give the in-tree volumes that the pod spec names without a claim."""
    for volume in spec.volumes or ():
        if (moved := find_migrated_volume(volume)) and moved.handle:
            yield _by_csi_driver(moved, moved.handle)


def counts_migrated(facts: SnapshotFacts, driver: InTreeDriver) -> Bools:
    """Tell on which nodes the volumes of an in-tree driver count against the limit of its CSI driver."""
    if facts.version >= _ALWAYS_MIGRATES_PORTWORX or driver is not PORTWORX:
        return facts.once("everywhere", lambda: np.ones(facts.size, np.bool_))
    return find_migrated_nodes(facts, driver)


class _VolumeUse(NamedTuple):
    number: int
    place: int
    in_tree: InTreeDriver | None


class _Collected:
    """The uses of one driver, while they are gathered."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, ...], int] = {}
        self.used: list[_VolumeUse] = []
        self.attached: list[_VolumeUse] = []

    def number(self, handle: tuple[str, ...]) -> int:
        return self.numbers.setdefault(handle, len(self.numbers))


def _collect(facts: SnapshotFacts) -> defaultdict[str, _Collected]:
    found: defaultdict[str, _Collected] = defaultdict(_Collected)
    templates = facts.snapshot.templates.all
    for place in facts.templates_where(_may_attach):
        spec = templates[place].spec
        inline = tuple(_list_inline(spec))
        for pod in facts.pods_of([place]).tolist():
            for each in (*inline, *_list_claimed(facts, _look_up_claims(facts, spec, pod))):
                driver = found[each.driver]
                driver.used.append(_VolumeUse(driver.number(each.handle), pod, each.in_tree))
    _collect_attached(facts, found)
    return found


def _look_up_claims(facts: SnapshotFacts, spec: PodSpec, pod: int) -> Iterator[PersistentVolumeClaim]:
    row, claims = facts.snapshot.pods.rows[pod], facts.snapshot.of(CLAIM)
    names = name_claims(spec, row.own.claims, row.name)
    return filter(None, (claims.named(row.namespace, name) for name, _ in names))


def _collect_attached(facts: SnapshotFacts, found: defaultdict[str, _Collected]) -> None:
    index = facts.snapshot.nodes.index
    for record in facts.snapshot.of(ATTACHMENT):
        node, driver = index.get(record.spec.node_name), record.spec.attacher
        volume = find_volume(facts, record.spec.source.persistent_volume_name)
        if node is not None and driver and volume and volume.spec.csi:
            number = found[driver].number((volume.spec.csi.volume_handle,))
            found[driver].attached.append(_VolumeUse(number, node, None))


def _tabulate(facts: SnapshotFacts, collected: _Collected) -> VolumeUsage:
    used = sorted(collected.used, key=lambda entry: entry.number)
    drivers = dict.fromkeys(entry.in_tree for entry in used if entry.in_tree)
    return VolumeUsage(
        facts=facts,
        numbers=collected.numbers,
        volume=np.array([entry.number for entry in used], np.int32),
        pod=np.array([entry.place for entry in used], np.int32),
        in_tree=tuple(
            (driver, np.array([entry.in_tree == driver for entry in used], np.bool_)) for driver in drivers
        ),
        attached=np.array([entry.number for entry in collected.attached], np.int32),
        attached_to=np.array([entry.place for entry in collected.attached], np.int32),
    )


def _may_attach(template: Template) -> bool:
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or find_migrated_volume(volume)
        for volume in template.spec.volumes or ()
    )


def _find_attachable(facts: SnapshotFacts, claim: PersistentVolumeClaim) -> Attachable | None:
    volume = find_volume(facts, claim.spec.volume_name)
    if volume is None:
        return _expect_attachable(facts, claim)
    if csi := volume.spec.csi:
        return Attachable(csi.driver, (csi.volume_handle,)) if csi.driver and csi.volume_handle else None
    moved = find_migrated_volume(volume.spec, volume.metadata.labels)
    return _by_csi_driver(moved, moved.handle) if moved and moved.handle else None


def _expect_attachable(facts: SnapshotFacts, claim: PersistentVolumeClaim) -> Attachable | None:
    """Give the volume that will be provisioned for an unbound claim."""
    found = find_class(facts, class_of_claim(claim))
    if found is None or not found.provisioner or found.provisioner in UNCOUNTED:
        return None
    handle = (claim.metadata.namespace, claim.metadata.name)
    old = IN_TREE_DRIVERS.get(found.provisioner)
    return Attachable(old.csi_driver if old else found.provisioner, handle, old)


def _by_csi_driver(moved: MigratedVolume, handle: str) -> Attachable:
    return Attachable(moved.driver.csi_driver, (handle,), moved.driver)
