"""Grades agree with a plain definition, for any order of the objects; and their cost."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reberth.memory.advice import explain, grade_avoiding, grade_scores, rank_avoiding, refuse_nodes
from reberth.memory.index import MemoryIndex
from reberth.records import EvictionHistory, Node, NodePlacementScore, Outcome
from tests.support.memory.advice import (
    DRAWN,
    LOAD,
    NODES,
    NOTED,
    advise,
    avoid,
    history,
    make_index,
    node,
    scored,
)
from tests.support.memory.objects import HOUR, NOW, move, past, score

states = st.fixed_dictionaries(
    {
        "notes": st.lists(
            st.fixed_dictionaries({"strict": st.booleans(), "life": st.sampled_from([-1.0, 60.0])}),
            max_size=2,
        ),
        "unschedulable": st.booleans(),
    }
)
worlds = st.fixed_dictionaries(
    {
        "nodes": st.dictionaries(st.sampled_from(NODES), states, max_size=4),
        "destinations": st.lists(st.sampled_from([*NODES, "unseen"]), unique=True, max_size=5),
        "moved": st.booleans(),
        "past": st.lists(
            st.tuples(
                st.sampled_from(list(Outcome)),
                st.integers(0, 50_000),
                st.sampled_from(NODES),
                st.sampled_from(NODES),
            ),
            max_size=6,
        ),
        "scores": st.dictionaries(st.sampled_from(NODES), st.integers(-120, 120), max_size=4),
    }
)


def objects_of(world: dict[str, Any]) -> tuple[list[Node], EvictionHistory, list[NodePlacementScore]]:
    nodes = [node(name, **world["nodes"].get(name, {})) for name in NODES]
    moves = (
        (move("m1", destinations=tuple(world["destinations"]), planned=NOW - 5),) if world["moved"] else ()
    )
    ended = tuple(past(outcome, ago=ago, node=left, landed_on=to) for outcome, ago, left, to in world["past"])
    return (
        nodes,
        history(open=moves, past=ended),
        [score(name, cpu=cpu) for name, cpu in world["scores"].items()],
    )


def avoiding_as_defined(world: dict[str, Any], asked: list[str]) -> list[int]:
    """The contract's sentences, one after another."""
    shunned = set()
    for name, state in world["nodes"].items():
        if state["unschedulable"] or any(note["life"] > 0 for note in state["notes"]):
            shunned.add(name)
    if world["moved"]:
        for destination in world["destinations"]:
            if destination in asked and destination in NODES and destination not in shunned:
                return [10 if name == destination else 0 for name in asked]
    if all(name in shunned for name in asked):
        return [10] * len(asked)
    return [0 if name in shunned else 10 for name in asked]


def scores_as_defined(world: dict[str, Any], asked: list[str]) -> list[int]:
    grades = []
    for name in asked:
        cpu = world["scores"].get(name, 0)
        cpu = cpu if -100 <= cpu <= 100 else 0
        grade: float = math.floor((100 + 2 * cpu / 2) / 20 + 0.5)
        for outcome, ago, left, landed in world["past"]:
            if (outcome, landed) == (Outcome.WORSE, name) or (outcome, left) == (Outcome.RETURNED, name):
                grade -= 5 * 2 ** (-ago / (6 * HOUR))
        grades.append(min(10, max(0, math.floor(grade + 0.5))))
    return grades


@given(world=worlds, asked=st.lists(st.sampled_from([*NODES, "unseen"]), unique=True))
def test_the_grades_are_those_of_the_definition(world: dict[str, Any], asked: list[str]) -> None:
    nodes, told, scores = objects_of(world)
    index = make_index(*nodes, histories=[told], scores=scores)

    assert avoid(index, nodes=asked) == avoiding_as_defined(world, asked)
    assert scored(index, nodes=asked) == scores_as_defined(world, asked)
    strict = {
        name
        for name, state in world["nodes"].items()
        if any(note["strict"] and note["life"] > 0 for note in state["notes"])
    }
    assert refuse_nodes(advise(index), asked).keys() == strict & set(asked)


@given(world=worlds, asked=st.sets(st.sampled_from(NODES), min_size=1))
def test_the_nodes_of_the_highest_rank_win_whichever_are_asked_about(
    world: dict[str, Any], asked: set[str]
) -> None:
    nodes, told, _ = objects_of(world)
    index = make_index(*nodes, histories=[told])
    ranks = rank_avoiding(index, advise(index), index.locate(NODES))
    rank_of = dict(zip(NODES, ranks.tolist(), strict=True))
    highest = max(rank_of[name] for name in asked)
    some = sorted(asked)
    assert avoid(index, nodes=some) == [10 * (rank_of[name] == highest) for name in some]


@given(world=worlds, data=st.data())
def test_the_same_objects_in_any_order_give_the_same_answer(
    world: dict[str, Any], data: st.DataObject
) -> None:
    nodes, told, scores = objects_of(world)
    feeds: list[Callable[[MemoryIndex], None]] = [
        lambda index: index.put_history(told),
        *(lambda index, one=one: index.put_node(one) for one in nodes),
        *(lambda index, one=one: index.put_score(one) for one in scores),
    ]
    first, second = MemoryIndex(LOAD), MemoryIndex(LOAD)
    for feed in feeds:
        feed(first)
    for feed in [*data.draw(st.permutations(feeds)), *data.draw(st.permutations(feeds))]:
        feed(second)

    assert explain(first, advise(first), NODES) == explain(second, advise(second), NODES)
    assert advise(first) == advise(second)


@given(worlds)
def test_giving_advice_does_not_change_the_index(world: dict[str, Any]) -> None:
    nodes, told, scores = objects_of(world)
    index = make_index(*nodes, histories=[told], scores=scores)

    first = (avoid(index), scored(index), advise(index))

    assert (avoid(index), scored(index), advise(index)) == first


def cpu_seconds(work: Callable[[], object]) -> float:
    """The best of several runs."""
    times = []
    for _ in range(9):
        start = time.process_time()
        for _ in range(10):
            work()
        times.append(time.process_time() - start)
    return min(times)


def test_five_thousand_nodes_cost_about_as_much_as_one_look_at_each() -> None:
    """Grades of both kinds, from forming the opinion on, beside the cheapest loop over the names."""
    names = [f"n{number}" for number in range(5000)]
    index = make_index(
        *(node(name, notes=[NOTED], unschedulable=name.endswith("77")) for name in names[::50]),
        *(node(name) for name in names if not name.endswith("0")),
        histories=[DRAWN],
        scores=[score(name, cpu=number % 100) for number, name in enumerate(names)],
    )
    rows = index.locate(names)
    worths = {name: {"grade": 5, "noted": False} for name in names}

    def answer() -> None:
        formed = advise(index)
        grade_avoiding(index, formed, rows)
        grade_scores(index, formed, rows)

    def look_at_each() -> list[int]:
        return [0 if worths[name]["noted"] else worths[name]["grade"] for name in names]

    assert cpu_seconds(answer) < 2 * cpu_seconds(look_at_each)
    assert np.isin(grade_avoiding(index, advise(index), rows), (0, 10)).all()
