"""NodePools whose disruption budget is 0 now are not balanced."""

from typing import Any

import pytest

from reberth.records import Node, ObjectMeta
from reberth.values.timestamp import parse_time
from rescheduler.budgets.node_pools import find_pool, refuse_by_node_pool, write_pool
from rescheduler.budgets.pauses import find_pauses
from rescheduler.model.guardrails import BrakeSettings
from tests.support.rescheduler.guardrails import Object, context_of
from tests.support.rescheduler.karpenter import POOL_LABEL, node_of_pool, node_pool

# A Thursday.
NOW = parse_time("2026-11-19T12:00:00Z")
OFFICE_HOURS = {"schedule": "0 8 * * mon-fri", "duration": "10h"}


def ask(*budgets: Object) -> tuple[str, float | None] | None:
    """Ask one NodePool about its budgets."""
    refused = refuse_by_node_pool("default", context_of(node_pool(budgets=list(budgets)), now=NOW))
    return (refused.rule, refused.until) if refused else None


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ({"nodes": "10%"}, False),
        ({"nodes": "1"}, False),
        ({"nodes": "010"}, False),
        ({"nodes": "100%"}, False),
        ({"nodes": "0"}, True),
        ({"nodes": "0%"}, True),
        ({"nodes": "ten"}, True),
        ({"nodes": "0", "reasons": ["Empty", "Drifted"]}, False),
        ({"nodes": "0", "reasons": ["Drifted", "Underutilized"]}, True),
        ({"nodes": "0", "schedule": "0 8 * * sat", "duration": "10h"}, False),
        ({"nodes": "0", "schedule": "0 8 * * thu", "duration": "4h"}, False),
        ({"nodes": "2", **OFFICE_HOURS}, False),
        ({"nodes": "0", "schedule": "8 o'clock", "duration": "10h"}, True),
        ({"nodes": "0", "schedule": "@daily", "duration": "for long"}, True),
    ],
)
def test_a_budget_of_none_stops_balance_while_it_is_active(budget: Object, *, expected: bool) -> None:
    assert ask(budget) == (("NodePoolBudget", None) if expected else None)
    assert ask({"nodes": "5%"}, budget) == ask(budget)


def test_a_scheduled_budget_says_when_it_ends() -> None:
    until = parse_time("2026-11-19T18:00:00Z")
    assert ask({"nodes": "0", **OFFICE_HOURS}) == ("NodePoolBudget", until)
    night = {"nodes": "0", "schedule": "@daily", "duration": "24h0m0s"}
    assert ask({"nodes": "0", **OFFICE_HOURS}, night) == ("NodePoolBudget", until + 6 * 3600)
    assert ask({"nodes": "0", **OFFICE_HOURS}, {"nodes": "0"}) == ("NodePoolBudget", None)


def test_a_pool_without_budgets_or_without_an_object_allows_moves() -> None:
    assert ask() is None
    assert refuse_by_node_pool("gone", context_of(now=NOW)) is None
    unset = node_pool()
    del unset["spec"]["disruption"]
    assert refuse_by_node_pool("default", context_of(unset, now=NOW)) is None


@pytest.mark.parametrize(
    ("settings", "rules"), [({}, ["NodePoolBudget"]), ({"node_pool_budgets": False}, [])]
)
def test_only_the_pool_with_the_budget_is_paused(settings: Any, rules: list[str]) -> None:
    objects = [
        node_of_pool("a", "quiet"),
        node_of_pool("b", "other"),
        node_pool("quiet", budgets=[{"nodes": "0"}]),
        node_pool("other"),
    ]
    found = find_pauses(context_of(*objects, now=NOW, brakes=BrakeSettings(**settings)), {})
    assert [refused.rule for refused in found.list_rules()] == rules
    assert list(found.by_pool) == [(POOL_LABEL, "quiet")] * len(rules)


@pytest.mark.parametrize(
    ("labels", "written"),
    [
        ({"agentpool": "small", "team": "red"}, "team=red"),
        ({"agentpool": "small"}, "agentpool=small"),
        ({"zone": "a"}, ""),
        (None, ""),
    ],
)
def test_the_pool_of_a_node_is_that_of_the_first_label_that_it_has(
    labels: dict[str, str] | None, written: str
) -> None:
    found = Node(ObjectMeta(name="n1", labels=labels))
    assert write_pool(find_pool(found, ("team", "agentpool"))) == written
