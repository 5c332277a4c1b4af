"""Pods leave a node whose labels they no longer match, after some time."""

from typing import Any

import pytest

from rescheduler.model.plan_memory import PlanMemory
from rescheduler.policies.lasting_mismatches import NodeAffinitySettings
from tests.support import builders
from tests.support.rescheduler.plans import NOW, Object, make_plan, moves_of, policy, refusals_of, replica

FOR = NodeAffinitySettings().lasting
SSD = {"disk": "ssd"}


def cluster(*, labelled: bool = False, app: str = "web") -> list[Object]:
    """Two replicas that want a label, on a node that may have it and on one that has it."""
    return [
        builders.node("a", labels=SSD if labelled else {}),
        builders.node("b", labels=SSD),
        replica(f"{app}-1", app, "a", nodeSelector=SSD),
        replica(f"{app}-2", app, "b", nodeSelector=SSD),
    ]


def test_a_mismatch_counts_after_it_has_lasted_without_a_gap() -> None:
    moves, memory = [], PlanMemory()
    for seconds, labelled in ((0, False), (FOR - 1, False), (FOR, True), (FOR + 1, False), (2 * FOR, False)):
        made, memory = make_plan(cluster(labelled=labelled), policy(), memory, now=NOW + seconds)
        moves.append(len(made.moves))
        assert made.score.before.broken_rules == 0
    assert moves == [0] * 5
    assert memory.mismatched_since == {"a": {"uid-default-web": NOW + FOR + 1}}
    made, memory = make_plan(cluster(), policy(), memory, now=NOW + 2 * FOR + 1)
    assert moves_of(made) == {"default/web-1": "b"}
    assert made.score.before.broken_rules == 1


def test_each_controller_and_node_has_its_own_time() -> None:
    _, memory = make_plan(cluster(), policy(), PlanMemory())
    both = [*cluster(), *cluster(app="db")[2:]]
    made, memory = make_plan(both, policy(), memory, now=NOW + FOR)
    assert moves_of(made) == {"default/web-1": "b"}
    assert memory.mismatched_since == {"a": {"uid-default-db": NOW + FOR, "uid-default-web": NOW}}


@pytest.mark.parametrize(
    ("settings", "memory", "moves"),
    [
        ({}, None, 1),
        ({}, PlanMemory(), 0),
        ({"for": "0s"}, PlanMemory(), 1),
        ({"enabled": False, "for": "0s"}, PlanMemory(), 0),
    ],
)
def test_without_a_memory_a_mismatch_has_always_been_there(
    settings: Any, memory: PlanMemory | None, moves: int
) -> None:
    made, _ = make_plan(cluster(), policy(policies={"brokenRules": {"nodeAffinity": settings}}), memory)
    assert len(made.moves) == moves


def test_a_bare_pod_in_the_wrong_place_counts_and_stays() -> None:
    bare = builders.pod("bare", node="a", nodeSelector=SSD, created="2026-01-01T00:00:00Z")
    made, memory = make_plan([*cluster()[:2], bare], policy())
    assert (made.moves, refusals_of(made)) == ((), {"default/bare": "BarePod"})
    assert memory.mismatched_since == {"a": {"": 0.0}}
