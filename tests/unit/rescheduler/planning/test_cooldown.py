"""Where the pods of a controller do not return to, and who knows it."""

from typing import Any

import pytest

from reberth.records import EvictionHistory
from reberth.values.duration import Duration
from reberth.values.timestamp import write_time
from rescheduler.model.plan_memory import PlanMemory, RememberedMove
from rescheduler.planning.cooldown import RestSettings, find_left
from tests.support import builders
from tests.support.builders import as_record
from tests.support.rescheduler import plans
from tests.support.rescheduler.guardrails import NOW, WEB, history, open_move, past_move
from tests.support.rescheduler.plans import (
    Object,
    carry_out,
    make_plan,
    moves_of,
    policy,
    refusals_of,
    replica,
)

HOUR = 3600.0


def left(
    record: Object | None, memory: PlanMemory | None = None, settings: RestSettings | None = None
) -> list[str]:
    known = as_record(EvictionHistory, record) if record else None
    rest = settings or RestSettings()
    return list(find_left(WEB["uid"], known, memory or PlanMemory(), rest, now=NOW))


def moved(hours: float, **fields: Any) -> Object:
    """A past move of a pod of the controller, that many hours ago, off n1."""
    at = write_time(NOW - hours * HOUR)
    made = past_move("Better", at, evictedAt=at, controllerUID=WEB["uid"], landedOn="n2")
    return made | fields


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (moved(47.9), ["n1"]),
        (moved(48.1), []),
        (moved(1, outcome="Returned", landedOn="n1"), ["n1"]),
        (moved(1, outcome="Pending", landedOn=None), ["n1"]),
        (moved(1, controllerUID="of-another-generation"), []),
        (moved(1, evictedAt=None, outcome="Refused"), []),
    ],
)
def test_a_history_knows_where_pods_were_moved_off(move: Object, expected: list[str]) -> None:
    assert left(history(past=[move])) == expected


def test_open_moves_count_too_and_nothing_is_known_without_a_history() -> None:
    opened = open_move(**{"from": "n7"}), open_move("db-1", id="m-2", controllerUID="another")
    assert left(history(open=list(opened))) == ["n7"]
    assert left(None) == []


def test_how_long_is_set() -> None:
    assert left(history(past=[moved(1)]), settings=RestSettings(no_return=Duration(HOUR))) == []


def test_a_memory_knows_what_the_history_has_no_room_for() -> None:
    remembered = RememberedMove(WEB["uid"], "n9", ("n2",), NOW - 60, NOW, NOW + HOUR)
    assert left(history(past=[moved(1)]), PlanMemory(moved=(remembered,))) == ["n9", "n1"]


RED = {"key": "team", "value": "red", "effect": "NoSchedule"}


def tainted(name: str, *, red: bool) -> Object:
    return builders.node(name, taints=[RED] if red else ())


def test_the_next_leader_sends_no_pod_back_either() -> None:
    """A new leader plans without the memory of the one before, but with the same histories."""
    settings = policy(policies={"brokenRules": {"taints": {"for": "0s"}}})
    pods = [replica("web-1", "web", "old"), replica("web-2", "web", "new")]
    objects = [tainted("old", red=True), tainted("new", red=False), *pods]
    made, memory = make_plan(objects, settings)
    assert moves_of(made) == {"default/web-1": "new"}
    _, _, *after = carry_out(objects, made)
    back = [tainted("old", red=False), tainted("new", red=True), *after]
    at = write_time(plans.NOW + 1)
    recorded = history(
        uid="uid-default-web",
        past=[
            moved(0, evictedAt=at, closedAt=at, controllerUID="uid-default-web", landedOn="new")
            | {"from": "old"}
        ],
    )
    later = plans.NOW + 40 * HOUR
    for known in (memory, PlanMemory(), None):
        again, _ = make_plan([*back, recorded], settings, known, now=later)
        assert set(refusals_of(again).values()) == {"Undoes"}
    forgotten, _ = make_plan([*back, recorded], settings, None, now=plans.NOW + 49 * HOUR)
    assert len(forgotten.moves) == 1
