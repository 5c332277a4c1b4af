"""Advice for one pod on many nodes: the numbers of the contract."""

import json
import math
from typing import Any

import pytest

from reberth.cluster.pods.identity import BARE_POD
from reberth.config.settings import parse
from reberth.memory.addon_scores import ANNOTATION as WEIGHTS
from reberth.memory.addon_scores import ScoreSettings
from reberth.memory.advice import (
    STRICTLY_NOTED,
    AdviceSettings,
    explain,
    refuse_nodes,
)
from reberth.memory.destination_draw import Replica
from reberth.memory.index import MemoryIndex
from reberth.memory.notes import ANNOTATION
from reberth.records import Node, Outcome, Pod
from reberth.values.errors import SettingsError
from tests.support import builders
from tests.support.memory.advice import (
    DRAWN,
    NODES,
    NOTED,
    advise,
    avoid,
    history,
    make_index,
    node,
    scored,
)
from tests.support.memory.objects import HOUR, MINUTE, NOW, move, past, score, web_pod


@pytest.mark.parametrize(
    ("nodes", "asked", "grades"),
    [
        ([], NODES, [10, 10, 10, 10]),
        ([node("n1", notes=[NOTED])], NODES, [10, 0, 10, 10]),
        ([node("n1", unschedulable=True)], NODES, [10, 0, 10, 10]),
        ([node("n1", notes=[NOTED]), node("n3", unschedulable=True)], NODES, [10, 0, 10, 0]),
        ([node(name, notes=[NOTED]) for name in NODES], NODES, [10, 10, 10, 10]),
        ([node("n1", notes=[NOTED])], ["n1"], [10]),
        ([node("n1", notes=[NOTED])], ["n1", "unseen"], [0, 10]),
        ([node("n1", notes=[NOTED])], [], []),
    ],
)
def test_noted_and_leaving_nodes_get_0_unless_all_would(
    nodes: list[Node], asked: list[str], grades: list[int]
) -> None:
    assert avoid(make_index(*nodes), nodes=asked) == grades


@pytest.mark.parametrize(
    ("taint", "labels"),
    [
        ("DeletionCandidateOfClusterAutoscaler", {}),
        ("startup-taint.cluster-autoscaler.kubernetes.io/x", {}),
        ("dedicated", {"karpenter.sh/nodepool": "default"}),
    ],
)
def test_a_soft_sign_of_leaving_or_youth_is_enough(taint: str, labels: dict[str, str]) -> None:
    soft = node("n1", taints=[{"key": taint, "effect": "PreferNoSchedule"}], labels=labels)

    assert avoid(make_index(soft)) == [10, 0, 10, 10]


@pytest.mark.parametrize(
    ("asked", "grades"),
    [
        (NODES, [0, 0, 10, 0]),
        (["n0", "n1", "n3"], [0, 10, 0]),
        (["n0", "n3"], [10, 10]),
        (["n2"], [10]),
        (["unseen", "n2"], [0, 10]),
    ],
)
def test_the_best_destination_among_the_nodes_asked_gets_10_and_all_others_0(
    asked: list[str], grades: list[int]
) -> None:
    assert avoid(make_index(histories=[DRAWN]), nodes=asked) == grades


@pytest.mark.parametrize(
    ("nodes", "grades"),
    [
        ([node("n2", unschedulable=True)], [0, 10, 0, 0]),
        ([node("n2", notes=[NOTED])], [0, 10, 0, 0]),
        ([node("n1", unschedulable=True), node("n2", notes=[NOTED])], [10, 0, 0, 10]),
    ],
)
def test_a_destination_with_a_note_by_now_gets_no_draw(nodes: list[Node], grades: list[int]) -> None:
    assert avoid(make_index(*nodes, histories=[DRAWN])) == grades


def test_an_unknown_destination_gets_no_draw() -> None:
    unseen = history(open=(move("m1", destinations=("unseen",)),))

    assert avoid(make_index(histories=[unseen]), nodes=["n0", "unseen"]) == [10, 10]


def test_a_pod_beyond_the_open_moves_is_only_kept_from_noted_nodes() -> None:
    index = make_index(node("n0", notes=[NOTED]), histories=[DRAWN])
    older = Replica(NOW - 1, "older", waiting=True)

    assert avoid(index, advise(index, replicas=[older])) == [0, 10, 10, 10]


def test_a_bound_replacement_ends_the_draw() -> None:
    index = make_index(histories=[DRAWN])
    replacement = Replica(NOW - 2, "replacement", bound=True)

    assert avoid(index, advise(index, replicas=[replacement])) == [10, 10, 10, 10]


def test_pods_of_other_controllers_are_not_drawn() -> None:
    other = web_pod(owned_by=builders.owner("ReplicaSet", "web-77aa", uid="uid-next-rs"))
    index = make_index(histories=[DRAWN])

    assert avoid(index, advise(index, other)) == [10, 10, 10, 10]


def test_a_note_holds_for_the_service_or_for_the_template() -> None:
    index = make_index(node("n0", notes=[{"for_service": True}]), node("n1", notes=[{}]))
    labels = {"pod-template-hash": "77aa"}
    next_one = web_pod(owned_by=builders.owner("ReplicaSet", "web-77aa", uid="uid-next-rs"), labels=labels)

    assert avoid(index) == [0, 0, 10, 10]
    assert avoid(index, advise(index, next_one)) == [0, 10, 10, 10]


def test_a_strict_note_refuses_with_one_constant_reason() -> None:
    index = make_index(
        node("n0", notes=[{"strict": True}]),
        node("n1", notes=[{}, {"strict": True, "life": MINUTE}]),
        node("n2", notes=[{}]),
    )

    assert refuse_nodes(advise(index), NODES) == {"n0": STRICTLY_NOTED, "n1": STRICTLY_NOTED}
    assert refuse_nodes(advise(index, now=NOW + MINUTE), NODES) == {"n0": STRICTLY_NOTED}
    assert refuse_nodes(advise(index), ["n1", "n3", "unseen"]) == {"n1": STRICTLY_NOTED}
    assert refuse_nodes(advise(index, now=NOW + HOUR), NODES) == {}


def test_history_alone_refuses_nothing() -> None:
    given_up = history(
        past=tuple(past(Outcome.WORSE, ago=n, landed_on="n1") for n in range(20)),
        given_up_until="2027-01-01T00:00:00Z",
    )
    index = make_index(histories=[given_up])

    assert refuse_nodes(advise(index), NODES) == {}
    assert avoid(index) == [10, 10, 10, 10]


@pytest.mark.parametrize(
    ("cpu", "grade"),
    [
        (-100, 0),
        (-91, 0),
        (-90, 1),
        (-11, 4),
        (-10, 5),
        (0, 5),
        (9, 5),
        (10, 6),
        (89, 9),
        (90, 10),
        (100, 10),
    ],
)
def test_a_score_is_graded_to_the_nearest_tenth(cpu: int, grade: int) -> None:
    assert scored(make_index(scores=[score("n0", cpu=cpu)])) == [grade, 5, 5, 5]


@pytest.mark.parametrize(
    ("age", "loss"), [(0.0, 5.0), (6 * HOUR, 2.5), (12 * HOUR, 1.25), (24 * HOUR, 0.3125), (-MINUTE, 5.0)]
)
@pytest.mark.parametrize(
    ("outcome", "fields", "loser"),
    [
        (Outcome.WORSE, {"node": "n3", "landed_on": "n1"}, 1),
        (Outcome.RETURNED, {"node": "n1", "landed_on": "n1"}, 1),
        (Outcome.RETURNED, {"node": "n1"}, 1),
    ],
)
def test_a_bad_landing_costs_half_after_six_hours(
    age: float, loss: float, outcome: Outcome, fields: dict[str, Any], loser: int
) -> None:
    index = make_index(
        histories=[history(past=(past(outcome, ago=age, **fields),))],
        scores=[score(name, cpu=60) for name in NODES],
    )

    expected = [8, 8, 8, 8]
    expected[loser] = math.floor(8 - loss + 0.5)
    assert scored(index) == expected


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.WORSE, Outcome.RETURNED}))
def test_no_other_outcome_costs_points(outcome: Outcome) -> None:
    index = make_index(histories=[history(past=(past(outcome, landed_on="n1"),))])

    assert scored(index) == [5, 5, 5, 5]


def test_a_move_that_landed_nowhere_costs_no_node_points() -> None:
    assert scored(make_index(histories=[history(past=(past(Outcome.WORSE),))])) == [5, 5, 5, 5]


def test_losses_add_up_and_no_grade_is_below_0() -> None:
    bad = tuple(past(Outcome.WORSE, ago=n, landed_on="n1") for n in range(4))
    index = make_index(histories=[history(past=bad)], scores=[score("n1", cpu=100)])

    assert advise(index).losses["n1"] == pytest.approx(20, rel=1e-3)
    assert scored(index) == [5, 0, 5, 5]


def test_a_pod_may_choose_its_weights() -> None:
    index = make_index(scores=[score("n0", cpu=100)])
    upside_down = web_pod(annotations={WEIGHTS: "load/cpu=-10"})
    bad = web_pod(annotations={WEIGHTS: "load/cpu=11"})

    assert scored(index, advise(index, upside_down)) == [0, 5, 5, 5]
    assert scored(index, advise(index, bad)) == [10, 5, 5, 5]


def everything() -> MemoryIndex:
    return make_index(
        node("n0", notes=[{"strict": True}]),
        node("n3", unschedulable=True),
        histories=[
            history(
                open=(move("m1", destinations=("n1",), planned=NOW - 5),),
                past=(past(Outcome.RETURNED, node="n2"),),
            )
        ],
        scores=[score("n0", cpu=100)],
    )


@pytest.mark.parametrize(
    ("off", "avoided", "grades", "refused"),
    [
        ([], [0, 10, 0, 0], [10, 5, 0, 5], ["n0"]),
        (["draw"], [0, 10, 10, 0], [10, 5, 0, 5], ["n0"]),
        (["draw", "notes"], [10, 10, 10, 0], [10, 5, 0, 5], []),
        (["draw", "standing"], [0, 10, 10, 10], [10, 5, 0, 5], ["n0"]),
        (["history"], [0, 10, 0, 0], [10, 5, 5, 5], ["n0"]),
        (["scores"], [0, 10, 0, 0], [5, 5, 0, 5], ["n0"]),
        (["draw", "notes", "standing", "history", "scores"], [10] * 4, [5] * 4, []),
    ],
)
def test_each_signal_can_be_switched_off(
    off: list[str], avoided: list[int], grades: list[int], refused: list[str]
) -> None:
    index = everything()
    formed = advise(index, **dict.fromkeys(off, False))

    assert avoid(index, formed) == avoided
    assert scored(index, formed) == grades
    assert list(refuse_nodes(formed, NODES)) == refused


def test_settings_are_read_from_yaml() -> None:
    content = b"apiVersion: reberth.dev/v1alpha1\nkind: AdviceSettings\ndraw: false\nlossHalfLife: 3h\n"
    read = parse(content, AdviceSettings)

    assert read == AdviceSettings(draw=False, loss_half_life=read.loss_half_life)
    assert read.loss_half_life == 3 * HOUR


def test_an_unknown_signal_is_refused() -> None:
    with pytest.raises(SettingsError, match="did you mean draw"):
        parse(b"apiVersion: reberth.dev/v1alpha1\nkind: AdviceSettings\ndraws: false\n", AdviceSettings)


def test_a_pod_without_a_signature_is_only_kept_from_nodes_that_leave() -> None:
    bare = builders.as_record(Pod, builders.pod("bare", namespace="shop"))
    index = everything()
    formed = advise(index, bare)

    assert formed.signature == BARE_POD
    assert avoid(index, formed) == [10, 10, 10, 0]
    assert scored(index, formed) == [10, 5, 5, 5]
    assert refuse_nodes(formed, NODES) == {}


def test_the_reasons_are_put_into_words() -> None:
    index = everything()
    foreign = json.dumps(
        {
            "preferAvoidPods": [
                {
                    "podSignature": {"podController": {"uid": "uid-rs", "controller": True}},
                    "evictionTime": "2026-11-18T11:30:00Z",
                    "reason": "poor",
                }
            ]
        }
    )
    index.put_node(node("n4", annotations={ANNOTATION: foreign}))
    index.put_node(node("n5", annotations={ANNOTATION: "?"}))
    index.put_node(node("n6", labels={"karpenter.sh/nodepool": "default"}))
    index.put_score(score("n5", cpu=500))
    asked = [*NODES, "n4", "n5", "n6", "unseen"]
    bad_choice = web_pod(annotations={WEIGHTS: "?"})

    verdicts = explain(index, advise(index, bad_choice), asked)

    choice = "the annotation is not of the form source/name=weight, ..."
    elsewhere = "move m1 draws the pod to other destinations"
    missing = "load/cpu x 2: no add-on has written this score"
    assert [(one.node, one.avoid, one.scores, one.refused, one.reasons) for one in verdicts] == [
        (
            "n0",
            0,
            10,
            STRICTLY_NOTED,
            (
                elsewhere,
                "strictly avoided until 2026-11-18T13:00:00Z by policy balance: rebalance",
                choice,
                "load/cpu x 2: 100",
            ),
        ),
        ("n1", 10, 5, None, ("move m1 draws the pod to destination 1", choice, missing)),
        (
            "n2",
            0,
            0,
            None,
            (
                elsewhere,
                choice,
                missing,
                "5.00 points off: an earlier move of this workload here had a bad outcome",
            ),
        ),
        ("n3", 0, 5, None, (elsewhere, "the node is leaving: unschedulable", choice, missing)),
        (
            "n4",
            0,
            5,
            None,
            (
                elsewhere,
                "avoided until 2026-11-18T12:30:00Z by a note of another program: poor",
                choice,
                missing,
            ),
        ),
        (
            "n5",
            0,
            5,
            None,
            (
                "the node's annotation preferAvoidPods cannot be read",
                elsewhere,
                choice,
                "load/cpu x 2: the score is not between -100 and 100",
            ),
        ),
        (
            "n6",
            0,
            5,
            None,
            (elsewhere, "the node is young: karpenter.sh/initialized is missing", choice, missing),
        ),
        ("unseen", 0, 5, None, ("the node is not in the cache yet", elsewhere, choice, missing)),
    ]


def test_an_explanation_has_no_reasons_without_notes_or_scores() -> None:
    index = make_index(settings=ScoreSettings())
    formed = advise(index, scores=False, standing=False)

    assert [one.reasons for one in explain(index, formed, NODES)] == [(), (), (), ()]
