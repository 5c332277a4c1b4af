"""Plans beside Karpenter: a node that it is about to remove is the last destination, and an expensive one."""

import pytest

from tests.support import builders
from tests.support.rescheduler.karpenter import node_claim, node_of_pool, node_pool
from tests.support.rescheduler.plans import (
    NOW,
    PLAIN_MODEL,
    Object,
    make_plan,
    moves_of,
    policy,
    refusals_of,
    replica,
)

GOING = [node_of_pool("going"), node_claim("going"), node_pool()]
STAYING = builders.node("staying")


def hot(*others: Object) -> list[Object]:
    """A node with more than its share, and nodes with less, of which the one that goes is the emptiest."""
    load = [replica(f"web-{number}", "web", "hot", cpu="1", memory="4Gi") for number in range(7)]
    keeping = [replica("web-7", "web", "hot", cpu="10m"), *others]
    little = [replica("db-1", "db", "staying", cpu="1500m", memory="6Gi")] if STAYING in others else []
    return [builders.node("hot"), *load, *keeping, *little]


@pytest.mark.parametrize("consolidatable", [True, False])
def test_a_node_that_goes_is_no_preferred_destination(*, consolidatable: bool) -> None:
    objects = hot(GOING[0], node_claim("going", consolidatable=consolidatable), GOING[2], STAYING)
    made, _ = make_plan(objects)
    first = "staying" if consolidatable else "going"
    assert {move.destinations[0].node for move in made.moves} == {first}
    assert consolidatable != any(each.node == "going" for move in made.moves for each in move.destinations)


def test_if_no_other_node_will_do_the_move_must_be_worth_a_node_that_is_kept() -> None:
    objects, free = hot(*GOING), policy(prices={"node": 0})
    cheap, _ = make_plan(objects, free)
    assert set(moves_of(cheap).values()) == {"going"}
    made, _ = make_plan(objects)
    worth = {move.pod: round(move.worth - 50, 1) for move in cheap.moves}
    for pod, left in worth.items():
        assert (pod in moves_of(made)) == (left >= 30)
    dear, _ = make_plan(objects, policy(prices={"node": 10_000}))
    assert dear.moves == ()
    said = [each.reason for each in dear.refused if each.rule == "NotWorthIt"]
    assert said
    assert all(each.endswith("it keeps a node that Karpenter would remove") for each in said)


def test_the_cost_of_a_kept_node_is_a_part_of_the_cost() -> None:
    objects = [
        builders.node("old", taints=[{"key": "team", "effect": "NoSchedule"}]),
        *GOING,
        replica("web-1", "web", "old"),
        replica("web-2", "web", "going"),
    ]
    (free,), (kept,) = (make_plan(objects, policy(prices={"node": points}))[0].moves for points in (0, 50))
    assert kept.cost == pytest.approx(free.cost + 50)
    assert kept.destinations[0].node == "going"


def test_what_must_move_may_land_on_a_node_that_goes_where_nothing_is_drawn() -> None:
    """Without our extender the replacement may land on either node."""
    objects = [
        builders.node("old", taints=[{"key": "team", "effect": "NoSchedule"}]),
        *GOING,
        STAYING,
        replica("web-1", "web", "old"),
        replica("web-2", "web", "staying", cpu="2"),
    ]
    made, _ = make_plan(objects, model=PLAIN_MODEL)
    assert [each.node for each in made.moves[0].destinations] == ["staying"]


def test_nodes_of_a_pool_with_a_budget_of_none_are_not_balanced() -> None:
    quiet = node_pool(budgets=[{"nodes": "0"}])
    objects = hot(node_of_pool("going"), quiet)
    made, _ = make_plan(objects)
    assert set(refusals_of(made).values()) == {"NodePoolBudget"}
    assert any(warning.startswith("NodePoolBudget: ") for warning in made.warnings)
    allowed, _ = make_plan(objects, policy(brakes={"nodePoolBudgets": False}))
    assert moves_of(allowed)


def test_among_nodes_that_karpenter_could_have_removed_for_long_pods_are_balanced_as_without_it() -> None:
    """By default a NodeClaim is consolidatable for ever."""
    nodes = [builders.node("hot"), *(node_of_pool(name) for name in ("a", "b"))]
    pods = [replica(f"web-{number}", "web", "hot", cpu="1", memory="4Gi") for number in range(7)]
    claims = [node_claim(name, changed=NOW - 3600) for name in ("a", "b")]
    dear = policy(prices={"node": 10_000})
    without, _ = make_plan([*nodes, *pods], dear)
    beside, _ = make_plan([*nodes, *pods, *claims, node_pool()], dear)
    assert beside.moves
    assert [(move.pod, move.destinations, move.worth) for move in beside.moves] == [
        (move.pod, move.destinations, move.worth) for move in without.moves
    ]
