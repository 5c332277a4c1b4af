"""The answer of prioritize is JSON that names each node with its grade, whatever names there are."""

import json
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.answers.prioritize_response import Fragments, LocatedNodes

GRADES = st.integers(0, 10)
NAMES = st.text(min_size=1, max_size=40)  # also such as no API server lets in


@given(st.dictionaries(NAMES, GRADES), st.sets(NAMES), st.randoms())
def test_every_node_is_named_with_its_grade_seated_or_not(
    grades: dict[str, int], strangers: set[str], shuffler: random.Random
) -> None:
    fragments = Fragments()
    seats = {node: row for row, node in enumerate(grades)}
    for node, row in seats.items():
        fragments.seat(node, row)
    nodes = [*grades, *(strangers - grades.keys())]
    shuffler.shuffle(nodes)
    rows = np.array([seats.get(node, -1) for node in nodes], dtype=np.intp)
    given_grades = np.array([grades.get(node, 10) for node in nodes], dtype=np.uint8)
    located = LocatedNodes(nodes, rows, are_seen=grades.keys() >= set(nodes))
    written = json.loads(fragments.write(located, given_grades))
    assert written == [{"Host": node, "Score": grades.get(node, 10)} for node in nodes]


def test_a_reused_row_has_the_name_of_its_new_node() -> None:
    fragments = Fragments()
    for node in ("a-long-name", "b"):
        fragments.seat(node, 3)
    located = LocatedNodes(["b"], np.array([3]), are_seen=True)
    written = fragments.write(located, np.array([7], dtype=np.uint8))
    assert json.loads(written) == [{"Host": "b", "Score": 7}]
