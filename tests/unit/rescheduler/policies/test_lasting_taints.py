"""Which taints count as broken rules, and after what time."""

from typing import Any

import pytest

from reberth.cluster.columns import NodeColumns
from reberth.cluster.object_files import load_objects
from reberth.values.duration import Duration, convert
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.policies.lasting_taints import TaintSettings, watch_taints
from tests.support import builders
from tests.support.rescheduler.plans import NOW, VERSION, Object, make_plan, moves_of, policy, replica

CILIUM = "node.cilium.io/agent-not-ready"
PRESSURE = "node.kubernetes.io/disk-pressure"
FOR = TaintSettings().lasting


def taint(key: str, effect: str = "NoSchedule", **fields: Any) -> Object:
    return {"key": key, "effect": effect, **fields}


def nodes(**taints: list[Object]) -> NodeColumns:
    """Nodes with these taints."""
    made = [builders.node(name, taints=theirs) for name, theirs in taints.items()]
    return load_objects(made, now=NOW, version=VERSION).snapshot.nodes


def counted(settings: TaintSettings, *keys: str) -> list[str]:
    return [key for key in keys if settings.counts(key)]


def test_the_taints_that_kubernetes_removes_by_itself_do_not_count() -> None:
    assert counted(TaintSettings(), PRESSURE, "node.kubernetes.io/out-of-service", CILIUM, "team") == [
        CILIUM,
        "team",
    ]


def test_keys_are_included_and_excluded_whole_or_by_their_beginning() -> None:
    chosen = TaintSettings(include=("team", "node.cilium.io/*"), exclude=("node.cilium.io/egress*",))
    found = counted(chosen, "team", "teams", CILIUM, "node.cilium.io/egress-1", "node.cilium")
    assert found == ["team", CILIUM]
    assert counted(TaintSettings(exclude=()), PRESSURE) == [PRESSURE]


@pytest.mark.parametrize("pattern", ["", "*", "a*b", "a**", "/x", "a/", "a b", "-a", "a/b/*", "x" * 300])
def test_what_is_no_key_is_refused(pattern: str) -> None:
    for place in ("include", "exclude"):
        with pytest.raises(ValueError, match="is neither a key nor the beginning of keys"):
            convert({place: [pattern]}, TaintSettings)


@pytest.mark.parametrize(
    ("included", "excluded"), [("a.io/b", "a.io/*"), ("a.io/b*", "a.io/*"), ("team", "team")]
)
def test_an_entry_without_effect_is_refused(included: str, excluded: str) -> None:
    with pytest.raises(ValueError, match="of include has no effect: exclude covers it"):
        TaintSettings(include=(included,), exclude=(excluded,))
    TaintSettings(include=("a.io/*",), exclude=("a.io/b",))


def test_a_taint_counts_after_it_has_lasted_without_a_gap() -> None:
    red, blue, settings = taint("red"), taint("blue"), TaintSettings()

    def look(before: PlanMemory, at: float, *taints: Object) -> tuple[list[str], PlanMemory]:
        found = watch_taints(nodes(n1=list(taints)), settings, before.tainted_since, now=at)
        keys = [each.key for each in found.lasting.distinct[found.lasting.codes[0]]]
        return keys, PlanMemory(tainted_since=found.since)

    keys, memory = look(PlanMemory(), 0.0, red)
    assert (keys, memory.tainted_since) == ([], {"n1": {"red:NoSchedule": 0.0}})
    keys, memory = look(memory, FOR - 1, red, blue)
    assert keys == []
    keys, memory = look(memory, FOR, red, blue)
    assert keys == ["red"]
    keys, memory = look(memory, FOR + 1, blue)
    assert (keys, list(memory.tainted_since["n1"])) == ([], ["blue:NoSchedule"])
    keys, memory = look(memory, 2 * FOR, red, blue)
    assert keys == ["blue"]
    _, memory = look(memory, 2 * FOR, {**red, "value": "dark"})
    assert memory.tainted_since == {"n1": {"red=dark:NoSchedule": 2 * FOR}}


def test_without_a_memory_every_taint_has_lasted() -> None:
    found = watch_taints(nodes(n1=[taint("red")]), TaintSettings(), None, now=NOW)
    assert [each.key for each in found.lasting.distinct[found.lasting.codes[0]]] == ["red"]
    again = watch_taints(nodes(n1=[taint("red")]), TaintSettings(), found.since, now=NOW + 1)
    assert again.lasting.codes[0] > 0


def test_a_clock_that_was_set_back_lets_no_taint_wait_for_longer() -> None:
    later = watch_taints(nodes(n1=[taint("red")]), TaintSettings(), {}, now=NOW + 10_000)
    now = watch_taints(nodes(n1=[taint("red")]), TaintSettings(), later.since, now=NOW)
    assert now.since == {"n1": {"red:NoSchedule": NOW}}


def test_soft_taints_are_not_remembered_and_when_a_taint_was_added_makes_no_difference() -> None:
    many = nodes(
        n1=[taint("soft", "PreferNoSchedule")],
        n2=[taint("red", "NoExecute", timeAdded="2026-11-18T11:00:00Z")],
        n3=[taint("red", "NoExecute", timeAdded="2026-11-18T11:30:00Z")],
    )
    found = watch_taints(many, TaintSettings(lasting=Duration(0)), {}, now=NOW)
    assert list(found.since) == ["n2", "n3"]
    assert found.lasting.codes.tolist() == [0, 1, 1]
    assert found.lasting.find_untolerated(None).tolist() == [0, 1, 1]


def restarting(*taints: Object) -> list[Object]:
    """A node with these taints, and room elsewhere."""
    return [
        builders.node("a", taints=list(taints)),
        builders.node("b"),
        replica("web-1", "web", "a"),
        replica("web-2", "web", "b"),
    ]


def test_a_plan_moves_pods_off_a_node_only_for_taints_that_count() -> None:
    settings, objects = policy(), restarting(taint(CILIUM), taint(PRESSURE))
    first, memory = make_plan(objects, settings, PlanMemory())
    assert moves_of(first) == {}
    assert first.score.before.broken_rules == 0
    early, memory = make_plan(objects, settings, memory, now=NOW + FOR - 1)
    assert moves_of(early) == {}
    late, memory = make_plan(objects, settings, memory, now=NOW + FOR)
    assert moves_of(late) == {"default/web-1": "b"}
    assert moves_of(make_plan(restarting(taint(PRESSURE)), settings, memory, now=NOW + 10 * FOR)[0]) == {}


@pytest.mark.parametrize(
    ("taints", "moves"),
    [
        ({"for": "0s"}, 1),
        ({"for": "1h"}, 0),
        ({"for": "0s", "include": ["team"]}, 0),
        ({"for": "0s", "exclude": ["node.cilium.io/*"]}, 0),
        ({"enabled": False, "for": "0s"}, 0),
    ],
)
def test_the_settings_decide(taints: Object, moves: int) -> None:
    settings: ReschedulerPolicy = policy(policies={"brokenRules": {"taints": taints}})
    made, _ = make_plan(restarting(taint(CILIUM)), settings, PlanMemory())
    assert len(made.moves) == moves
