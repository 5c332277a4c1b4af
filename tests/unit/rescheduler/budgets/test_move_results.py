"""What the results of moves stop, at each threshold: a workload, a namespace, or everything."""

from collections.abc import Iterable
from itertools import permutations
from typing import Any

import pytest

from reberth.cluster.pods.identity import name_history
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.budgets.move_results import ResultBrakes, judge_results
from rescheduler.model.guardrails import BrakeSettings
from rescheduler.observe.rule_context import RuleContext
from tests.support.builders import owner
from tests.support.rescheduler.guardrails import (
    NOW,
    WEB,
    Object,
    context_of,
    history,
    open_move,
    past_move,
    place_of,
    replica,
)

HOUR = 3600.0
DAY = 24 * HOUR
EVICTED = open_move(plannedAt="2027-01-15T07:57:50.000000Z", podUID="uid-gone")
LEFT_WAITING = past_move(
    "Pending",
    "2027-01-15T07:50:00.000000Z",
    evictedAt="2027-01-15T07:45:00.000000Z",
    replacementUID="uid-web-new",
)


def waiting(created: str, **fields: Any) -> Object:
    status: Object = {}
    name, uid = fields.pop("name", "web-new"), fields.pop("uid", "uid-web-new")
    return replica(name, **{"node": None, "created": created, "status": status, "uid": uid, **fields})


def judge(*objects: Object, now: float = NOW, brakes: BrakeSettings | None = None) -> ResultBrakes:
    return judge_results(context_of(*objects, now=now, brakes=brakes), drawn=True)


def held(found: ResultBrakes) -> list[str]:
    """What is stopped: "" for everything, a namespace, or a workload with its namespace."""
    everything = ["" for _ in found.everywhere]
    return [*everything, *found.namespaces, *("/".join(key) for key in found.workloads)]


@pytest.mark.parametrize(
    ("found", "objects"),
    [
        (True, [waiting("2027-01-15T07:57:59Z"), history(open=[EVICTED])]),
        (False, [waiting("2027-01-15T07:58:00Z"), history(open=[EVICTED])]),
        (False, [waiting("2027-01-15T07:57:59Z")]),
        (False, [waiting("2027-01-15T07:57:59Z"), history(open=[EVICTED | {"controllerUID": "another"}])]),
        (
            False,
            [
                waiting("2027-01-15T07:57:59Z"),
                replica("web-alive", created="2027-01-15T07:00:00Z", uid="uid-gone"),
                history(open=[EVICTED]),
            ],
        ),
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
        (False, [waiting("2027-01-15T07:45:00Z", uid="uid-other"), history(past=[LEFT_WAITING])]),
        (False, [waiting("2027-01-15T07:45:00Z"), history(past=[LEFT_WAITING | {"outcome": "Better"}])]),
    ],
)
def test_a_replacement_that_waits_for_too_long_holds_its_workload(found: bool, objects: list[Object]) -> None:  # noqa: FBT001 - a column of the table
    judged = judge(*objects)
    assert judged.everywhere == ()
    assert held(judged) == ([f"default/{name_of('web')}"] if found else [])


def name_of(app: str) -> str:
    return name_history(WorkloadIdentity("apps/v1", "ReplicaSet", app, f"uid-of-replicaset-{app}"))


def test_only_the_workload_whose_replacement_waits_is_refused() -> None:
    other = replica("api-1", owned_by=owner("ReplicaSet", "api"))
    context = context_of(replica(), other, waiting("2027-01-15T07:57:59Z"), history(open=[EVICTED]))
    found = judge_results(context, drawn=True)
    refused = found.refuse(place_of(context), context)
    assert refused is not None
    assert refused.reason == "default/web-new has been pending for 121 s, more than 120 s"
    assert found.refuse(place_of(context, "api-1"), context) is None
    assert list(found.list_held()) == [f"PendingReplacement, for its workload only: {refused.reason}"]
    assert WEB["uid"] == EVICTED["controllerUID"]


def test_what_is_held_is_said_alike_in_whatever_order_it_was_found() -> None:
    stuck = {("blue", name): Refused("PendingReplacement", f"blue/{name} is pending") for name in "bac"}
    for order in permutations(stuck):
        (said,) = ResultBrakes(workloads={key: stuck[key] for key in order}).list_held()
        assert said == "PendingReplacement, for its workload only and 2 more: blue/a is pending"


def test_pods_of_a_scale_up_are_not_the_replacement() -> None:
    """The first in the scheduler's queue is drawn by the move, and named when it is closed; no other is."""
    first = waiting("2027-01-15T07:57:52Z", resourceVersion="5")
    later = waiting("2027-01-15T07:57:51Z", name="web-hpa", uid="uid-hpa", resourceVersion="6")
    assert judge(first, later, history(open=[EVICTED])).workloads
    landed = replica("web-new", created="2027-01-15T07:57:52Z", uid="uid-web-new")
    assert held(judge(landed, later, history(open=[EVICTED]))) == []
    assert held(judge(landed, later, history(past=[LEFT_WAITING]))) == []


def test_a_workload_is_held_as_long_as_one_that_is_given_up() -> None:
    objects = waiting("2027-01-15T07:45:00Z"), history(past=[LEFT_WAITING])
    born = NOW - 900
    (refused,) = judge(*objects).workloads.values()
    assert refused.until == born + DAY
    assert held(judge(*objects, now=born + DAY - 1)) != []
    assert held(judge(*objects, now=born + DAY)) == []


def stuck(app: str, namespace: str, born: float = NOW - 600) -> list[Object]:
    """A workload whose replacement is pending since then."""
    move = past_move(
        "Pending",
        write_time(born + 300),
        id=f"m-{namespace}-{app}",
        evictedAt=write_time(born - 1),
        replacementUID=f"uid-{namespace}-{app}",
    )
    pod = waiting(
        write_time(born),
        name=f"{app}-new",
        uid=f"uid-{namespace}-{app}",
        namespace=namespace,
        owned_by=owner("ReplicaSet", app),
    )
    past = history(app, past=[move])
    return [pod, past | {"metadata": {**past["metadata"], "namespace": namespace}}]


def all_stuck(*places: tuple[str, str], born: float = NOW - 600) -> list[Object]:
    return [each for app, namespace in places for each in stuck(app, namespace, born)]


SEVERAL = (("a", "blue"), ("b", "blue"), ("c", "red"))


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (SEVERAL[:2], []),
        ((("a", "blue"), ("b", "red")), []),
        (SEVERAL, [""]),
        ((("a", "blue"), ("b", "blue"), ("c", "blue")), ["blue"]),
    ],
)
def test_replacements_of_several_workloads_stop_what_these_have_in_common(
    places: Iterable[tuple[str, str]], expected: list[str]
) -> None:
    workloads = [f"{namespace}/{name_of(app)}" for app, namespace in places]
    assert held(judge(*all_stuck(*places))) == [*expected, *workloads]


def test_everything_is_stopped_for_an_hour_at_most() -> None:
    (refused,) = judge(*all_stuck(*SEVERAL)).everywhere
    born = NOW - 600
    assert refused.until == born + HOUR
    assert refused.reason == (
        "of the last 3 moves 3 workloads have a replacement that is pending: "
        "blue/a-new has been pending for 600 s, more than 120 s"
    )
    assert judge(*all_stuck(*SEVERAL), now=born + HOUR - 1).everywhere
    assert not judge(*all_stuck(*SEVERAL), now=born + HOUR).everywhere


@pytest.mark.parametrize(("well", "stopped"), [(17, True), (18, False)])
def test_only_the_last_moves_are_counted(well: int, stopped: bool) -> None:  # noqa: FBT001 - a column of the table
    """Three pending ones among thousands of moves are no reason to stop everything."""
    moves = [past_move("Better", evictedAt=write_time(NOW - 400 + n), id=f"m-{n}") for n in range(well)]
    found = judge(*all_stuck(*SEVERAL), history("busy", past=moves))
    assert bool(found.everywhere) == stopped
    assert len(found.workloads) == len(SEVERAL)


def test_how_many_workloads_stop_everything_is_set() -> None:
    alone = BrakeSettings(fewest_workloads=1)
    assert held(judge(*all_stuck(("a", "blue")), brakes=alone))[0] == "blue"
    context = context_of(*all_stuck(("a", "blue")), replica("x-1", namespace="blue"), brakes=alone)
    found = judge_results(context, drawn=True)
    assert found.refuse(place_of(context, "x-1", "blue"), context) == found.namespaces["blue"]
    assert len(list(found.list_held())) == 2


def landed(
    *, hits: int = 0, misses: int = 0, closed: float = NOW - HOUR, app: str = "", namespace: str = "default"
) -> Object:
    """A workload's history: first the misses, then the hits, a second after each other."""
    verdicts = [False] * misses + [True] * hits
    past = [past_move("Better", write_time(closed + n), asForecast=hit) for n, hit in enumerate(verdicts)]
    made = history(app or f"app-{closed}", past=past)
    return made | {"metadata": {**made["metadata"], "namespace": namespace}}


def spread(misses: int, **fields: Any) -> list[Object]:
    """The same misses, of many workloads in two namespaces."""
    return [
        landed(misses=1, app=f"miss-{n}", namespace=("blue", "red")[n % 2], **fields) for n in range(misses)
    ]


@pytest.mark.parametrize(
    ("good", "bad", "stopped"), [(45, 5, False), (44, 6, True), (7, 2, False), (7, 3, True), (27, 3, False)]
)
def test_too_few_landings_inside_the_forecast_are_a_brake(good: int, bad: int, stopped: bool) -> None:  # noqa: FBT001 - a column of the table
    rules = [refused.rule for refused in judge(landed(hits=good), *spread(bad)).everywhere]
    assert rules == (["ForecastAstray"] if stopped else [])


def test_only_the_last_landings_count() -> None:
    old = spread(100, closed=NOW - 7200)
    assert judge(*old, landed(hits=50)).everywhere == ()
    (refused,) = judge(*old, *spread(6, closed=NOW - HOUR + 60), landed(hits=44)).everywhere
    assert refused.reason == "44 of the last 50 landings were as forecast, fewer than 90%"


def test_the_forecast_brake_is_released_by_time_alone() -> None:
    """While it is on, nothing is moved, so no new landing would ever release it."""
    bad = [landed(hits=8), *spread(4)]
    for later, expected in ((0.0, 1), (DAY - 3700, 1), (DAY - 3580, 0)):
        assert len(judge(*bad, now=NOW + later).everywhere) == expected


def test_landings_that_nothing_was_to_draw_do_not_count() -> None:
    undrawn = [past_move("Returned", landedOn="n1", evictedAt=f"2027-01-15T07:4{n}:00Z") for n in range(10)]
    assert held(judge(history(past=undrawn), landed(hits=10))) == []
    assert held(judge_results(context_of(*spread(10)), drawn=False)) == []


def test_misses_of_one_workload_hold_it_alone_and_those_of_one_namespace_that_one() -> None:
    one = judge(landed(hits=10), landed(misses=5, app="web"))
    assert held(one) == [f"default/{name_of('web')}"]
    same = [landed(misses=1, app=f"miss-{n}", namespace="blue") for n in range(5)]
    assert held(judge(landed(hits=10), *same)) == ["blue"]


def test_a_pod_without_a_history_is_held_by_its_namespace_alone() -> None:
    same = [landed(misses=1, app=f"miss-{n}") for n in range(5)]
    context: RuleContext = context_of(*same, landed(hits=5, namespace="blue"), replica())
    refused = judge_results(context, drawn=True).refuse(place_of(context), context)
    assert refused is not None
    assert refused.rule == "ForecastAstray"
