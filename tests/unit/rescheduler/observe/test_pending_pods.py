"""Pending pods take precedence over moves."""

from typing import Any

import pytest

from tests.support import builders
from tests.support.rescheduler.plans import Object, make_plan, moves_of, policy, refusals_of, replica

RED = {"key": "team", "value": "red", "effect": "NoSchedule"}
NOWHERE = {"disk": "of gold"}


def to_be_moved(*others: Object) -> list[Object]:
    """A pod that must leave its node, and one other node with room for it."""
    pods = replica("web-1", "web", "old", cpu="5"), replica("web-2", "web", "new", cpu="1")
    return [builders.node("old", taints=[RED]), builders.node("new"), *pods, *others]


def waiting(name: str = "etl-1", **fields: Any) -> Object:
    owned_by = builders.owner("ReplicaSet", "etl", uid="uid-etl")
    return builders.pod(name, uid=name, owned_by=owned_by, **{"node": None, "cpu": "6", **fields})


def test_capacity_a_pending_pod_will_take_is_not_available_to_moves() -> None:
    assert moves_of(make_plan(to_be_moved())[0]) == {"default/web-1": "new"}
    made, _ = make_plan(to_be_moved(waiting()))
    assert (made.moves, refusals_of(made)["default/web-1"]) == ((), "NoFeasibleNode")
    made, _ = make_plan(to_be_moved(waiting(), builders.node("third")))
    assert len(made.moves) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"nodeSelector": NOWHERE},
        {"cpu": "64"},
        {"schedulingGates": [{"name": "quota"}]},
        {"schedulerName": "other"},
        {"phase": "Failed"},
        {"deleted": "2026-11-18T12:00:30Z"},
        {"node": "unknown"},
    ],
)
def test_a_pod_that_lands_nowhere_stops_nothing(fields: dict[str, Any]) -> None:
    assert moves_of(make_plan(to_be_moved(waiting(**fields)))[0]) == {"default/web-1": "new"}


def test_the_most_important_takes_the_room_first() -> None:
    """Only one of the two fits; the small one leaves room for the move."""
    small = waiting("etl-small", cpu="2", priority=10, created="2026-11-18T11:59:59Z")
    large = waiting("etl-large", cpu="6", created="2026-11-18T11:59:00Z")
    assert moves_of(make_plan(to_be_moved(large, small))[0]) == {"default/web-1": "new"}
    del small["spec"]["priority"]
    assert make_plan(to_be_moved(large, small))[0].moves == ()


def test_a_pending_pod_is_not_proposed_and_its_node_does_not_count() -> None:
    objects = to_be_moved(waiting(cpu="7"), builders.node("third"), builders.node("fourth"))
    made, _ = make_plan(objects, policy(policies={"underUtilisedNodes": {"hotFor": "0s"}}))
    assert "default/etl-1" not in moves_of(made) | refusals_of(made)
    assert set(made.nodes) == {"old", *moves_of(made).values()}


def test_of_many_that_are_alike_and_fit_nowhere_one_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rescheduler.observe.pending_pods._MOST", 2)
    hopeless = [waiting(f"etl-{number}", cpu="64", priority=5) for number in range(9)]
    assert make_plan(to_be_moved(*hopeless, waiting("last")))[0].moves == ()
    kinds = [waiting(f"etl-{number}", cpu=f"{64 + number}", priority=5) for number in range(2)]
    assert len(make_plan(to_be_moved(*kinds, waiting("last")))[0].moves) == 1
