"""Pods leave a node whose labels they no longer match, after some time."""

from random import Random
from typing import Any

import pytest

from reberth.cluster.columns import Indices
from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View, view_snapshot
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.policies.lasting_mismatches import NodeAffinitySettings, watch_mismatches
from tests.support import builders
from tests.support.rescheduler.plans import (
    NOW,
    VERSION,
    Object,
    make_plan,
    moves_of,
    policy,
    refusals_of,
    replica,
)

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


def read(*objects: Object) -> View:
    reading = load_objects(list(objects), now=NOW, version=VERSION)
    assert not reading.faults
    return view_snapshot(SnapshotFacts(reading.snapshot, VERSION))


def test_drawn_mismatches_are_found_pod_by_pod() -> None:
    draw, found = Random(7), 0
    for _ in range(30):
        has = {name: draw.choice(["ssd", "hdd", ""]) for name in "abcde"}
        nodes = [builders.node(name, labels={"disk": disk} if disk else {}) for name, disk in has.items()]
        pods, expected = [], set()
        for number in range(40):
            app, node, wants = draw.choice("xyz"), draw.choice("abcde"), draw.choice(["ssd", "hdd", ""])
            more = {"nodeSelector": {"disk": wants}} if wants else {}
            pods.append(replica(f"{app}-{number}", app, node, cpu=f"{number % 4 + 1}m", **more))
            if wants and wants != has[node]:
                expected.add((node, f"uid-default-{app}"))
        since = watch_mismatches(read(*nodes, *pods), NodeAffinitySettings(), {}, now=NOW).since
        assert {(node, uid) for node, by in since.items() for uid in by} == expected
        found += len(expected)
    assert found > 100


def test_templates_that_require_the_same_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    view = read(*cluster(), *(each for app in ("db", "mq", "ui") for each in cluster(app=app)[2:]))
    asked: list[int] = []
    count_among = View.counted_among

    def note(self: View, pods: Indices) -> Indices:
        asked.append(len(pods))
        return count_among(self, pods)

    monkeypatch.setattr(View, "counted_among", note)
    assert len(watch_mismatches(view, NodeAffinitySettings(), {}, now=NOW).since["a"]) == 4
    assert asked == [8]
