"""What a person sees while replicas come home."""

from typing import Any

import pytest

from localproduct.rebalance_view import ClusterBar, RebalanceSnapshot, draw, look, summarize, tell_news

HOME = {"member1": 6, "member2": 3}
BEFORE = RebalanceSnapshot(9, (ClusterBar("member1", 0, 0, 0), ClusterBar("member2", 9, 0, 9)), 9)
MIDDLE = RebalanceSnapshot(9, (ClusterBar("member1", 6, 0, 2), ClusterBar("member2", 3, 9, 9)), 9, "moving")
AFTER = RebalanceSnapshot(
    9, (ClusterBar("member1", 6, 0, 6), ClusterBar("member2", 3, 0, 3)), 9, "done", is_healthy=True
)


def seen(binding: dict[str, Any], status: dict[str, Any], ready: dict[str, int]) -> RebalanceSnapshot:
    rebalancer = {"metadata": {"name": "home"}, "status": status}
    return look({"spec": {"replicas": 9, **binding}}, rebalancer, ready=ready, fewest=9, clusters=HOME)


def clusters(**counts: int) -> list[dict[str, Any]]:
    return [{"name": name, "replicas": count} for name, count in counts.items()]


def test_before_the_rebalancing_all_replicas_are_where_they_were() -> None:
    sight = seen({"clusters": clusters(member2=9)}, {}, {"member2": 9})
    assert sight == BEFORE
    assert not sight.is_home


def test_during_a_handover_old_copies_are_kept_and_the_status_names_both_sides() -> None:
    entry = {
        "result": "Successful",
        "from": clusters(member2=9),
        "to": clusters(**HOME),
        "health": "Progressing",
    }
    binding = {"clusters": clusters(**HOME), "handover": {"clusters": clusters(member2=9)}}
    sight = seen(binding, {"observedWorkloads": [entry]}, {"member1": 2, "member2": 9})
    assert sight.shares == MIDDLE.shares
    assert sight.said == (
        "WorkloadRebalancer home: Successful, from {member2:9} to {member1:6, member2:3}, Progressing"
    )
    assert not sight.is_home


def test_the_reason_for_waiting_is_shown() -> None:
    status = {"observedWorkloads": [{"message": "Waiting for the scheduler.", "from": clusters(member2=9)}]}
    assert seen({}, status, {}).said == "WorkloadRebalancer home: Waiting for the scheduler."


@pytest.mark.parametrize(
    ("binding", "health", "ready", "is_home"),
    [
        ({}, "Healthy", HOME, True),
        ({}, "Progressing", HOME, False),
        ({}, "Healthy", {"member1": 6, "member2": 9}, False),
        ({"handover": {"clusters": clusters(member2=9)}}, "Healthy", HOME, False),
    ],
)
def test_a_workload_is_home_when_no_copy_is_missing_or_left_behind(
    binding: dict[str, Any], health: str, ready: dict[str, int], *, is_home: bool
) -> None:
    status = {"observedWorkloads": [{"result": "Successful", "health": health}]}
    assert seen({"clusters": clusters(**HOME), **binding}, status, ready).is_home is is_home


def test_only_changes_are_printed() -> None:
    where = "member1 2 ready of 6, member2 9 ready of 3, keeps 9 for now; "
    counts = "11 ready for 9 wanted, never fewer than 9"
    assert summarize(MIDDLE) == counts
    assert tell_news(None, MIDDLE) == ["moving", where + counts]
    assert tell_news(BEFORE, MIDDLE) == ["moving", where + counts]
    assert tell_news(MIDDLE, MIDDLE) == [where + counts]
    assert len(tell_news(None, BEFORE)) == 1


@pytest.mark.parametrize("sight", [BEFORE, MIDDLE, AFTER])
def test_a_bar_shows_ready_replicas_and_marks_those_that_will_go(
    sight: RebalanceSnapshot,
) -> None:
    lines = draw(sight, 80, color=False)
    each = (80 - 46) // 9
    for line, share in zip(lines, sight.shares, strict=False):
        assert line.startswith(share.cluster)
        assert line.count("█") == each * min(share.ready, share.given)
        assert line.count("▒") == each * max(share.ready - share.given, 0)
    assert lines[2] == summarize(sight)
    assert lines[3:] == ([sight.said] if sight.said else [])
    assert len({line.index("ready of") for line in lines[:2]}) == 1
    assert ("\x1b[33m" in "".join(draw(sight, 80))) is (sight is MIDDLE)
