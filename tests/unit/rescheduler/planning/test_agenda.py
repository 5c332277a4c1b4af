"""The order of candidates, and how a move changes it."""

import dataclasses
from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reberth.cluster.columns import Indices
from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import View, view_snapshot
from rescheduler.planning import agenda
from rescheduler.planning.agenda import Agenda, set_agenda
from rescheduler.policies.proposal import Policy, Promises, Proposals
from tests.support import builders
from tests.support.rescheduler.plans import NOW, VERSION, replica

PODS = 600
OFTEN = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


class Drawn:
    """A policy that promises what it was told, and then something else."""

    def __init__(self, name: str, first: Promises, then: Promises | None) -> None:
        self.name, self.first, self.then = name, first, then

    def propose(self, view: View) -> list[Proposals]:
        del view
        pods = np.flatnonzero(self.first > -1).astype(np.int32)
        return [Proposals(self.name, self.name, pods, self.first[pods], str)]

    def weigh(self, pods: Indices, view: View) -> Promises | None:
        del view
        return None if self.then is None else self.then[pods]


class Demanding(Drawn):
    """Demands what it proposes."""

    def propose(self, view: View) -> list[Proposals]:
        return [dataclasses.replace(each, demand=100) for each in super().propose(view)]


def see() -> View:
    pods = [replica(f"p-{number:03}", "p", "a", cpu="1m") for number in range(PODS)]
    node = builders.node("a", pods=PODS)
    return view_snapshot(
        SnapshotFacts(load_objects([node, *pods], now=NOW, version=VERSION).snapshot, VERSION)
    )


SEEN = see()


def order_of(first: Promises, then: Promises | None, *more: Policy) -> tuple[Agenda, Agenda]:
    policies: list[Policy] = [Drawn("drawn", first, then), *more]  # type: ignore[list-item] # asked for no more
    before = set_agenda(policies, SEEN, frozenset(), {})
    return before, before.weigh_again(SEEN)


@OFTEN
@given(st.integers(0, 2**32))
def test_the_next_proposals_have_the_order_of_sorting_all_again(seed: int) -> None:
    """What is next is weighed anew; the others stand by what they promised."""
    dice = Random(seed)
    first = np.array([dice.randrange(100) for _ in range(PODS)], np.float64)
    then = np.array([dice.randrange(100) for _ in range(PODS)], np.float64)
    before, after = order_of(first, then)
    near = before.pods[: agenda._NEAR]
    known = first.copy()
    known[near] = then[near]
    assert after.pods.tolist() == sorted(range(PODS), key=lambda pod: (-known[pod], pod))
    assert sorted(each.write().pod for each in after) == list(range(PODS))


def test_a_policy_whose_promises_stay_keeps_its_order() -> None:
    first = np.arange(PODS, dtype=np.float64)
    before, after = order_of(first, None)
    assert after.pods.tolist() == before.pods.tolist() == list(range(PODS))[::-1]


def test_nothing_left_to_weigh_is_nothing() -> None:
    before, _ = order_of(np.zeros(PODS), None)
    assert len(before.since(PODS).weigh_again(SEEN)) == 0


def test_pods_at_the_front_with_an_outdated_promise_are_appraised_again() -> None:
    """Nobody promises anything any more: so nobody is there who once promised most of those that are left."""
    first = np.arange(PODS, dtype=np.float64)
    _, after = order_of(first, np.zeros(PODS))
    assert after.pods[:16].tolist() == list(range(16))


def test_demanded_moves_stay_before_moves_that_promise_more() -> None:
    """Of the next ones some are demanded; the others are weighed anew, and stand among those that follow."""
    demanded = np.full(PODS, -1.0)
    demanded[:10] = 1.0
    first = np.arange(PODS, dtype=np.float64)
    _, after = order_of(first, first[::-1].copy(), Demanding("demanding", demanded, demanded))
    assert after.pods[:10].tolist() == list(range(10))
    assert after.columns.classes[after.order].tolist() == [0] * 10 + [2] * PODS
    promised = -after.turns.real[10:]
    assert (np.diff(promised) <= 0).all()
