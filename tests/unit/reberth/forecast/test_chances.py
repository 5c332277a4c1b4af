"""How likely each node is to get the pod."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.forecast.chances import count_wanted, find_chances


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [(0, 0), (99, 99), (100, 100), (150, 100), (250, 120), (300, 144), (1000, 420), (5000, 500)],
)
def test_how_many_nodes_are_searched_for(nodes: int, wanted: int) -> None:
    assert count_wanted(nodes, 0) == wanted


@pytest.mark.parametrize(("percentage", "wanted"), [(100, 1000), (50, 500), (5, 100)])
def test_a_profile_may_set_its_own_share(percentage: int, wanted: int) -> None:
    assert count_wanted(1000, percentage) == wanted


def test_huge_clusters_are_searched_by_a_twentieth() -> None:
    assert count_wanted(15_000, 0) == 750


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(1, 9))
def test_chances_are_those_of_every_sample_alike(totals: list[int], wanted: int) -> None:
    expected = np.zeros(len(totals))
    samples = list(combinations(range(len(totals)), min(wanted, len(totals))))
    for sample in samples:
        most = max(totals[node] for node in sample)
        winners = [node for node in sample if totals[node] == most]
        expected[winners] += 1 / len(winners) / len(samples)
    assert find_chances(np.array(totals), wanted) == pytest.approx(expected)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 9), st.integers(1, 3))
def test_nodes_that_are_found_and_refused_take_their_share(
    totals: list[int], wanted: int, refused: int
) -> None:
    worst = min(totals) - 1
    every = find_chances(np.array([*totals, *[worst] * refused]), wanted)
    assert find_chances(np.array(totals), wanted, refused=refused) == pytest.approx(every[: len(totals)])


def test_without_feasible_nodes_there_are_no_chances() -> None:
    assert find_chances(np.array([], np.int64), 5).tolist() == []
