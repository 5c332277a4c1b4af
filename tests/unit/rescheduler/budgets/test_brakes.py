"""Each brake and pause at its threshold: just on, and just off."""

from typing import Any

from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth, find_brakes, find_pauses
from rescheduler.model.guardrails import BrakeSettings
from tests.support.builders import node
from tests.support.rescheduler.guardrails import (
    NOW,
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


def test_an_autoscaler_at_work_pauses_balance() -> None:
    drained = node("n2")
    drained["spec"] = {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}
    more = {**drained, "metadata": {**drained["metadata"], "name": "n3", "uid": "u3"}}
    expected = Refused("AutoscalerDrains", "an autoscaler is removing node n2 and 1 more")
    assert find_pauses(context_of(drained, more)) == (expected,)
    assert find_pauses(context_of(drained, brakes=BrakeSettings(pause_while_draining=False))) == ()


def test_young_nodes_among_old_ones_pause_balance_until_they_have_settled() -> None:
    born = [{**node(name), "metadata": {"name": name, "creationTimestamp": at}} for name, at in BIRTHS]
    context = context_of(*born)
    assert find_pauses(context) == (Refused("ScaleUp", "1 nodes are younger than 600 s", NOW - 300 + 600),)


def test_a_cluster_that_is_young_itself_is_not_paused() -> None:
    only = {**node("n1"), "metadata": {"name": "n1", "creationTimestamp": "2027-01-15T07:59:00Z"}}
    assert find_pauses(context_of(only)) == ()


BIRTHS = [("n2", "2027-01-15T07:55:00Z"), ("n3", "2027-01-15T07:50:00Z")]
