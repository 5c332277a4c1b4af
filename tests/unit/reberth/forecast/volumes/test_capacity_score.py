"""VolumeBinding's score for storage capacity, which counts from 1.37 on."""

import pytest

from reberth.cluster.pods.requests import Version
from reberth.forecast.state.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from reberth.forecast.volumes.binding import score_volume_binding
from tests.support.builders import Object, node, pod
from tests.support.forecast.volumes import ZONE, claim, claimed, csi_driver, near, pool, storage_class, volume
from tests.support.forecast.worlds import asking, everywhere, world

NODES = [node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"})]
A, B = {"matchLabels": {ZONE: "a"}}, {"matchLabels": {ZONE: "b"}}
MADE = [storage_class(), csi_driver(storageCapacity=True)]
LATEST: Version = (1, 37)


def score(
    *objects: Object,
    claims: tuple[str, ...] = ("c",),
    version: Version = LATEST,
    shape: tuple[UtilizationShapePoint, ...] = (),
) -> list[int] | None:
    view = world(*NODES, *objects, pod("asking", volumes=claimed(*claims)), version=version)
    found = score_volume_binding(asking(view), view, everywhere(view), VolumeBindingArgs(shape=shape))
    return None if found is None else found.tolist()


def test_before_1_37_and_without_claims_nothing_is_scored() -> None:
    objects = [claim("c"), *MADE, pool("p", "4Gi", near={})]
    assert score(*objects) == [75, 75]
    assert score(*objects, version=(1, 36)) is None
    assert score(*objects, claims=()) is None


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ([pool("p", "4Gi", near=A), pool("q", "2Gi", near=B)], [75, 50]),
        ([pool("p", "1Gi", near=A), pool("q", "100Gi", near=B)], [0, 99]),
        ([pool("p", "3Gi", near={})], [67, 67]),
        ([pool("p", None, largest="1Gi", near={})], [0, 0]),
        ([pool("p", "1Mi", largest="1Gi", near={})], [0, 0]),
        ([pool("p", "2Gi", near={}), pool("q", "4Gi", near=B)], [50, 50]),
        ([pool("p", "1Mi", near={}), pool("q", "4Gi", near=B)], [0, 75]),
    ],
)
def test_the_emptier_the_room_for_a_new_volume_the_better(pools: list[Object], expected: list[int]) -> None:
    assert score(claim("c"), *MADE, *pools) == expected


def test_new_volumes_of_a_class_share_its_room_and_classes_are_averaged() -> None:
    pools = [pool("p", "8Gi", near={}), pool("q", "4Gi", near={}, storage_class="other")]
    others = [storage_class("other"), claim("e", storage_class="other")]
    objects = [claim("c"), claim("d", size="3Gi"), *MADE, *others, *pools]
    assert score(*objects, claims=("c", "d")) == [50, 50]
    assert score(*objects, claims=("c", "d", "e")) == [63, 63]
    assert score(*objects, claims=("c", "d", "c", "d", "d")) == [0, 0]


def test_a_node_that_takes_an_existing_volume_is_scored_by_that_alone() -> None:
    existing = volume("v", size="2Gi", near=near(ZONE, "a"))
    pools = [pool("p", "10Gi", near={})]
    assert score(claim("c"), *MADE, *pools, existing) == [50, 90]
    assert score(claim("c"), claim("d"), *MADE, *pools, existing, claims=("c", "d")) == [50, 80]


def test_existing_volumes_of_a_class_are_summed_up() -> None:
    volumes = [volume("v", size="2Gi"), volume("w", size="8Gi")]
    objects = [claim("c"), claim("d", size="3Gi"), *MADE, *volumes]
    assert score(*objects, claims=("c", "d")) == [60, 60]


def test_nothing_known_scores_nothing() -> None:
    assert score(claim("c"), storage_class()) == [0, 0]
    assert score(claim("c", volume="v"), volume("v")) == [0, 0]


def test_the_profile_may_prefer_full_storage() -> None:
    shape = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
    assert score(claim("c"), *MADE, pool("p", "4Gi", near={}), shape=shape) == [25, 25]


def test_only_feasible_nodes_are_scored() -> None:
    objects = [claim("c"), *MADE, pool("p", "4Gi", near=A), pool("q", "2Gi", near=B)]
    view = world(*NODES, *objects, pod("asking", volumes=claimed("c")), version=LATEST)
    found = score_volume_binding(asking(view), view, everywhere(view)[1:], VolumeBindingArgs())
    assert found is not None
    assert found.tolist() == [50]
