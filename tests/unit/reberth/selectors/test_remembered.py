"""Compiled selectors are remembered, but large ones do not fill the memory."""

import tracemalloc
from collections.abc import Callable

import pytest

from reberth.records import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from reberth.selectors import compile_selector
from reberth.selectors.labels import MOST_REMEMBERED
from reberth.selectors.nodes import compile_node_selector, compile_preferences

TRIED, MOST = 2_000, 4 * 2**20
A_FEW, REMEMBERED, BOUND = 500, 2**14, 48 * 2**20


def _values(number: int, count: int) -> tuple[str, ...]:
    return tuple(f"{number}-{each}".ljust(60, "x") for each in range(count))


def _labels(number: int, count: int) -> object:
    asked = LabelSelectorRequirement("app", "In", _values(number, count))
    return compile_selector(LabelSelector(match_expressions=(asked,)))


def _term(number: int, count: int) -> NodeSelectorTerm:
    asked = NodeSelectorRequirement("zone", "In", _values(number, count))
    return NodeSelectorTerm(match_expressions=(asked,))


def _rule(number: int, count: int) -> object:
    return compile_node_selector(NodeSelector((_term(number, count),)))


def _preferences(number: int, count: int) -> object:
    return compile_preferences((PreferredSchedulingTerm(1, _term(number, count)),))


ALL = pytest.mark.parametrize("compiled", [_labels, _rule, _preferences])


@ALL
def test_thousands_of_large_selectors_take_little_memory(compiled: Callable[[int, int], object]) -> None:
    compiled(0, 200)
    tracemalloc.start()
    try:
        for number in range(TRIED):
            compiled(number, 200)
        assert tracemalloc.get_traced_memory()[0] <= MOST
    finally:
        tracemalloc.stop()


@ALL
def test_all_that_are_remembered_are_bounded_whoever_writes_them(
    compiled: Callable[[int, int], object],
) -> None:
    tracemalloc.start()
    try:
        for number in range(TRIED, TRIED + A_FEW):
            compiled(number, MOST_REMEMBERED - 1)
        assert tracemalloc.get_traced_memory()[0] / A_FEW * REMEMBERED <= BOUND
    finally:
        tracemalloc.stop()


@ALL
@pytest.mark.parametrize("count", [1, 200])
def test_what_is_used_again_is_not_compiled_again(compiled: Callable[[int, int], object], count: int) -> None:
    assert compiled(1, count) is compiled(1, count)
