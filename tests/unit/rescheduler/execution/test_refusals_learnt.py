"""Moves that are refused cost the others nothing: a daemon in virtual time, on a cluster that refuses."""

from itertools import pairwise

import pytest

from reberth.values import errors
from reberth.values.errors import ApiError
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support.rescheduler.refusing_cluster import Crowd, SimulatedLeader, list_starts

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]

DENIED = ("app-00", "app-01", "app-02", "app-03", "app-04")
# The pauses between the tries: they double, up to an hour.
STARTS = [0, 1, 3, 7, 15, 31, 63, 123]
HOUR = 3600.0


def deny(app: str, _at: float) -> ApiError | None:
    text = 'admission webhook "keep.example" denied the request: not today'
    return errors.Forbidden("evict", text) if app in DENIED else None


def see_starts(found: list[float], until: float) -> None:
    """A try comes no earlier than its time, and none comes oftener."""
    pauses = [after - before for before, after in pairwise(STARTS)]
    seen = [after - before for before, after in pairwise(found)]
    assert all(had >= pause for had, pause in zip(seen, pauses, strict=False)), found
    assert len(found) <= sum(start <= until for start in STARTS)


async def test_workloads_that_a_webhook_denies_do_not_keep_the_others() -> None:
    world = Crowd(40, deny)
    await SimulatedLeader(world, ReschedulerPolicy(mode="apply")).lead(2 * HOUR)
    assert world.moved == set(world.apps) - set(DENIED)
    for app in DENIED:
        see_starts(list(list_starts(world.tries, app)), 120)
