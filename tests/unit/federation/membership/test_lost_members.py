from typing import Any

import pytest

from federation.api import Cluster
from federation.membership.lost_members import NOT_READY, change_taints, find_loss, list_taints
from reberth.values.timestamp import write_time
from tests.support.federation.objects import NOW, bare_cluster

HOUR = 3600.0


def member(
    status: str = "False", reason: str = "ClusterNotReachable", *, ago: float = 60.0, **spec: Any
) -> Cluster:
    ready = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "lastTransitionTime": write_time(NOW - ago),
    }
    return bare_cluster(status={"conditions": [ready]}, spec=spec)


def effects(one: Cluster, lost_after: float | None) -> list[str]:
    return [each.effect for each in list_taints(one, lost_after=lost_after, now=NOW)]


@pytest.mark.parametrize(
    ("one", "lost_after", "wanted"),
    [
        (bare_cluster(), 0.0, []),
        (member("True", "ClusterReady"), 0.0, []),
        (member(), None, ["NoSchedule"]),
        (member(), 61.0, ["NoSchedule"]),
        (member(), 60.0, ["NoSchedule", "NoExecute"]),
        (member(), 0.0, ["NoSchedule", "NoExecute"]),
        (member(reason="ClusterNotReady", ago=HOUR), 0.0, ["NoSchedule"]),
        (member(reason="StatusCollectionFailed", ago=HOUR), 0.0, ["NoSchedule"]),
    ],
)
def test_only_a_member_unreachable_for_long_gets_the_no_execute_taint(
    one: Cluster, lost_after: float | None, wanted: list[str]
) -> None:
    assert effects(one, lost_after) == wanted


def test_the_time_of_the_taint_is_that_of_the_loss() -> None:
    (_, taint) = list_taints(member(ago=100), lost_after=30, now=NOW)
    assert taint.time_added == write_time(NOW - 70)
    assert find_loss(member(ago=100).status.conditions, 30) == NOW - 70


def test_a_condition_without_a_time_does_not_count_as_lost() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "ClusterNotReachable"}
    assert find_loss(bare_cluster(status={"conditions": [ready]}).status.conditions, 30) is None


SOON = {"key": NOT_READY, "effect": "NoSchedule"}
OUT = {"key": NOT_READY, "effect": "NoExecute", "timeAdded": write_time(NOW - 9)}
MINE = {"key": "mine", "effect": "NoExecute"}
READY = ("True", "ClusterReady")


@pytest.mark.parametrize(
    ("one", "lost_after", "wanted"),
    [
        (member(), None, [SOON]),
        (member(taints=[MINE]), None, [MINE, SOON]),
        (member(taints=[SOON, MINE]), None, None),
        (member(taints=[OUT]), None, [OUT, SOON]),
        (member(taints=[SOON, OUT]), 9999, [SOON]),
        (member(taints=[SOON, OUT]), 1, None),
        (member(taints=[SOON]), 1, [SOON, {**OUT, "timeAdded": write_time(NOW - 59)}]),
        (member(*READY, taints=[SOON, OUT, MINE]), 1, [MINE]),
        (member(*READY, taints=[SOON, OUT, MINE]), None, [OUT, MINE]),
        (member(*READY, taints=[MINE]), 1, None),
        (member(*READY), 1, None),
    ],
)
def test_taints_set_by_others_are_kept(
    one: Cluster, lost_after: float | None, wanted: list[dict[str, Any]] | None
) -> None:
    change = change_taints(one, lost_after=lost_after, now=NOW)
    assert (change and change["spec"]["taints"]) == wanted
    assert change is None or change["metadata"] == {"resourceVersion": "7"}
