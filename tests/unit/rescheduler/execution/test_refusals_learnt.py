"""Moves that are refused cost the others nothing: a daemon in virtual time, on a cluster that refuses."""

from itertools import pairwise

import pytest

from reberth.values import errors
from reberth.values.duration import Duration
from reberth.values.errors import ApiError
from rescheduler.planning.policy_file import PolicySettings, ReschedulerPolicy
from rescheduler.policies.broken_rules import RuleSettings
from rescheduler.policies.lasting_mismatches import NodeAffinitySettings
from tests.support.rescheduler.plans import policy
from tests.support.rescheduler.refusing_cluster import (
    Crowd,
    SimulatedLeader,
    count_fullest,
    list_starts,
)

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]

DENIED = ("app-00", "app-01", "app-02", "app-03", "app-04")
# The minutes of the tries: the pauses between them double, up to an hour.
STARTS = [0, 1, 3, 7, 15, 31, 63, 123]
HOUR = 3600.0
AT_ONCE = PolicySettings(broken_rules=RuleSettings(node_affinity=NodeAffinitySettings(lasting=Duration(0))))
APPLY = ReschedulerPolicy(mode="apply", policies=AT_ONCE)
QUICK = {"brokenRules": {"nodeAffinity": {"for": "0s"}}}


def deny(app: str, _at: float) -> ApiError | None:
    text = 'admission webhook "keep.example" denied the request: not today'
    return errors.Forbidden("evict", text) if app in DENIED else None


def see_pauses(found: list[float]) -> None:
    """A try comes no earlier than its time, so there are no more than its times allow."""
    pauses = [after - before for before, after in pairwise(STARTS)]
    seen = [after - before for before, after in pairwise(found)]
    assert 1 < len(found) <= sum(start <= found[-1] for start in STARTS)
    assert all(had >= pause for had, pause in zip(seen, pauses, strict=False)), found


def see_others_moved(world: Crowd) -> None:
    assert world.moved == set(world.apps) - set(DENIED)
    for app in DENIED:
        see_pauses(list(list_starts(world.tries, app)))
    assert count_fullest(world.tries, 59.9) <= 2


async def test_workloads_that_a_webhook_denies_do_not_keep_the_others() -> None:
    """Five disruptions every ten minutes are what the default policy allows: 35 take seven times that."""
    world = Crowd(40, deny)
    await SimulatedLeader(world, APPLY).lead(1.4 * HOUR)
    see_others_moved(world)
    granted = [one.at for one in world.tries if one.granted]
    assert min(granted) < 180  # two tries a minute find out which five are denied
    assert max(granted) - min(granted) < 6 * (605 + 60) + 10  # a cycle begins once a minute


@pytest.mark.parametrize("term", [1, 61, 400], ids=lambda term: f"killed after {term} s")
async def test_leaders_that_are_killed_one_after_the_other_do_not_forget(term: float) -> None:
    world = Crowd(40, deny)
    for seconds in (term, term, term, 1.4 * HOUR):
        await SimulatedLeader(world, APPLY).lead(seconds)
    see_others_moved(world)


async def test_a_webhook_that_cannot_be_called_is_asked_by_one_workload_at_a_time() -> None:
    """It comes back after half an hour, and then nobody waits for long."""
    text = 'Internal error occurred: failed calling webhook "hook.example": connection refused'

    def fail(app: str, at: float) -> ApiError | None:
        return errors.ServerFault("evict", text) if app in DENIED and at < HOUR / 2 else None

    world = Crowd(20, fail)
    await SimulatedLeader(world, APPLY).lead(1.5 * HOUR)
    assert world.moved == set(world.apps)
    refused = [one for one in world.tries if not one.granted]
    met = len({one.app for one in refused})
    assert len(refused) <= met + 5  # each meets it once; then they ask in turn, with pauses that double
    assert count_fullest(world.tries, 59.9) <= 2
    last = [one for one in world.tries if one.granted and one.app in DENIED]
    assert max(one.at for one in last) < HOUR / 2 + 45 * 60


async def test_if_everything_is_denied_few_moves_are_refused() -> None:
    """Workloads that were moved before are trusted until two of them are refused."""
    began = 30.0

    def fail(_app: str, at: float) -> ApiError | None:
        denial = 'admission webhook "all.example" denied the request: freeze'
        return errors.Forbidden("evict", denial) if at > began else None

    world = Crowd(90, fail, proven=True)
    limits = {"rates": {"cluster": ["20 per 1m"]}, "perNode": None}
    eager = policy(buffer="0%", limits=limits, policies=QUICK)
    await SimulatedLeader(world, eager).lead(1200)
    refused = [one for one in world.tries if not one.granted]
    assert len(world.moved) == 20
    assert 2 < len(refused) <= 2 * 20
    assert count_fullest(world.tries, 59.9) <= 2


async def test_a_healthy_fleet_of_unknown_workloads_is_not_limited() -> None:
    """Tries are given back when evictions are granted, so all are moved in seconds, not in half minutes."""
    world = Crowd(60, lambda _app, _at: None)
    boundless = policy(
        limits={"perNode": None, "perWorkload": None},
        policies=QUICK,
    )
    await SimulatedLeader(world, boundless).lead(30)
    assert len(world.moved) == 60
