"""While too many members seem to be lost, nobody is driven out of any."""

import pytest
from msgspec.structs import replace

from federation.api import Cluster
from federation.membership.loss_brake import LossBrake, find_brake
from federation.membership.lost_members import NOT_READY, change_taints, find_loss, list_taints
from reberth.values.timestamp import write_time
from tests.support.federation.objects import NOW, bare_cluster

AFTER, LONGEST = 300.0, 3600.0


def member(
    name: str,
    *,
    lost: float | None = None,
    ready: float | None = None,
    age: float = 9e5,
    surveyed: float | None = None,
) -> Cluster:
    """Lost, or Ready, since so many seconds before NOW; its APIs were read first `surveyed` seconds ago."""
    status, reason, ago = (
        ("False", "ClusterNotReachable", lost) if lost is not None else ("True", "ClusterReady", ready or 9e4)
    )
    conditions = [write_condition("Ready", status, reason, ago)]
    if surveyed is not None:
        conditions.append(write_condition("CompleteAPIEnablements", "True", "AllAPIsAnswer", surveyed))
    one = bare_cluster(name, status={"conditions": conditions})
    return replace(one, metadata=replace(one.metadata, creation_timestamp=write_time(NOW - age)))


def write_condition(kind: str, status: str, reason: str, ago: float) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": write_time(NOW - ago)}


def brake(*members: Cluster, now: float = NOW, fraction: float = 0.55) -> LossBrake:
    return find_brake(members, fraction=fraction, longest=LONGEST, now=now)


@pytest.mark.parametrize(
    ("lost", "members", "fraction", "is_on"),
    [
        (0, 3, 0.55, False),
        (1, 3, 0.55, False),
        (2, 3, 0.55, True),
        (1, 2, 0.55, False),
        (1, 1, 0.55, True),
        (11, 20, 0.55, False),
        (12, 20, 0.55, True),
        (3, 3, 1.0, False),
        (0, 0, 0.55, False),
    ],
)
def test_the_brake_is_on_above_a_fraction(lost: int, members: int, fraction: float, *, is_on: bool) -> None:
    fleet = [member(f"m{number}", lost=9 if number < lost else None) for number in range(members)]
    found = brake(*fleet, fraction=fraction)
    assert (found.is_on, found.lost, found.members) == (is_on, lost, members)


def test_a_cluster_that_is_deleted_does_not_count() -> None:
    leaving = member("m3", lost=9)
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp=write_time(NOW)))
    assert not brake(member("m1"), member("m2", lost=9), leaving).is_on


def test_while_it_is_on_taints_of_losses_go_and_others_stay() -> None:
    mine, out = {"key": "mine", "effect": "NoExecute"}, {"key": NOT_READY, "effect": "NoExecute"}
    one = bare_cluster(
        spec={"taints": [mine, out]},
        status={
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "ClusterNotReachable",
                    "lastTransitionTime": write_time(NOW - 900),
                }
            ]
        },
    )
    found = brake(one)
    change = change_taints(one, lost_after=AFTER, now=NOW, brake=found)
    assert change is not None
    assert change["spec"]["taints"] == [mine, {"key": NOT_READY, "effect": "NoSchedule"}]


def test_two_of_three_that_are_lost_for_good_are_driven_out_after_the_bound() -> None:
    fleet = (member("m1"), member("m2", lost=2000), member("m3", lost=1000))
    found = brake(*fleet)
    assert found.until == NOW - 1000 + LONGEST
    late = brake(*fleet, now=found.until)
    assert not late.is_on
    assert find_loss(fleet[1].status.conditions, AFTER, late) == found.until + AFTER


def test_the_time_of_a_loss_begins_anew_when_the_brake_ends() -> None:
    fleet = (member("m1", ready=20), member("m2", ready=10), member("m3", lost=1000))
    found = brake(*fleet)
    assert (found.is_on, found.counted_from) == (False, NOW - 10)
    assert find_loss(fleet[2].status.conditions, AFTER, found) == NOW - 10 + AFTER


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(
            [member("m1", ready=20, age=30), member("m2", ready=10, age=25)], id="members that join"
        ),
        pytest.param(
            [member("m1", ready=20, age=30, surveyed=20), member("m2", ready=10, age=25, surveyed=9)],
            id="members that join, and what they serve is known then",
        ),
        pytest.param([member("m1"), member("m2")], id="members that were well"),
        pytest.param([member("m1"), member("m2", ready=2000)], id="a member that was back before"),
    ],
)
def test_what_was_no_storm_does_not_change_the_time_of_a_loss(others: list[Cluster]) -> None:
    one = member("m3", lost=1000)
    assert find_loss(one.status.conditions, AFTER, brake(one, *others)) == NOW - 1000 + AFTER


def test_young_members_that_were_cut_off_count_as_members_that_come_back() -> None:
    """Their APIs were known before they were Ready for this time: they have been Ready before."""
    young = [member(f"m{number}", ready=10 * number, age=200, surveyed=190) for number in (1, 2)]
    found = brake(*young, member("m3", lost=150, age=200, surveyed=190))
    assert (found.is_on, found.counted_from) == (False, NOW - 10)


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_members_that_are_all_cut_off_and_mended_one_by_one_are_never_tainted(count: int) -> None:
    """All are lost at NOW for twice the time, and come back 10 s apart, in any order of their names."""
    for now in range(0, int(2 * AFTER) + 10 * count, 5):
        back = [2 * AFTER + 10 * number for number in range(count)]
        fleet = [
            member(f"m{number}", ready=-at) if now >= at else member(f"m{number}", lost=0.0)
            for number, at in enumerate(back)
        ]
        found = brake(*fleet, now=NOW + now)
        for each in fleet:
            taints = list_taints(each, lost_after=AFTER, now=NOW + now, brake=found)
            assert all(taint.effect == "NoSchedule" for taint in taints), now
