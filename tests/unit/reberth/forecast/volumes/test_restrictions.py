"""VolumeRestrictions: disks named by two pods, and ReadWriteOncePod claims."""

from typing import Any

import pytest

from reberth.forecast.state.verdict import FITS, Rejected
from reberth.forecast.volumes.restrictions import filter_volume_restrictions
from tests.support.builders import Object, node, pod
from tests.support.forecast.volumes import claim, claimed
from tests.support.forecast.worlds import asking, next_of, place_of, refused, world

DISK = "node(s) had no available disk"
ALONE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use"
    " by another pod"
)
NODES = [node("n1"), node("n2")]


def gce(name: str = "d", *, read_only: bool = False) -> Object:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str = "d", *, read_only: bool = False) -> Object:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str = "d", *, read_only: bool = False, lun: int = 0, portal: str = "p") -> Object:
    return {"iscsi": {"targetPortal": portal, "iqn": iqn, "lun": lun, "readOnly": read_only}}


def rbd(*monitors: str, image: str = "d", pool: str = "rbd", read_only: bool = False) -> Object:
    return {"rbd": {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}}


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        (gce(), gce(), True),
        (gce(read_only=True), gce(), True),
        (gce(), gce(read_only=True), True),
        (gce(read_only=True), gce(read_only=True), False),
        (gce(), gce("other"), False),
        (gce(), ebs(), False),
        (ebs(), ebs(), True),
        (ebs(read_only=True), ebs(read_only=True), True),
        (ebs(), ebs("other"), False),
        (iscsi(), iscsi(lun=7, portal="elsewhere"), True),
        (iscsi(read_only=True), iscsi(read_only=True), False),
        (iscsi(), iscsi("other"), False),
        (rbd("m1", "m2"), rbd("m2", "m3"), True),
        (rbd("m1", "m2", read_only=True), rbd("m2"), True),
        (rbd("m1", read_only=True), rbd("m1", read_only=True), False),
        (rbd("m1"), rbd("m2"), False),
        (rbd("m1"), rbd("m1", image="other"), False),
        (rbd("m1"), rbd("m1", pool="other"), False),
    ],
)
def test_a_disk_is_shared_only_by_pods_that_read_it(mine: Object, theirs: Object, *, conflict: bool) -> None:
    view = world(
        *NODES,
        pod("there", node="n1", volumes=[{"name": "x", **theirs}]),
        pod("asking", volumes=[{"name": "y", **mine}]),
    )
    assert refused(view, filter_volume_restrictions(asking(view), view)) == (
        {"n1": [DISK]} if conflict else {}
    )


def test_a_pod_that_mounts_a_disk_twice_reads_it_only_if_it_does_so_both_times() -> None:
    twice = [{"name": "x", **gce(read_only=True)}, {"name": "y", **gce()}]
    view = world(
        *NODES,
        pod("there", node="n1", volumes=twice),
        pod("asking", volumes=[{"name": "x", **gce(read_only=True)}]),
    )
    assert refused(view, filter_volume_restrictions(asking(view), view)) == {"n1": [DISK]}


def test_a_disk_follows_planned_moves_and_is_free_where_its_pod_is_gone_or_finished() -> None:
    disk = [{"name": "x", **gce()}]
    view = world(
        *NODES,
        pod("there", node="n1", volumes=disk),
        pod("done", node="n2", phase="Succeeded", volumes=disk),
        pod("asking", volumes=disk),
    )
    there, asked = place_of(view, "there"), asking(view)
    assert refused(view, filter_volume_restrictions(asked, view.with_pod_on(there, 1))) == {"n2": [DISK]}
    assert filter_volume_restrictions(asked, view.without(there)) == FITS
    assert refused(view, filter_volume_restrictions(asked, view.with_terminating(there))) == {"n1": [DISK]}


def test_a_read_write_once_pod_claim_in_use_blocks_every_node() -> None:
    view = world(
        *NODES,
        claim("c", access=("ReadWriteOncePod",)),
        pod("there", node="n1", volumes=claimed("c")),
    )
    there, asked = place_of(view, "there"), next_of(view, "there")
    everywhere = {"n1": [ALONE], "n2": [ALONE]}
    assert refused(view, filter_volume_restrictions(asked, view)) == everywhere
    assert refused(view, filter_volume_restrictions(asked, view.with_terminating(there))) == everywhere
    assert filter_volume_restrictions(asked, view.without(there)) == FITS


@pytest.mark.parametrize(
    "others",
    [
        [claim("c", access=("ReadWriteOnce",)), pod("there", node="n1", volumes=claimed("c"))],
        [claim("c", access=("ReadWriteOncePod",)), pod("there", volumes=claimed("c"))],
        [claim("c", access=("ReadWriteOncePod",)), pod("there", node="gone", volumes=claimed("c"))],
        [
            claim("c", access=("ReadWriteOncePod",)),
            claim("c", namespace="far"),
            pod("there", namespace="far", node="n1", volumes=claimed("c")),
        ],
        [
            claim("c", access=("ReadWriteOncePod",)),
            claim("d", access=("ReadWriteOncePod",)),
            pod("there", node="n1", volumes=claimed("d")),
        ],
    ],
    ids=["shared", "waiting", "on no known node", "in another namespace", "another claim"],
)
def test_a_read_write_once_pod_claim_is_free_while_no_pod_uses_it(others: list[Any]) -> None:
    view = world(*NODES, *others, pod("asking", volumes=claimed("c")))
    assert filter_volume_restrictions(asking(view), view) == FITS


def test_a_node_with_the_disk_is_refused_for_the_disk_alone() -> None:
    both = [*claimed("c"), {"name": "x", **gce()}]
    view = world(
        *NODES,
        claim("c", access=("ReadWriteOncePod",)),
        pod("there", node="n1", volumes=both),
        pod("asking", volumes=both),
    )
    verdict = filter_volume_restrictions(asking(view), view)
    assert refused(view, verdict) == {"n1": [DISK], "n2": [ALONE]}
    assert type(verdict) is tuple
    assert not any(refusal.final for refusal in verdict)


def test_a_pod_with_a_missing_claim_is_rejected() -> None:
    view = world(*NODES, claim("c"), pod("asking", volumes=claimed("c", "gone", "lost")))
    expected = Rejected('persistentvolumeclaim "gone" not found')
    assert filter_volume_restrictions(asking(view), view) == expected


def test_a_pod_without_volumes_is_not_looked_at() -> None:
    view = world(*NODES, pod("asking"))
    assert filter_volume_restrictions(asking(view), view) is FITS


def test_no_nodes_are_no_trouble() -> None:
    view = world(
        pod("asking", volumes=[{"name": "x", **gce()}]), pod("there", volumes=[{"name": "x", **gce()}])
    )
    assert filter_volume_restrictions(asking(view), view) == FITS
