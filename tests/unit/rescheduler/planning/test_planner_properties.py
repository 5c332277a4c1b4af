"""Properties of every plan, on random clusters, budgets and policies."""

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reberth.cluster.object_files import load_objects
from reberth.forecast.forecast import Forecast, forecast_replacement
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View, view_snapshot
from reberth.values.pod_limit import PodLimit
from reberth.values.quantity import nanos
from rescheduler.model.plan import BETTER_PREFERENCES, Plan
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.output import write_json
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support.rescheduler.fleets import NO_LIMITS, draw_objects, draw_policy
from tests.support.rescheduler.plans import MODEL, NOW, PLAIN_MODEL, VERSION, Object, carry_out, make_plan

CYCLE = 300.0
MOST_ROUNDS = 40

seeds = st.integers(0, 2**32)
SAMPLE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))


def see(objects: list[Object]) -> View:
    return view_snapshot(SnapshotFacts(load_objects(objects, now=NOW, version=VERSION).snapshot, VERSION))


def judge_sound(seed: int) -> int:
    """One cluster, one policy, one plan: every promise is kept. Gives how many moves it has."""
    dice = Random(seed)
    objects, asked = draw_objects(dice), draw_policy(dice)
    model = dice.choice((MODEL, PLAIN_MODEL))
    made, _ = make_plan(objects, asked, PlanMemory() if dice.random() < 0.5 else None, model=model)
    assert_feasible_in_order(objects, made)
    assert_within_capacity(objects, made)
    assert_within_budgets(objects, made)
    assert_within_limits(made, asked)
    assert_no_worse(made)
    assert_nothing_undone(made)
    shuffled = dice.sample(objects, len(objects))
    again, _ = make_plan(shuffled, asked, None, model=model)
    straight, _ = make_plan(objects, asked, None, model=model)
    assert write_json(again) == write_json(straight)
    return len(made.moves)


def assert_feasible_in_order(objects: list[Object], made: Plan) -> None:
    view = see(objects)
    for move in made.moves:
        place = view.facts.snapshot.pods.by_uid(move.uid)
        assert place is not None
        found = forecast_replacement(place, view, MODEL.scheduler)
        assert isinstance(found, Forecast)
        places = [view.nodes.index[each.node] for each in move.destinations]
        assert set(places) <= set(found.feasible.tolist())
        assert view.nodes.names[view.node[place]] == move.from_
        view = view.with_pod_on(place, places[0])


def assert_within_capacity(objects: list[Object], made: Plan) -> None:
    """No node holds more than it offers, unless it did before and nothing was added."""
    after = carry_out(objects, made)
    entered = {move.destinations[0].node for move in made.moves}
    for name in entered:
        node = next(each for each in objects if each["kind"] == "Node" and each["metadata"]["name"] == name)
        pods = [each for each in after if each["kind"] == "Pod" and each["spec"]["nodeName"] == name]
        assert len(pods) <= int(node["status"]["allocatable"]["pods"])
        for resource in ("cpu", "memory"):
            used = sum(_request(pod, resource) for pod in pods)
            assert used <= nanos(node["status"]["allocatable"][resource])


def assert_within_budgets(objects: list[Object], made: Plan) -> None:
    for budget in (each for each in objects if each["kind"] == "PodDisruptionBudget"):
        key = (budget["metadata"]["namespace"], budget["metadata"]["name"])
        moved = [move for move in made.moves if _app(move.pod) == key]
        assert len(moved) <= budget["status"]["disruptionsAllowed"]


def assert_within_limits(made: Plan, asked: ReschedulerPolicy) -> None:
    limits = asked.limits
    assert len(made.moves) <= _most(limits.per_cycle)
    for counted, most in (
        (Counter(move.from_ for move in made.moves), limits.per_node),
        (Counter(move.destinations[0].node for move in made.moves), limits.per_node),
        (Counter(_app(move.pod) for move in made.moves), limits.per_workload),
        (Counter(_app(move.pod)[0] for move in made.moves), limits.per_namespace),
    ):
        assert max(counted.values(), default=0) <= _most(most)
    for rate in limits.rates.cluster:
        assert len(made.moves) <= rate.limit


def assert_no_worse(made: Plan) -> None:
    """No plan makes a cluster worse; for the sake of preferences nodes may be used less evenly."""
    before, after = made.score.before, made.score.after
    if any(move.policy == BETTER_PREFERENCES for move in made.moves):
        assert after[:3] <= before[:3]
    else:
        assert after <= before


def assert_nothing_undone(made: Plan) -> None:
    ways = {(_app(move.pod), move.from_, move.destinations[0].node) for move in made.moves}
    assert not any((app, to, start) in ways for app, start, to in ways)
    assert len({move.uid for move in made.moves}) == len(made.moves)


def judge_quiet(seed: int, per_cycle: int | None) -> int:
    """Plans that are carried out come to an end. Gives how many rounds that took.

    Budgets are limits, too, and are spent anew in every round: here there are none.
    """
    dice = Random(seed)
    objects = [each for each in draw_objects(dice) if each["kind"] != "PodDisruptionBudget"]
    asked = draw_policy(dice, **NO_LIMITS | {"perCycle": per_cycle})
    memory, moves = None, 0
    for rounds in range(MOST_ROUNDS):
        now = NOW + rounds * CYCLE
        made, memory = make_plan(objects, asked, memory, now=now)
        if not made.moves:
            break
        moves += len(made.moves)
        objects = carry_out(objects, made, now=now)
    allowed = 3 if per_cycle is None else math.ceil(moves / per_cycle) + 3
    assert rounds <= allowed, f"{moves} moves in {rounds} rounds"
    return rounds


@SAMPLE
@given(seeds)
def test_every_plan_keeps_its_promises(seed: int) -> None:
    judge_sound(seed)


@SAMPLE
@given(seeds)
def test_without_limits_planning_ends_within_three_rounds(seed: int) -> None:
    judge_quiet(seed, None)


@SAMPLE
@given(seeds, st.integers(1, 4))
def test_with_a_limit_planning_ends_a_few_rounds_after_the_moves_need(seed: int, per_cycle: int) -> None:
    judge_quiet(seed, per_cycle)


def test_the_drawn_clusters_are_worth_a_plan() -> None:
    """A proof about plans without moves would prove nothing."""
    moves = [judge_sound(seed) for seed in range(40)]
    assert sum(count > 0 for count in moves) > 10


@pytest.mark.soak
@MANY
@given(seeds)
def test_every_plan_of_many_keeps_its_promises(seed: int) -> None:
    judge_sound(seed)


@pytest.mark.soak
@MANY
@given(seeds, st.one_of(st.none(), st.integers(1, 4)))
def test_planning_of_many_ends(seed: int, per_cycle: int | None) -> None:
    judge_quiet(seed, per_cycle)


def _request(pod: Object, resource: str) -> int:
    return sum(nanos(each["resources"]["requests"][resource]) for each in pod["spec"]["containers"])


def _app(pod: str) -> tuple[str, str]:
    namespace, _, name = pod.partition("/")
    return namespace, name.split("-")[0]


def _most(limit: PodLimit | int | None) -> float:
    if limit is None:
        return math.inf
    return limit.number if isinstance(limit, PodLimit) else limit
