"""CSI migration: volumes of in-tree drivers, as their CSI drivers see them."""

import pytest

from reberth.forecast.volumes.csi_migration import find_migrated_volume, migrate_affinity
from reberth.records import PersistentVolume
from tests.support.builders import Object, as_record
from tests.support.forecast.volumes import ZONE, near, volume

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION, OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
GKE = "topology.gke.io/zone"


def record(**fields: object) -> PersistentVolume:
    return as_record(PersistentVolume, volume("v", **fields))


@pytest.mark.parametrize(
    ("source", "labels", "driver", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, None, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}, None, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1/"}}, None, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/disk-1"}}, None, "ebs.csi.aws.com", None),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            None,
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {OLD_ZONE: "us-east1-b", ZONE: "us-east1-c"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/us-east1-b/disks/d",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-east1-b__us-east1-c"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/regions/us-east1/disks/d",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-east1-b__us-east2-c"},
            "pd.csi.storage.gke.io",
            None,
        ),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "east__west"}, "pd.csi.storage.gke.io", None),
        ({"cinder": {"volumeID": "d"}}, None, "cinder.csi.openstack.org", "d"),
        ({"azureDisk": {"diskURI": "d"}}, None, "disk.csi.azure.com", "d"),
        ({"azureDisk": {"diskURI": "d", "kind": "managed"}}, None, "disk.csi.azure.com", "d"),
        ({"azureDisk": {"diskURI": "d", "kind": "Shared"}}, None, "disk.csi.azure.com", None),
        ({"portworxVolume": {"volumeID": "d"}}, None, "pxd.portworx.com", "d"),
    ],
)
def test_a_csi_driver_has_a_handle_for_a_migrated_volume(
    source: Object, labels: dict[str, str] | None, driver: str, handle: str | None
) -> None:
    found = record(**source)
    moved = find_migrated_volume(found.spec, labels)
    assert moved is not None
    assert (moved.driver.csi_driver, moved.handle) == (driver, handle)


def test_other_volumes_have_no_old_driver() -> None:
    assert find_migrated_volume(record().spec) is None
    assert find_migrated_volume(record(nfs={}).spec) is None


def term(*requirements: Object) -> Object:
    return {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}


def within(key: str, *values: str) -> Object:
    return {"key": key, "operator": "In", "values": list(values)}


ANY_ZONE = {"key": ZONE, "operator": "Exists"}
OLD_PART = within(OLD_REGION, "r")


@pytest.mark.parametrize(
    ("labels", "before", "after"),
    [
        ({}, None, None),
        ({}, near(ZONE, "a"), near(GKE, "a")),
        ({}, near(OLD_ZONE, "a"), near(GKE, "a")),
        ({ZONE: "z"}, near(ZONE, "a"), near(GKE, "a")),
        ({ZONE: "b__a"}, None, near(GKE, "a", "b")),
        ({OLD_ZONE: "a"}, None, near(GKE, "a")),
        ({OLD_ZONE: "x", ZONE: "a"}, None, near(GKE, "a")),
        ({ZONE: " __"}, None, None),
        ({ZONE: "a"}, term(within("rack", "r")), term(within("rack", "r"), within(GKE, "a"))),
        ({ZONE: "a"}, term(ANY_ZONE), term(ANY_ZONE, within(GKE, "a"))),
        ({}, term(within(OLD_ZONE, "a"), OLD_PART), term(within(GKE, "a"), within(REGION, "r"))),
        ({}, term(within(ZONE, "a"), OLD_PART), term(within(GKE, "a"), OLD_PART)),
        ({}, {"nodeSelectorTerms": []}, {"nodeSelectorTerms": []}),
        ({ZONE: "a"}, {"nodeSelectorTerms": []}, near(GKE, "a")),
    ],
)
def test_a_csi_driver_has_its_own_topology_label(
    labels: dict[str, str], before: Object | None, after: Object | None
) -> None:
    found = record(labels=labels, near=before, gcePersistentDisk={"pdName": "d"})
    expected = record(near=after).spec.node_affinity
    assert migrate_affinity(found, GKE) == (expected.required if expected else None)
