"""Each brake at its threshold: just on, and just off."""

from typing import Any

from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth, find_brakes
from tests.support.builders import node
from tests.support.rescheduler.guardrails import (
    Object,
    context_of,
    place_of,
    replica,
)


def unready(name: str) -> Object:
    made = node(name)
    made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return made


def brakes(*objects: Object, **arguments: Any) -> tuple[Refused, ...]:
    return find_brakes(context_of(*objects), ClusterHealth(**arguments)).everywhere


def test_a_sound_cluster_has_no_brake_on() -> None:
    assert brakes(replica(), cache_ages={"Pod": 30.0}) == ()


def test_more_than_a_tenth_of_the_nodes_not_ready_is_a_brake() -> None:
    nodes = [node(f"n{number}") for number in range(2, 10)]
    assert brakes(*nodes, unready("x")) == ()
    assert brakes(*nodes, unready("x"), unready("y")) == (
        Refused("NodesNotReady", "2 of 11 nodes are not Ready, more than 10%"),
    )


def test_a_mirror_older_than_half_a_minute_is_a_brake() -> None:
    ages = {"Node": 31.0, "Pod": 45.2, "Service": 3.0}
    expected = Refused("StaleMirror", "the cache of Pod is 45 s old, more than 30 s")
    assert brakes(cache_ages=ages) == (expected,)


def test_a_brake_of_the_process_itself_stops_everything() -> None:
    silent = Refused("ExtendersUnreachable", "no answer")
    context = context_of(replica())
    on = find_brakes(context, ClusterHealth(brakes=(silent,)))
    assert on.everywhere == (silent,)
    assert on.refuse(place_of(context), context) == silent
