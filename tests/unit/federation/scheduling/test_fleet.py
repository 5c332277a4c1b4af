"""Clusters are read once, however often they are asked; room apart."""

from msgspec.structs import replace

from federation.api import ResourceSummary
from federation.scheduling import Fleet
from federation.scheduling.fleet import Member
from reberth.values.quantity import UNIT
from tests.support.federation.clusters import cluster

PODS: tuple[tuple[str, int], ...] = ()
TAKEN = {"m1": {"pods": 3 * UNIT}}


def test_replicas_under_way_take_capacity_and_change_no_other_column() -> None:
    asked: list[str] = []

    def ask(member: Member, _about: str) -> str:
        asked.append(member.name)
        return member.name

    fleet = Fleet([cluster("m1", 10), cluster("m2", 10)])
    fleet.column(ask, "x")
    assert fleet.estimate(PODS) == (10, 10)
    fuller = fleet.less(TAKEN)
    assert (fuller.estimate(PODS), fleet.estimate(PODS)) == ((7, 10), (10, 10))
    assert fuller.column(ask, "x") == ("m1", "m2")
    assert asked == ["m1", "m2"]


def test_where_nothing_is_on_its_way_nothing_is_made() -> None:
    fleet = Fleet([cluster("m1", 10)])
    assert fleet.less({}) is fleet
    assert fleet.less({"m1": {}, "gone": {"pods": 1}}) is fleet


def test_more_than_there_is_leaves_no_room() -> None:
    assert Fleet([cluster("m1", 2)]).less(TAKEN).estimate(PODS) == (0,)


def test_only_changed_clusters_are_read_again() -> None:
    same, other = cluster("m1", 10), cluster("m2", 10)
    before = Fleet([same, other])
    after = Fleet([cluster("m2", 5), same, cluster("m3", 1)], before=before)
    assert after.members[0] is before.members[0]
    assert [member.name for member in after.members] == ["m1", "m2", "m3"]
    assert after.estimate(PODS) == (10, 5, 1)


def test_a_cluster_whose_room_cannot_be_read_has_none_and_the_others_keep_theirs() -> None:
    odd = cluster("m2", 5)
    summary = ResourceSummary(allocatable={"pods": "1e1.5"})
    odd = replace(odd, status=replace(odd.status, resource_summary=summary))
    fleet = Fleet([cluster("m1", 10), odd, cluster("m3", 1)])
    assert fleet.estimate(PODS) == (10, 0, 1)
    (fault,) = fleet.faults
    assert "Cluster" in str(fault)
    assert "m2" in str(fault)
    assert "status.resourceSummary" in str(fault)
    assert Fleet([odd], before=fleet).faults == (fault,)
    assert Fleet([cluster("m2", 5)], before=fleet).faults == ()
