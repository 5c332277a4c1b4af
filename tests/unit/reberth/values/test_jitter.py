"""The jittered pause before a retry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.values.jitter import jittered_backoff


def _highest(low: float, high: float) -> float:
    return max(low, high)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 3.0), (100_000, 3.0)])
def test_pause_doubles_with_each_failure_up_to_the_longest(failures: int, seconds: float) -> None:
    assert jittered_backoff(failures, first=0.5, longest=3.0, draw=_highest) == seconds


@given(failures=st.integers(1, 50), first=st.floats(0.001, 10), longest=st.floats(0.001, 100))
def test_a_jittered_pause_lies_in_the_upper_half_of_its_range(
    failures: int, first: float, longest: float
) -> None:
    most = jittered_backoff(failures, first=first, longest=longest, draw=_highest)

    assert most / 2 <= jittered_backoff(failures, first=first, longest=longest) <= most


def test_server_may_ask_for_a_longer_pause_and_never_for_a_shorter_one() -> None:
    assert jittered_backoff(1, first=1.0, longest=5.0, at_least=60.0) == 60.0
    assert jittered_backoff(1, first=1.0, longest=5.0, at_least=0.1, draw=_highest) == 1.0
