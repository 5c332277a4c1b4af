"""VolumeZone: volumes whose labels name their zone."""

import pytest

from reberth.forecast.state.verdict import FITS, Refusal, Rejected
from reberth.forecast.volumes.zone import filter_volume_zone
from tests.support.builders import node, pod
from tests.support.forecast.volumes import ZONE, claim, claimed, ephemeral, storage_class, volume
from tests.support.forecast.worlds import asking, refused, world

REGION = "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ELSEWHERE = ["node(s) had no available volume zone"]
NODES = [
    node("a", labels={ZONE: "a", REGION: "r"}),
    node("b", labels={ZONE: "b", REGION: "r"}),
    node("old", labels={OLD_ZONE: "a"}),
    node("region", labels={REGION: "r"}),
    node("bare", labels={"any": "thing"}),
]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({}, ""),
        ({"any": "thing"}, ""),
        ({ZONE: "a"}, "b old region"),
        ({ZONE: "a__ b"}, "old region"),
        ({ZONE: "a__"}, ""),
        ({ZONE: "a", REGION: "r"}, "b old region"),
        ({OLD_ZONE: "a"}, "b region"),
        ({OLD_ZONE: "b", ZONE: "a"}, "a b old region"),
        ({REGION: "r"}, "old"),
        ({OLD_REGION: "r"}, "old"),
        ({OLD_REGION: "s"}, "a b old region"),
        ({ZONE: ""}, ""),
    ],
)
def test_a_node_that_names_a_zone_must_have_that_of_the_volume(labels: dict[str, str], names: str) -> None:
    view = world(
        *NODES, claim("c", volume="v"), volume("v", labels=labels), pod("asking", volumes=claimed("c"))
    )
    verdict = filter_volume_zone(asking(view), view)
    assert refused(view, verdict) == dict.fromkeys(names.split(), ELSEWHERE)
    assert [refusal.final for refusal in verdict if type(refusal) is Refusal] == [True] * bool(names)


def test_all_volumes_of_a_pod_must_be_there() -> None:
    view = world(
        *NODES,
        *(claim(name, volume=name) for name in "vw"),
        volume("v", labels={ZONE: "a"}),
        volume("w", labels={ZONE: "b"}),
        pod("asking", volumes=claimed("v", "w")),
    )
    expected = dict.fromkeys(["a", "b", "old", "region"], ELSEWHERE)
    assert refused(view, filter_volume_zone(asking(view), view)) == expected


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c", volume="v")], 'persistentvolume "v" not found'),
        ([claim("c", storage_class=None)], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("c")], 'storageclass.storage.k8s.io "wait" not found'),
        (
            [claim("c"), storage_class(mode=None)],
            'VolumeBindingMode not set for StorageClass "wait"',
        ),
        ([claim("c"), storage_class(mode="Immediate")], "PersistentVolume had no name"),
    ],
)
def test_a_pod_with_a_missing_volume_is_rejected(storage: list[dict[str, str]], reason: str) -> None:
    view = world(*NODES, *storage, pod("asking", volumes=claimed("c")))
    assert filter_volume_zone(asking(view), view) == Rejected(reason)


def test_wait_for_first_consumer_claims_and_ephemeral_volumes_are_skipped() -> None:
    volumes = [*claimed("c"), *ephemeral("e")]
    view = world(*NODES, claim("c"), storage_class(), pod("asking", volumes=volumes), pod("plain"))
    assert filter_volume_zone(asking(view), view) == FITS
    assert filter_volume_zone(asking(view, "plain"), view) == FITS


def test_the_class_may_stand_in_an_annotation() -> None:
    annotations = {"volume.beta.kubernetes.io/storage-class": "wait"}
    view = world(
        *NODES,
        claim("c", storage_class=None, annotations=annotations),
        storage_class(),
        pod("asking", volumes=claimed("c")),
    )
    assert filter_volume_zone(asking(view), view) == FITS
