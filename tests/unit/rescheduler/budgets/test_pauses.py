"""Each pause at its threshold, for the pool that it concerns."""

from collections.abc import Mapping

import pytest

from reberth.cluster.object_files import load_objects
from reberth.values.duration import Duration
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.budgets.pauses import Pauses, find_pauses
from rescheduler.model.guardrails import BrakeSettings
from rescheduler.observe.rule_context import RuleContext
from tests.support.builders import node
from tests.support.rescheduler.guardrails import NOW, Object, context_of

POOL = "eks.amazonaws.com/nodegroup"
MINUTE = 60.0
SETTLED = 999.0


def born(name: str, minutes: float, pool: str = "") -> Object:
    """A node of this age."""
    labels = {POOL: pool} if pool else {}
    made = node(name, labels=labels)
    return made | {"metadata": {**made["metadata"], "creationTimestamp": write_time(NOW - minutes * MINUTE)}}


def drained(name: str, pool: str = "", taint: str = "karpenter.sh/disrupted") -> Object:
    made = born(name, SETTLED, pool)
    return made | {"spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]}}


def pauses(
    *objects: Object,
    tainted: Mapping[str, Mapping[str, float]] | None = None,
    brakes: BrakeSettings | None = None,
) -> Pauses:
    return find_pauses(context_of(*objects, brakes=brakes), tainted or {})


def paused(*objects: Object, brakes: BrakeSettings | None = None) -> list[str]:
    """The names of the nodes whose pools are paused."""
    context = context_of(*objects, brakes=brakes)
    found = find_pauses(context, {})
    return [name for name, node in context.snapshot.nodes.index.items() if found.refuse(node)]


def test_a_quiet_cluster_has_no_pause() -> None:
    found = pauses(born("a", 10, "x"), born("b", SETTLED))
    assert list(found.list_rules()) == []
    assert found.may_change.all()
    assert found.refuse(-1) is None


def test_a_young_node_pauses_its_own_pool() -> None:
    nodes = born("a1", 5, "a"), born("a2", SETTLED, "a"), born("b1", SETTLED, "b"), born("none", SETTLED)
    found = pauses(*nodes)
    assert paused(*nodes) == ["a1", "a2"]
    assert list(found.list_rules()) == [
        Refused("ScaleUp", f"1 nodes of pool {POOL}=a are younger than 600 s", NOW - 5 * MINUTE + 10 * MINUTE)
    ]


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ([9.9], True),
        ([10], False),
        ([9, 6, 3, 0], True),
        ([10, 7, 4, 1], False),
        ([20, 12, 3], False),
        ([20, 9.9], True),
        ([20.1, 10, 0.1], False),
        ([20.2, 10.1, 0], True),
    ],
)
def test_a_burst_pauses_from_its_first_node_on(ages: list[float], expected: bool) -> None:  # noqa: FBT001 - a column of the table
    """Otherwise a pool to which a node is added every few minutes would never be balanced."""
    nodes = [born(f"n-{age}", age, "a") for age in ages]
    assert bool(paused(*nodes, born("old", SETTLED, "a"))) == expected


def test_nodes_without_a_pool_are_one_pool() -> None:
    nodes = born("x", 5), born("y", SETTLED), born("b", SETTLED, "b")
    assert paused(*nodes) == ["n1", "x", "y"]
    (refused,) = pauses(*nodes).list_rules()
    assert refused.reason == "1 nodes of the nodes without a pool are younger than 600 s"


def test_a_cluster_that_is_young_itself_is_not_paused() -> None:
    young = [born("a", 3, "a"), born("b", 1)]
    for nodes, expected in ((young, 0), ([*young, born("old", SETTLED)], 2)):
        snapshot = load_objects(nodes, now=NOW, version=(1, 36)).snapshot
        found = find_pauses(RuleContext(snapshot), {})
        assert len(found.by_pool) == expected


def test_a_node_that_is_being_removed_pauses_its_pool() -> None:
    nodes = drained("a1", "a"), drained("a2", "a"), born("a3", SETTLED, "a"), born("b", SETTLED, "b")
    assert paused(*nodes) == ["a1", "a2", "a3"]
    (refused,) = pauses(*nodes).list_rules()
    assert refused.reason == f"an autoscaler is removing node a1 and 1 more of pool {POOL}=a"
    assert paused(*nodes, brakes=BrakeSettings(pause_while_draining=False)) == []


@pytest.mark.parametrize("taint", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"])
@pytest.mark.parametrize("value", ["", "=1800000000"])
def test_a_removal_that_does_not_end_pauses_for_an_hour(taint: str, value: str) -> None:
    stays, name = drained("a1", "a", taint), f"{taint}{value}:NoSchedule"
    long = BrakeSettings(longest_drain=Duration(7200))
    for since, brakes, expected in ((3599, None, 1), (3600, None, 0), (3600, long, 1)):
        times = {"a1": {"other:NoSchedule": NOW - 9999, name: NOW - since}}
        assert len(list(pauses(stays, tainted=times, brakes=brakes).list_rules())) == expected


def test_several_pools_are_told_of_in_one_line() -> None:
    found = pauses(born("a", 5, "a"), born("b", 4, "b"), drained("c", "c"), born("old", SETTLED))
    rules = {refused.rule: refused.reason for refused in found.list_rules()}
    assert rules["ScaleUp"].endswith(f"of pool {POOL}=a are younger than 600 s, and 1 more pools are paused")
    assert list(rules) == ["AutoscalerDrains", "ScaleUp"]


def test_the_first_label_that_a_node_has_names_its_pool() -> None:
    both = born("a", 5, "a")
    both["metadata"]["labels"]["team"] = "red"
    red = born("b", SETTLED)
    red["metadata"]["labels"] = {"team": "red"}
    assert paused(both, red) == ["a"]
    assert paused(both, red, brakes=BrakeSettings(node_pool_labels=("team", POOL))) == ["a", "b"]
    with pytest.raises(ValueError, match="nodePoolLabels: 'no key' is not a label key"):
        BrakeSettings(node_pool_labels=("no key",))
