"""Volumes of in-tree drivers as the CSI drivers that replace them see them (CSI migration).

kube-scheduler: `k8s.io/csi-translation-lib/translate.go`: `(CSITranslator).TranslateInTreePVToCSI`,
`(CSITranslator).TranslateInTreeInlineVolumeToCSI`; `k8s.io/csi-translation-lib/plugins/in_tree_volume.go`:
`translateTopologyFromInTreeToCSI`, `getTopologyLabel`;
`pkg/scheduler/framework/plugins/volumebinding/binder.go`: `isPluginMigratedToCSIOnNode`
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from reberth.cluster.columns import Bools, seal
from reberth.cluster.kinds import CSI_NODE
from reberth.forecast.state.facts import SnapshotFacts
from reberth.records import (
    AzureDiskVolume,
    DiskVolume,
    Labels,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
)

_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION, _OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
_SEVERAL = "__"
_UNKNOWN = "UNSPECIFIED"
_EBS_VOLUME = re.compile(r"vol-[^/]*")


class InTreeDriver(NamedTuple):
    """An in-tree driver, the CSI driver that replaces it, and that driver's topology label for zones."""

    name: str
    csi_driver: str
    zone: str | None = None


class MigratedVolume(NamedTuple):
    """A volume of an in-tree driver, and its CSI volume handle; None if it cannot be translated."""

    driver: InTreeDriver
    handle: str | None


_EBS = InTreeDriver("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
_GCE = InTreeDriver("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
_CINDER = InTreeDriver(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
_AZURE = InTreeDriver("kubernetes.io/azure-disk", "disk.csi.azure.com")
PORTWORX = InTreeDriver("kubernetes.io/portworx-volume", "pxd.portworx.com")

IN_TREE_DRIVERS = {driver.name: driver for driver in (_EBS, _GCE, _CINDER, _AZURE, PORTWORX)}
# CSI drivers replace these, too, but isCSIMigrationOn does not list them: their volumes do not count.
# `pkg/scheduler/framework/plugins/nodevolumelimits/utils.go`: `isCSIMigrationOn`
UNCOUNTED = ("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume")


def find_migrated_volume(
    source: PersistentVolumeSpec | Volume, labels: Labels | None = None
) -> MigratedVolume | None:
    """Translate a PersistentVolume, or a volume of a pod spec, if it is of an in-tree driver."""
    if disk := source.aws_elastic_block_store:
        return MigratedVolume(_EBS, _name_ebs(disk.volume_id or ""))
    if disk := source.gce_persistent_disk:
        return MigratedVolume(_GCE, _name_gce(disk, labels or {}))
    if source.cinder:
        return MigratedVolume(_CINDER, source.cinder.volume_id)
    if source.azure_disk:
        return MigratedVolume(_AZURE, _name_azure(source.azure_disk))
    return MigratedVolume(PORTWORX, source.portworx_volume.volume_id) if source.portworx_volume else None


def find_migrated_nodes(facts: SnapshotFacts, driver: InTreeDriver) -> Bools:
    """Tell on which nodes CSI migration of a driver is on, by the annotation of their CSINodes."""
    return facts.once(("migrated", driver.name), lambda: seal(_ask_nodes(facts, driver)))


def migrate_affinity(volume: PersistentVolume, zone: str) -> NodeSelector | None:
    """Translate a volume's node affinity to the CSI driver's topology label for zones."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    terms = (required.node_selector_terms if required else None) or ()
    old, is_old = _find_zone_label(terms, volume.metadata.labels or {})
    if any(each.key == old and each.values for each in _list_expressions(terms)):
        terms = _rename(terms, old, zone)
    elif zones := _read_zones(volume, old):
        added = NodeSelectorRequirement(zone, "In", zones)
        terms = tuple(
            replace(term, match_expressions=(*(term.match_expressions or ()), added))
            for term in terms or (NodeSelectorTerm(),)
        )
        required = NodeSelector()
    if is_old and any(each.key == _OLD_REGION and each.values for each in _list_expressions(terms)):
        terms = _rename(terms, _OLD_REGION, _REGION)
    return replace(required, node_selector_terms=terms) if required else None


def _find_zone_label(terms: tuple[NodeSelectorTerm, ...], labels: Labels) -> tuple[str, bool]:
    """Find the label by which a volume names its zone: affinity before labels, GA before beta."""
    keys = {each.key for each in _list_expressions(terms)}
    for known in (keys, labels):
        for label in _ZONES:
            if label in known:
                return label, label != _ZONES[0]
    return _ZONES[0], False


def _read_zones(volume: PersistentVolume, label: str) -> tuple[str, ...]:
    zones = {zone.strip() for zone in (volume.metadata.labels or {}).get(label, "").split(_SEVERAL)}
    return tuple(sorted(zones - {""}))


def _rename(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        replace(
            term,
            match_expressions=tuple(
                replace(each, key=new) if each.key == old else each for each in term.match_expressions or ()
            ),
        )
        for term in terms
    )


def _list_expressions(terms: tuple[NodeSelectorTerm, ...]) -> Iterator[NodeSelectorRequirement]:
    for term in terms:
        yield from term.match_expressions or ()


def _ask_nodes(facts: SnapshotFacts, driver: InTreeDriver) -> Bools:
    migrated, index = np.zeros(facts.size, np.bool_), facts.snapshot.nodes.index
    for record in facts.snapshot.of(CSI_NODE):
        said = (record.metadata.annotations or {}).get(_MIGRATED, "").split(",")
        if driver.name in said and record.metadata.name in index:
            migrated[index[record.metadata.name]] = True
    return migrated


def _name_ebs(text: str) -> str | None:
    """Take the volume ID out of aws://zone/volume; a bare volume ID is kept."""
    if not text.startswith("aws://"):
        return text
    volume = text.removeprefix("aws://").partition("/")[2].strip("/")
    return volume if _EBS_VOLUME.fullmatch(volume) else None


def _name_gce(disk: DiskVolume, labels: Labels) -> str | None:
    text = labels.get(_ZONES[1]) or labels.get(_ZONES[0]) or _UNKNOWN
    zones = text.split(_SEVERAL)
    if len(zones) == 1:
        return f"projects/{_UNKNOWN}/zones/{text}/disks/{disk.pd_name}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        return None
    return f"projects/{_UNKNOWN}/regions/{regions.pop()}/disks/{disk.pd_name}"


def _name_azure(disk: AzureDiskVolume) -> str | None:
    return disk.disk_uri if disk.kind is None or disk.kind.lower() == "managed" else None
