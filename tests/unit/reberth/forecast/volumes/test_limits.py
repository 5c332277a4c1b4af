"""NodeVolumeLimits: how many volumes of a driver a node can attach."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reberth.cluster.pods.requests import Version
from reberth.forecast.state.verdict import FITS, Refusal
from reberth.forecast.state.view import View
from reberth.forecast.volumes.limits import filter_node_volume_limits
from tests.support.builders import Object, node, owner, pod
from tests.support.forecast.volumes import (
    DRIVER,
    attachment,
    claim,
    claimed,
    csi_driver,
    csi_node,
    ephemeral,
    owned,
    storage_class,
    volume,
)
from tests.support.forecast.worlds import asking, next_of, place_of, refused, world

FULL = ["node(s) exceed max volume count"]
NODES = [node("n1"), node("n2"), csi_node("n1", disk__example=1)]
EBS, EBS_DRIVER = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
PORTWORX = "kubernetes.io/portworx-volume"


def bound(*names: str) -> list[Object]:
    """Claims with volumes of their names."""
    return [each for name in names for each in (claim(name, volume=name), volume(name))]


def judge(view: View, name: str = "asking") -> dict[str, list[str]]:
    return refused(view, filter_node_volume_limits(asking(view, name), view))


def test_a_node_takes_as_many_volumes_as_its_driver_can_attach() -> None:
    view = world(
        *NODES,
        *bound("a", "b", "c"),
        pod("there", node="n1", volumes=claimed("a")),
        pod("there-too", node="n2", volumes=claimed("b")),
        pod("asking", volumes=claimed("c")),
    )
    verdict = filter_node_volume_limits(asking(view), view)
    assert refused(view, verdict) == {"n1": FULL}
    assert [refusal.final for refusal in verdict if type(refusal) is Refusal] == [False]


@pytest.mark.parametrize(
    "others",
    [
        [pod("there", node="n1", volumes=claimed("asked"))],
        [pod("there", node="n1", phase="Failed", volumes=claimed("a")), *bound("a")],
        [pod("there", volumes=claimed("a")), *bound("a")],
        [pod("there", node="n1", volumes=claimed("gone"))],
        [pod("there", node="n1", volumes=claimed("a")), claim("a", volume="a"), volume("a", nfs={})],
        [pod("there", node="n1", volumes=claimed("a")), claim("a", storage_class=None)],
        [pod("there", node="n1", volumes=claimed("a")), claim("a", storage_class="unknown")],
        [
            pod("there", node="n1", volumes=claimed("a")),
            claim("a", volume="a"),
            volume("a", csi={"driver": DRIVER, "volumeHandle": ""}),
        ],
        [
            pod("there", node="n1", volumes=claimed("a")),
            claim("a", volume="a"),
            volume("a", csi={"driver": "other.example", "volumeHandle": "a"}),
        ],
        [
            attachment("asked", "n2"),
            attachment(None, "n1"),
            attachment("gone", "n1"),
            attachment("asked", "x"),
        ],
        [attachment("a", "n1", attacher=""), attachment("b", "n1"), volume("a"), volume("b", nfs={})],
    ],
)
def test_volumes_that_do_not_count_leave_room(others: list[Any]) -> None:
    view = world(*NODES, *bound("asked"), *others, pod("asking", volumes=claimed("asked")))
    assert judge(view) == {}


@pytest.mark.parametrize(
    "others",
    [
        [pod("there", node="n1", deleted="2026-11-18T09:15:31Z", volumes=claimed("a")), *bound("a")],
        [pod("there", node="n1", volumes=claimed("a")), claim("a"), storage_class()],
        [pod("there", node="n1", volumes=claimed("a")), claim("a", volume="gone"), storage_class()],
        [attachment("a", "n1"), volume("a")],
        [attachment("asked", "n1")],
        [pod("there", node="n1", volumes=ephemeral("e")), *bound("there-e")],
    ],
    ids=["leaving", "waiting", "volume gone", "still attached", "itself attached", "ephemeral"],
)
def test_volumes_that_count_use_up_the_limit(others: list[Any]) -> None:
    view = world(*NODES, *bound("asked"), *others, pod("asking", volumes=claimed("asked")))
    assert judge(view) == {"n1": FULL}


def test_new_volumes_are_counted_once_and_must_fit_together() -> None:
    view = world(
        *NODES,
        *bound("a", "b"),
        claim("again", volume="a"),
        pod("asking", volumes=claimed("a", "b")),
        pod("careful", volumes=claimed("a", "a", "again")),
    )
    assert judge(view) == {"n1": FULL}
    assert judge(view, "careful") == {}


def test_the_volumes_of_a_pod_follow_planned_moves_but_stay_attached() -> None:
    view = world(
        *NODES,
        csi_node("n2", disk__example=1),
        *bound("a", "b"),
        attachment("a", "n1"),
        pod("there", node="n1", volumes=claimed("a")),
        pod("asking", volumes=claimed("b")),
    )
    moved = view.with_pod_on(place_of(view, "there"), 1)
    assert judge(view) == {"n1": FULL}
    assert refused(moved, filter_node_volume_limits(asking(moved), moved)) == {"n1": FULL, "n2": FULL}
    own = next_of(view, "there")
    assert refused(view, filter_node_volume_limits(own, view)) == {}
    gone = view.without(place_of(view, "there"))
    assert refused(gone, filter_node_volume_limits(own, gone)) == {"n1": FULL}


def test_each_driver_has_a_limit_of_its_own_or_none() -> None:
    view = world(
        node("n1"),
        node("n2"),
        csi_node("n1", disk__example=1, share__example=0, free__example=None),
        csi_node("n2", disk__example=0, share__example=1),
        csi_node("gone", disk__example=0),
        *bound("a"),
        claim("b", volume="b"),
        volume("b", csi={"driver": "share.example", "volumeHandle": "b"}),
        claim("c", volume="c"),
        volume("c", csi={"driver": "free.example", "volumeHandle": "c"}),
        pod("disk", volumes=claimed("a")),
        pod("share", volumes=claimed("b")),
        pod("free", volumes=claimed("c")),
        pod("all", volumes=claimed("a", "b", "c")),
    )
    assert judge(view, "disk") == {"n2": FULL}
    assert judge(view, "share") == {"n1": FULL}
    assert judge(view, "free") == {}
    assert judge(view, "all") == {"n1": FULL, "n2": FULL}


def test_a_missing_claim_refuses_every_node() -> None:
    view = world(*NODES, pod("asking", volumes=claimed("gone")))
    verdict = filter_node_volume_limits(asking(view), view)
    said = ['looking up PVC default/gone: persistentvolumeclaim "gone" not found']
    assert refused(view, verdict) == {"n1": said, "n2": said}
    assert [refusal.final for refusal in verdict if type(refusal) is Refusal] == [True]


def test_the_next_pod_brings_a_new_ephemeral_volume() -> None:
    view = world(
        *NODES,
        storage_class(),
        claim("old-e", volume="old", owned_by=owner("Pod", "old", uid="old")),
        volume("old", claimRef=owned("old-e")),
        pod("old", uid="old", node="n1", volumes=ephemeral("e", storageClassName="wait")),
    )
    assert refused(view, filter_node_volume_limits(next_of(view, "old"), view)) == {"n1": FULL}
    gone = view.without(place_of(view, "old"))
    assert refused(gone, filter_node_volume_limits(next_of(gone, "old"), gone)) == {}


@pytest.mark.parametrize(("version", "migrated"), [((1, 36), None), ((1, 35), None), ((1, 35), f"x,{EBS}")])
@pytest.mark.parametrize(
    "old",
    [
        [volume("a", awsElasticBlockStore={"volumeID": "aws://zone/vol-1"})],
        [volume("a", awsElasticBlockStore={"volumeID": "vol-1"})],
    ],
)
def test_volumes_of_an_old_driver_count_for_its_successor(
    version: Version, migrated: str | None, old: list[Object]
) -> None:
    view = world(
        node("n1"),
        csi_node("n1", migrated=migrated, ebs__csi__aws__com=1),
        claim("a", volume="a"),
        *old,
        claim("b", volume="b"),
        volume("b", csi={"driver": EBS_DRIVER, "volumeHandle": "vol-2"}),
        claim("same", volume="same"),
        volume("same", csi={"driver": EBS_DRIVER, "volumeHandle": "vol-1"}),
        pod("there", node="n1", volumes=claimed("a")),
        pod("asking", volumes=claimed("b")),
        pod("alike", volumes=claimed("same")),
        version=version,
    )
    assert judge(view) == {"n1": FULL}
    assert judge(view, "alike") == {}


@pytest.mark.parametrize(
    ("version", "migrated", "expected"),
    [((1, 36), None, {"n1": FULL}), ((1, 35), None, {}), ((1, 35), PORTWORX, {"n1": FULL})],
)
def test_portworx_volumes_counted_only_on_migrated_nodes_before_1_36(
    version: Version, migrated: str | None, expected: dict[str, list[str]]
) -> None:
    view = world(
        node("n1"),
        node("n2"),
        csi_node("n1", migrated=migrated, pxd__portworx__com=0),
        pod("asking", volumes=[{"name": "x", "portworxVolume": {"volumeID": "vol-1"}}]),
        version=version,
    )
    assert judge(view) == expected


@pytest.mark.parametrize(
    ("provisioner", "driver", "expected"),
    [
        (EBS, "ebs__csi__aws__com", {"n1": FULL}),
        ("kubernetes.io/azure-file", "file__csi__azure__com", {}),
        ("kubernetes.io/vsphere-volume", "kubernetes__io/vsphere-volume", {}),
        ("other.example", "other__example", {"n1": FULL}),
        ("other.example", "disk__example", {}),
    ],
)
def test_a_claim_without_a_volume_counts_for_the_driver_of_its_class(
    provisioner: str, driver: str, expected: dict[str, list[str]]
) -> None:
    view = world(
        node("n1"),
        csi_node("n1", **{driver: 0}),
        claim("c"),
        storage_class(provisioner=provisioner),
        pod("asking", volumes=claimed("c")),
    )
    assert judge(view) == expected


@pytest.mark.parametrize(
    ("version", "demands", "expected"),
    [
        ((1, 36), True, {"n1": FULL}),
        ((1, 37), None, {"n1": FULL}),
        ((1, 37), False, {"n1": FULL}),
        ((1, 37), True, {"n1": FULL, "n2": ["lacking"], "n3": ["lacking"]}),
    ],
)
def test_since_1_37_a_driver_may_be_required_on_the_node(
    version: Version, expected: dict[str, list[str]], *, demands: bool | None
) -> None:
    view = world(
        *(node(name) for name in ("n1", "n2", "n3")),
        csi_node("n1", disk__example=0),
        csi_node("n2", other__example=0),
        csi_driver(preventPodSchedulingIfMissing=demands),
        *bound("a"),
        pod("asking", volumes=claimed("a")),
        version=version,
    )
    lacking = f"{DRIVER} CSI driver is not installed on the node"
    wanted = {name: [lacking] if said == ["lacking"] else said for name, said in expected.items()}
    assert judge(view) == wanted


def test_an_in_tree_volume_needs_no_driver_on_a_node_without_csi_node() -> None:
    view = world(
        node("n1"),
        node("n2"),
        csi_node("n1", other__example=0),
        csi_driver(EBS_DRIVER, preventPodSchedulingIfMissing=True),
        pod("asking", volumes=[{"name": "x", "awsElasticBlockStore": {"volumeID": "vol-1"}}]),
        version=(1, 37),
    )
    assert judge(view) == {"n1": [f"{EBS_DRIVER} CSI driver is not installed on the node"]}


def test_pods_without_volumes_that_attach_fit_everywhere() -> None:
    view = world(*NODES, pod("asking"), pod("empty", volumes=[{"name": "x", "emptyDir": {}}]))
    assert filter_node_volume_limits(asking(view), view) is FITS
    assert filter_node_volume_limits(asking(view, "empty"), view) == FITS


VOLUMES = tuple("abcdef")
holders = st.lists(
    st.tuples(st.sampled_from(["n1", "n2", None]), st.lists(st.sampled_from(VOLUMES), max_size=3)), max_size=6
)
attached = st.sets(st.tuples(st.sampled_from(VOLUMES), st.sampled_from(["n1", "n2"])), max_size=6)


@settings(max_examples=150, deadline=None)
@given(holders, attached, st.lists(st.sampled_from(VOLUMES), min_size=1, max_size=3), st.integers(0, 6))
def test_volume_limits_agree_with_the_definition(
    pods: list[tuple[str | None, list[str]]], left: set[tuple[str, str]], mine: list[str], limit: int
) -> None:
    view = world(
        node("n1"),
        node("n2"),
        *(csi_node(name, disk__example=limit) for name in ("n1", "n2")),
        *bound(*VOLUMES),
        *(attachment(name, at) for name, at in sorted(left)),
        *(pod(f"p{i}", node=at, volumes=claimed(*names)) for i, (at, names) in enumerate(pods)),
        pod("asking", volumes=claimed(*mine)),
    )
    used: defaultdict[str | None, set[str]] = defaultdict(set)
    for at, names in pods:
        used[at].update(names)
    full = set()
    for name in ("n1", "n2"):
        new = set(mine) - used[name]
        others = used[name] | {volume_name for volume_name, at in left if at == name}
        if new and len(others) + len(new) > limit:
            full.add(name)
    assert judge(view).keys() == full
