"""The memory index depends only on the objects, not on the order of events."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.node_lifecycle import LeavingNode, judge_node
from reberth.cluster.pods.identity import Signature
from reberth.memory.addon_scores import ScoreSettings, WeightedScore
from reberth.memory.index import UNSEEN, MemoryIndex
from reberth.memory.notes import ANNOTATION, compose_note, read_notes, render_notes
from reberth.records import Node, Outcome, WorkloadIdentity
from tests.support import builders
from tests.support.memory.advice import history
from tests.support.memory.objects import DEPLOYMENT, NOW, REPLICA_SET, WEB, move, past, score

API = Signature("shop", REPLICA_SET, WorkloadIdentity("apps/v1", "Deployment", "api", "uid-api"))


def node(name: str, *, noted: bool = False, annotation: str | None = None, **fields: Any) -> Node:
    """A node, noted for WEB or with an annotation as it is."""
    if noted:
        note = compose_note(WEB, f"m-{name}", policy="balance", reason="rebalance", now=NOW)
        annotation = render_notes(msgspec.structs.replace(empty_notes(), ours=(note,)))
    annotations = {} if annotation is None else {ANNOTATION: annotation}
    return builders.as_record(Node, builders.node(name, annotations=annotations, **fields))


def empty_notes() -> Any:
    return read_notes(None)


def make_index(*nodes: Node) -> MemoryIndex:
    index = MemoryIndex(ScoreSettings())
    for one in nodes:
        index.put_node(one)
    return index


def avoids(
    index: MemoryIndex,
    *names: str,
    noted: Mapping[str, object] = MappingProxyType({}),
    standing: bool = True,
) -> list[bool]:
    grades = index.welcomes(noted, index.locate(names), standing=standing)
    assert set(grades.tolist()) <= {0, 10}
    found: list[bool] = (grades == 0).tolist()
    return found


def test_nodes_get_rows_and_give_them_back() -> None:
    index = make_index(node("n0"), node("n1"), node("n2"))
    index.drop_node("n1")
    index.put_node(node("n3"))
    index.drop_node("unknown")

    assert sorted(index.rows.values()) == [0, 1, 2]
    assert index.locate(["n0", "n1", "n3"]).tolist() == [0, UNSEEN, index.rows["n3"]]


def test_a_row_forgets_the_node_that_had_it() -> None:
    index = make_index(node("gone", noted=True, unschedulable=True))
    index.drop_node("gone")
    index.put_node(node("new"))

    assert avoids(index, "gone", "new") == [False, False]
    assert index.notes.find(WEB, NOW).notes == {}
    assert index.standing == {}


def test_the_index_keeps_only_the_last_state_of_a_node() -> None:
    index = make_index(node("n0", noted=True, unschedulable=True))
    assert index.standing == {"n0": LeavingNode("unschedulable")}
    assert index.notes.find(WEB, NOW).notes.keys() == {"n0"}

    index.put_node(node("n0"))
    assert index.standing == {}
    assert index.notes.find(WEB, NOW).notes == {}


def test_an_unreadable_note_annotation_is_reported_and_holds_no_notes() -> None:
    index = make_index(node("n0", noted=True))
    index.put_node(node("n0", annotation="{nope"))
    assert index.unreadable == {"n0"}
    assert index.notes.find(WEB, NOW).notes == {}

    index.put_node(node("n0", noted=True))
    assert index.unreadable == set()
    assert index.notes.find(WEB, NOW).notes.keys() == {"n0"}


def test_many_nodes_have_room() -> None:
    names = [f"n{number}" for number in range(300)]
    index = make_index(*(node(name, unschedulable=name.endswith("7")) for name in names))

    shunned = avoids(index, *names, "unseen")

    assert [name for name, is_shunned in zip(names, shunned, strict=False) if is_shunned] == names[7::10]
    assert not shunned[-1]


def test_nodes_that_are_leaving_are_avoided_where_that_counts() -> None:
    index = make_index(node("n0", unschedulable=True), node("n1"))

    assert avoids(index, "n0", "n1") == [True, False]
    assert avoids(index, "n0", "n1", standing=False) == [False, False]
    assert avoids(index, "n0", "n1", noted={"n1": None}, standing=False) == [False, True]


@pytest.mark.parametrize(
    ("names", "are_distinct"),
    [([], True), (["n1", "n0", "new"], True), (["n1", "n1"], False), (["new", "n0", "newer"], False)],
)
def test_rows_are_distinct_where_no_node_and_no_stranger_is_named_twice(
    names: list[str], *, are_distinct: bool
) -> None:
    index = make_index(node("n0"), node("n1"))
    assert index.are_distinct(index.locate(names)) is are_distinct


def test_names_that_were_gathered_are_those_that_were_there() -> None:
    names = [f"n{number}" for number in range(300)]
    index = make_index(*map(node, names))
    before = index.rows
    index.gather_names()
    assert index.rows == before
    assert all(gathered is not known for gathered, known in zip(index.rows, before, strict=True))
    index.drop_node("n7")
    index.put_node(node("later"))
    assert index.rows["later"] == before["n7"]


def test_values_are_spread_over_the_nodes_that_have_them() -> None:
    index = make_index(node("n0"), node("n1"))
    rows = index.locate(["n1", "unseen", "n0"])

    assert index.spread({"n0": 2.5, "other": 9.0}, rows).tolist() == [0.0, 0.0, 2.5]
    assert index.spread({}, rows).tolist() == [0.0, 0.0, 0.0]
    assert index.spread({"n0": 1.0}, np.array([], dtype=np.intp)).tolist() == []


def test_a_history_is_found_by_its_workload() -> None:
    index = MemoryIndex(ScoreSettings())
    index.put_history(history(past=(past(Outcome.WORSE),)))

    assert index.history_of(WEB) == history(past=(past(Outcome.WORSE),))
    assert index.history_of(API) is None
    assert index.history_of(Signature("other", REPLICA_SET, DEPLOYMENT)) is None
    born_again = msgspec.structs.replace(DEPLOYMENT, uid="uid-born-again")
    assert index.history_of(Signature("shop", REPLICA_SET, born_again)) is None


def test_open_moves_are_found_by_their_controller() -> None:
    index = MemoryIndex(ScoreSettings())
    index.put_history(history(open=(move("m1"), move("m2", controller_uid="uid-other"), move("m3"))))
    assert [one.id for one in index.moves_of("shop", "uid-rs")] == ["m1", "m3"]
    assert [one.id for one in index.moves_of("shop", "uid-other")] == ["m2"]

    index.put_history(history(open=(move("m3"),)))
    assert [one.id for one in index.moves_of("shop", "uid-rs")] == ["m3"]
    assert index.moves_of("shop", "uid-other") == []

    index.drop_history("shop", history().metadata.name)
    index.drop_history("shop", "unknown")
    assert index.moves_of("shop", "uid-rs") == []
    assert index.history_of(WEB) is None


def test_two_histories_may_know_moves_of_one_controller() -> None:
    index = MemoryIndex(ScoreSettings())
    index.put_history(history(open=(move("m1"),)))
    index.put_history(history(API, open=(move("m2"),)))
    index.drop_history("shop", history().metadata.name)

    assert [one.id for one in index.moves_of("shop", "uid-rs")] == ["m2"]


TENANTS_WEB = msgspec.structs.replace(WEB, namespace="tenant")


def test_a_history_speaks_for_no_pods_of_another_namespace() -> None:
    index, forged = MemoryIndex(ScoreSettings()), history(TENANTS_WEB, open=(move("m1"),))
    index.put_history(forged)
    assert index.moves_of("shop", "uid-rs") == []
    assert [one.id for one in index.moves_of("tenant", "uid-rs")] == ["m1"]


changes = st.lists(
    st.tuples(
        st.sampled_from(["n0", "n1", "n2", "n3"]), st.sampled_from(["put", "noted", "leaving", "bad", "drop"])
    ),
    max_size=20,
)
STATES: dict[str, dict[str, Any]] = {
    "put": {},
    "noted": {"noted": True},
    "leaving": {"unschedulable": True},
    "bad": {"annotation": "?"},
}


def summary(index: MemoryIndex) -> Any:
    names = sorted(index.rows)
    return (
        names,
        avoids(index, *names),
        index.standing,
        index.unreadable,
        index.notes.find(WEB, NOW).notes,
    )


@given(changes)
def test_only_the_last_state_of_each_node_counts(changes: list[tuple[str, str]]) -> None:
    index = MemoryIndex(ScoreSettings())
    for name, change in changes:
        if change == "drop":
            index.drop_node(name)
        else:
            index.put_node(node(name, **STATES[change]))

    last = dict(changes)
    fresh = make_index(
        *(node(name, **STATES[change]) for name, change in sorted(last.items()) if change != "drop")
    )

    assert summary(index) == summary(fresh)
    assert sorted(index.rows.values()) == sorted(set(index.rows.values()))


def test_scores_come_and_go() -> None:
    index = MemoryIndex(ScoreSettings((WeightedScore("load", "cpu"),)))
    index.put_score(score("n0", cpu=40))
    index.put_node(node("n0"))
    rows = index.locate(["n0"])
    assert index.scores.combine({("load", "cpu"): 1}, rows, NOW).tolist() == [40.0]

    index.drop_score("load-n0")
    assert index.scores.combine({("load", "cpu"): 1}, rows, NOW).tolist() == [0.0]


def test_notes_follow_nodes_that_change_their_row() -> None:
    marked = {"n1": None, "n3": None}
    index = make_index(node("n0"), node("n1"))

    def find_marked() -> set[str]:
        names = ["n0", "n1", "n2", "n3"]
        marks = avoids(index, *names, noted=marked)
        return {name for name, is_marked in zip(names, marks, strict=True) if is_marked}

    assert find_marked() == {"n1"}
    index.put_node(node("n0", unschedulable=True))
    assert find_marked() == {"n0", "n1"}
    index.put_node(node("n0"))
    assert find_marked() == {"n1"}
    index.put_node(node("n3"))
    assert find_marked() == {"n1", "n3"}
    index.drop_node("n1")
    index.put_node(node("n2"))
    assert find_marked() == {"n3"}


def test_nodes_that_are_put_together_are_remembered_as_one_by_one() -> None:
    nodes = [
        node("plain"),
        node("noted", noted=True),
        node("leaving", unschedulable=True),
        node("x", annotation="{"),
    ]
    together, one_by_one = MemoryIndex(ScoreSettings()), make_index(*nodes)
    together.put_first((each, judge_node(each)) for each in nodes)
    nobody: dict[str, object] = {}
    for index in (together, one_by_one):
        index.put_node(node("later", unschedulable=True))
    names = [*one_by_one.rows, "unseen"]
    assert together.rows == one_by_one.rows
    assert (
        together.welcomes(nobody, together.locate(names), standing=True).tolist()
        == one_by_one.welcomes(nobody, one_by_one.locate(names), standing=True).tolist()
        == [10, 10, 0, 10, 0, 10]
    )
    assert (together.standing, together.unreadable) == (one_by_one.standing, one_by_one.unreadable)
    assert together.notes.find(WEB, NOW) == one_by_one.notes.find(WEB, NOW)
