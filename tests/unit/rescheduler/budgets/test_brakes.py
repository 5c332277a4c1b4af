"""Each brake and pause at its threshold: just on, and just off."""

from typing import Any

import pytest

from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.budgets.brakes import ClusterHealth, find_brakes, find_pauses
from rescheduler.model.guardrails import BrakeSettings
from tests.support.builders import node
from tests.support.rescheduler.guardrails import (
    NOW,
    WEB,
    Object,
    context_of,
    history,
    open_move,
    past_move,
    replica,
)

EVICTED = open_move(
    phase="Evicted",
    plannedAt="2027-01-15T07:57:50.000000Z",
    evictedAt="2027-01-15T07:57:51.000000Z",
    podUID="uid-gone",
)
LEFT_WAITING = past_move("Pending", "2027-01-15T07:50:00.000000Z", evictedAt="2027-01-15T07:45:00.000000Z")


def unready(name: str) -> Object:
    made = node(name)
    made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return made


def waiting(created: str, **fields: Any) -> Object:
    return replica("web-new", **{"node": None, "created": created, "status": {}, **fields})


def brakes(*objects: Object, settings: BrakeSettings | None = None, **arguments: Any) -> list[str]:
    found = find_brakes(context_of(*objects, brakes=settings), ClusterHealth(**arguments))
    return [refused.rule for refused in found]


def test_a_sound_cluster_has_no_brake_on() -> None:
    assert find_brakes(context_of(replica()), ClusterHealth(cache_ages={"Pod": 30.0})) == ()


def test_more_than_a_tenth_of_the_nodes_not_ready_is_a_brake() -> None:
    nodes = [node(f"n{number}") for number in range(2, 10)]
    assert brakes(*nodes, unready("x")) == []
    refused = find_brakes(context_of(*nodes, unready("x"), unready("y")))
    assert refused == (Refused("NodesNotReady", "2 of 11 nodes are not Ready, more than 10%"),)


def test_a_mirror_older_than_half_a_minute_is_a_brake() -> None:
    ages = {"Node": 31.0, "Pod": 45.2, "Service": 3.0}
    expected = Refused("StaleMirror", "the cache of Pod is 45 s old, more than 30 s")
    assert find_brakes(context_of(), ClusterHealth(cache_ages=ages)) == (expected,)


@pytest.mark.parametrize(
    ("found", "objects"),
    [
        (True, [waiting("2027-01-15T07:57:59Z"), history(open=[EVICTED])]),
        (False, [waiting("2027-01-15T07:58:00Z"), history(open=[EVICTED])]),
        (False, [waiting("2027-01-15T07:57:49Z"), history(open=[EVICTED])]),
        (False, [waiting("2027-01-15T07:57:59Z")]),
        (False, [waiting("2027-01-15T07:57:59Z"), history(open=[EVICTED | {"controllerUID": "another"}])]),
        (False, [waiting("2027-01-15T07:57:59Z"), history(open=[open_move(podUID="uid-gone")])]),
        (
            False,
            [
                waiting("2027-01-15T07:57:59Z"),
                replica("web-landed", created="2027-01-15T07:58:01Z"),
                history(open=[EVICTED]),
            ],
        ),
        (False, [waiting("2027-01-15T07:57:59Z", deleted="2027-01-15T08:00:30Z"), history(open=[EVICTED])]),
        (False, [waiting("2027-01-15T07:57:59Z", node="elsewhere"), history(open=[EVICTED])]),
        (True, [waiting("2027-01-15T07:45:00Z"), history(past=[LEFT_WAITING])]),
        (False, [waiting("2027-01-15T07:44:59Z"), history(past=[LEFT_WAITING])]),
        (False, [waiting("2027-01-15T07:50:01Z"), history(past=[LEFT_WAITING])]),
        (False, [waiting("2027-01-15T07:45:00Z"), history(past=[LEFT_WAITING | {"outcome": "Better"}])]),
    ],
)
def test_a_replacement_that_waits_for_too_long_is_a_brake(found: bool, objects: list[Object]) -> None:  # noqa: FBT001 - a column of the table
    assert brakes(*objects, settings=BrakeSettings()) == (["PendingReplacement"] if found else [])


def test_the_brake_names_the_pod_that_waits() -> None:
    (refused,) = find_brakes(context_of(waiting("2027-01-15T07:57:59Z"), history(open=[EVICTED])))
    assert refused.reason == "default/web-new has been pending for 121 s, more than 120 s"
    assert WEB["uid"] == EVICTED["controllerUID"]


def landed(*, hits: int = 0, misses: int = 0, closed: float = NOW - 3600) -> Object:
    """A workload's history: first the misses, then the hits, a second after each other."""
    verdicts = [False] * misses + [True] * hits
    past = [past_move("Better", write_time(closed + n), asForecast=hit) for n, hit in enumerate(verdicts)]
    return history(f"app-{closed}", past=past)


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [(45, 5, []), (44, 6, ["ForecastAstray"]), (8, 1, []), (8, 2, ["ForecastAstray"]), (9, 1, [])],
)
def test_too_few_landings_inside_the_forecast_are_a_brake(good: int, bad: int, expected: list[str]) -> None:
    assert brakes(landed(hits=good, misses=bad)) == expected


def test_only_the_last_landings_count() -> None:
    old = landed(misses=100, closed=NOW - 7200)
    assert brakes(old, landed(hits=50)) == []
    (refused,) = find_brakes(context_of(old, landed(hits=44, misses=6)))
    assert refused.reason == "44 of the last 50 landings were as forecast, fewer than 90%"


def test_the_forecast_brake_is_released_by_time_alone() -> None:
    """While it is on, nothing is moved, so no new landing would ever release it."""
    bad, day = landed(hits=8, misses=4), 24 * 3600
    for later, expected in ((0, ["ForecastAstray"]), (day - 3700, ["ForecastAstray"]), (day - 3580, [])):
        found = find_brakes(context_of(bad, now=NOW + later))
        assert [refused.rule for refused in found] == expected


def test_landings_that_nothing_was_to_draw_do_not_count() -> None:
    undrawn = [past_move("Returned", landedOn="n1", evictedAt=f"2027-01-15T07:4{n}:00Z") for n in range(10)]
    assert brakes(history(past=undrawn), landed(hits=10)) == []
    assert brakes(landed(misses=10), drawn=False) == []


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
