import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import ClusterToleration
from federation.failover.toleration import EvictionPace, find_departure, write_taint
from reberth.records import Taint

GONE = Taint("gone", "NoExecute")
CARE = Taint("care", "NoExecute", "high")


def tolerations(*wire: dict[str, Any]) -> tuple[ClusterToleration, ...]:
    return msgspec.convert(wire, tuple[ClusterToleration, ...])


def leaves_at(taints: tuple[Taint, ...], *wire: dict[str, Any], since: float = 100.0) -> float | None:
    found = find_departure(taints, tolerations(*wire), lambda _: since)
    return found and found.at


ANY = {"operator": "Exists"}


@pytest.mark.parametrize(
    ("taints", "wire", "at"),
    [
        ((), (), None),
        ((Taint("gone", "NoSchedule"),), (), None),
        ((GONE,), (), 100.0),
        ((GONE,), (ANY,), None),
        ((GONE,), ({**ANY, "tolerationSeconds": 30},), 130.0),
        ((GONE,), ({**ANY, "tolerationSeconds": 0},), 100.0),
        ((GONE,), ({**ANY, "tolerationSeconds": -5},), 100.0),
        ((GONE,), ({"key": "care", **ANY},), 100.0),
        ((GONE,), ({"key": "gone", **ANY, "effect": "NoSchedule"},), 100.0),
        ((GONE,), ({**ANY, "tolerationSeconds": 30}, ANY), 130.0),
        ((GONE,), (ANY, {**ANY, "tolerationSeconds": 30}), None),
        ((GONE, CARE), ({"key": "gone", **ANY, "tolerationSeconds": 30}, ANY), 130.0),
        ((GONE, CARE), ({"key": "gone", **ANY, "tolerationSeconds": 30},), 100.0),
        ((CARE,), ({"key": "care", "value": "high", "tolerationSeconds": 5},), 105.0),
        ((CARE,), ({"key": "care", "value": "low", "tolerationSeconds": 5},), 100.0),
    ],
)
def test_a_workload_leaves_when_the_first_taint_is_no_longer_tolerated(
    taints: tuple[Taint, ...], wire: tuple[dict[str, Any], ...], at: float | None
) -> None:
    assert leaves_at(taints, *wire) == at


def test_each_taint_has_its_own_time() -> None:
    since = {"gone": 50.0, "care": 10.0}
    found = find_departure(
        (GONE, CARE), tolerations({**ANY, "tolerationSeconds": 7}), lambda one: since[one.key]
    )
    assert found is not None
    assert (found.at, found.taint) == (17.0, CARE)


def test_a_taint_is_written_as_people_write_it() -> None:
    assert (write_taint(GONE), write_taint(CARE)) == ("gone:NoExecute", "care=high:NoExecute")


@given(st.floats(0.1, 100), st.lists(st.floats(0, 5), min_size=1, max_size=40))
def test_evictions_keep_the_rate(rate: float, pauses: list[float]) -> None:
    pace, now, turns = EvictionPace(rate), 0.0, []
    for pause in pauses:
        now += pause
        turns.append(now + pace.reserve(now))
        assert turns[-1] >= now
    gaps = [after - before for before, after in itertools.pairwise(turns)]
    assert all(gap >= 1 / rate - 1e-6 for gap in gaps)
    assert turns[0] == pauses[0]


def test_a_late_eviction_does_not_wait() -> None:
    pace = EvictionPace(0.5)
    assert [pace.reserve(now) for now in (0.0, 0.0, 1.0, 20.0)] == [0.0, 2.0, 3.0, 0.0]
