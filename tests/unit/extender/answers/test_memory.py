"""Memory fed by events equals memory fed by new lists."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from extender.answers.memory import ClusterMemory
from extender.answers.settings import AnswerSettings
from extender.answers.verbs import PRIORITIZE, SCORES
from reberth.cluster.kinds import HISTORY, NODE, POD, REPLICA_SET, SCORE
from reberth.cluster.rows import PodRow
from reberth.memory.addon_scores import ScoreSettings, WeightedScore
from tests.support.extender.calls import WEB_SET, Known, question
from tests.support.memory.advice import DRAWN, LOAD, NODES, history, node
from tests.support.memory.objects import HOUR, NOW, move, score, web_pod

SETTINGS = AnswerSettings(scores=LOAD)
NOTED = [{"life": HOUR}]


def answers(memory: ClusterMemory, settings: AnswerSettings = SETTINGS) -> list[Any]:
    asked = question([*NODES, "unseen"])
    return [
        json.loads(verb.decide(memory, verb.read(asked), settings, NOW).body) for verb in (PRIORITIZE, SCORES)
    ]


def test_a_list_gives_the_same_memory_as_events() -> None:
    objects = [node("n0", notes=NOTED), node("n1"), DRAWN, score("n1", cpu=50), WEB_SET]
    fed = Known().put(*objects).memory
    listed = Known().list_anew(NODE, *objects[:2]).list_anew(HISTORY, DRAWN)
    listed.list_anew(SCORE, objects[3]).list_anew(REPLICA_SET, objects[4])
    assert answers(listed.memory) == answers(fed)


def test_objects_missing_in_a_new_list_are_forgotten() -> None:
    known = Known().put(node("n0", notes=NOTED), node("n1", notes=NOTED), DRAWN, score("n1", cpu=50))
    known.put(WEB_SET, web_pod("web-1"))
    for kind in (HISTORY, SCORE, REPLICA_SET, POD):
        known.list_anew(kind)
    known.list_anew(NODE, node("n0"))
    assert answers(known.memory) == answers(Known().put(node("n0")).memory)
    assert known.memory.owners == {}


def test_deleted_objects_are_forgotten() -> None:
    objects = [node("n1", notes=NOTED), DRAWN, score("n1", cpu=50), WEB_SET, web_pod("w")]
    known = Known().put(*objects).drop(*objects)
    assert answers(known.memory) == answers(Known().memory)
    assert known.memory.owners == {}


def test_a_node_that_comes_again_under_its_name_has_nothing_of_the_old_one() -> None:
    known = Known().put(node("n0", notes=NOTED), node("n1"))
    known.drop(node("n0", notes=NOTED)).put(node("n2", notes=NOTED), node("n0"))
    assert answers(known.memory) == answers(
        Known().put(node("n0"), node("n1"), node("n2", notes=NOTED)).memory
    )


@given(st.lists(st.tuples(st.sampled_from(NODES), st.booleans(), st.booleans()), max_size=12))
def test_memory_of_nodes_depends_only_on_their_last_events(events: list[tuple[str, bool, bool]]) -> None:
    known, left = Known(), {}
    for name, noted, gone in events:
        left[name] = node(name, notes=NOTED if noted else ())
        known.put(left[name])
        if gone:
            known.drop(left.pop(name))
    assert answers(known.memory) == answers(Known().put(*left.values()).memory)


def test_replicas_count_where_there_is_an_open_move() -> None:
    known = Known().put(*map(node, NODES), DRAWN, WEB_SET)
    assert [entry["Score"] for entry in answers(known.memory)[0]] == [0, 0, 10, 0, 0]
    taken = web_pod("taken", node="n2")
    known.put(taken)
    assert [entry["Score"] for entry in answers(known.memory)[0]] == [10, 10, 10, 10, 10]
    known.drop(taken)
    assert [entry["Score"] for entry in answers(known.memory)[0]] == [0, 0, 10, 0, 0]


def test_a_history_of_another_namespace_draws_nobody() -> None:
    forged = msgspec.structs.replace(
        DRAWN, metadata=msgspec.structs.replace(DRAWN.metadata, namespace="tenant")
    )
    known = Known().put(*map(node, NODES), forged, WEB_SET)
    assert [entry["Score"] for entry in answers(known.memory)[0]] == [10, 10, 10, 10, 10]


def test_pods_of_another_namespace_that_name_the_controller_are_no_replicas() -> None:
    known = Known().put(*map(node, NODES), DRAWN, WEB_SET)
    for name, fields in (("bound", {"node": "n2"}), ("waiting", {"age": 60.0})):
        foreign = web_pod(name, **fields)
        meta = msgspec.structs.replace(foreign.metadata, namespace="tenant")
        foreign = msgspec.structs.replace(foreign, metadata=meta)
        known.put(foreign)
        assert [entry["Score"] for entry in answers(known.memory)[0]] == [0, 0, 10, 0, 0]
        known.drop(foreign)


def test_an_older_pod_that_waits_is_drawn_first_unless_it_is_going() -> None:
    known = Known().put(*map(node, NODES), DRAWN)
    older = web_pod("older", age=60)
    assert [entry["Score"] for entry in answers(known.put(older).memory)[0]] == [10] * 5
    known.put(web_pod("older", age=60, deleted="2026-11-18T12:00:30Z"))
    assert [entry["Score"] for entry in answers(known.memory)[0]] == [0, 0, 10, 0, 0]


def test_a_bound_pod_is_reported_once() -> None:
    bound: list[PodRow] = []
    known = Known(on_bound=bound.append)
    known.put(web_pod("a"), web_pod("made-bound", node="n1"))
    known.put(web_pod("a", node="n2"))
    known.list_anew(POD, web_pod("a", node="n2"), web_pod("b"))
    known.list_anew(POD, web_pod("b", node="n3"))
    assert [(row.name, row.node) for row in bound] == [("a", "n2"), ("b", "n3")]


def test_every_change_is_reported_and_repeats_are_not() -> None:
    rings: list[None] = []
    known = Known(on_change=lambda: rings.append(None))
    known.put(node("n1"), node("n2"))
    assert len(rings) == 2
    known.version = 0
    known.put(node("n1"))  # an event that comes too late
    assert len(rings) == 2
    known.list_anew(NODE, node("n1"))
    assert len(rings) == 3


def test_versions_are_those_of_the_objects() -> None:
    known = Known().put(node("n1"), node("n2"), DRAWN)
    memory, name = known.memory, DRAWN.metadata.name
    assert [memory.version_of(NODE, "", each) for each in ("n1", "n2", "n3")] == [1, 2, 0]
    assert memory.version_of(HISTORY, "shop", name) == 3
    assert memory.version_of(HISTORY, "other", name) == 0


def test_other_scores_that_count_are_taken_without_new_events() -> None:
    other = ScoreSettings((WeightedScore("power", "green", weight=1),))
    objects = [node("n0", notes=NOTED), node("n1"), score("n1", "power", green=100), history(open=(move(),))]
    known = Known().put(*objects)
    known.memory.retune(other)
    assert answers(known.memory) == answers(Known(other).put(*objects).memory)
    assert [entry["Score"] for entry in answers(known.memory)[1]][1] == 10


def test_notes_and_scores_are_counted_until_they_end() -> None:
    known = Known().put(
        node("n0", notes=[{"life": 60}, {"life": HOUR}]), score("n1", cpu=5, valid_until=NOW + 60)
    )
    notes, scores = known.memory.notes, known.memory.scores
    assert (notes.valid(NOW), notes.expired(NOW), scores.valid(NOW), scores.expired(NOW)) == (2, 0, 1, 0)
    later = NOW + 60
    assert (notes.valid(later), notes.expired(later), scores.valid(later), scores.expired(later)) == (
        1,
        1,
        0,
        1,
    )
    known.put(node("n0", annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods": "not JSON"}))
    assert (notes.valid(NOW), notes.expired(NOW)) == (0, 0)


def test_a_pod_that_changes_its_controller_is_a_replica_of_the_new_one() -> None:
    known = Known().put(*map(node, NODES), DRAWN)
    strangers = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "x",
        "uid": "uid-x",
        "controller": True,
    }
    known.put(web_pod("taken", node="n2"), web_pod("taken", node="n2", owned_by=strangers))
    assert [entry["Score"] for entry in answers(known.memory)[0]] == [0, 0, 10, 0, 0]


def test_an_invalid_or_oversized_note_annotation_is_ignored() -> None:
    for text in ("not JSON", "[1]", "x" * 2**20, '{"preferAvoidPods":[' + ",".join(["{}"] * 300_000) + "]}"):
        noted = node("n0", annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods": text})
        memory = Known().put(noted).memory
        assert answers(memory) == answers(Known().put(node("n0")).memory)
        assert memory.notes.valid(NOW) == 0
