"""Which moves are applied or only recommended, and that the latter never affect the former."""

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reberth.cluster.object_files import load_objects
from rescheduler.planning.explain import explain_pod
from tests.support import builders
from tests.support.rescheduler import guardrails
from tests.support.rescheduler.fleets import draw_objects, draw_policy
from tests.support.rescheduler.plans import MODEL, NOW, VERSION, Object, make_plan, moves_of, policy, replica

MARK = "reberth.dev/automation"
RED = {"key": "team", "value": "red", "effect": "NoSchedule"}


def two_workloads(first: str | None = None, second: str | None = None) -> list[Object]:
    """A pod of each has to leave a node; there is room for one of them elsewhere."""
    pods = []
    for app, mark in (("api", first), ("web", second)):
        annotations = {MARK: mark} if mark else {}
        pods += [
            replica(f"{app}-1", app, "old", cpu="4", annotations=annotations),
            replica(f"{app}-2", app, "new", cpu="1"),
        ]
    return [builders.node("old", taints=[RED]), builders.node("new"), *pods]


def modes_of(objects: list[Object], **fields: Any) -> dict[str, str]:
    made, _ = make_plan(objects, policy(**fields))
    return {move.pod: move.mode for move in made.moves}


@pytest.mark.parametrize(
    ("whole", "of_policy", "mark", "mode"),
    [
        ("recommend", None, None, "recommend"),
        ("apply", None, None, "apply"),
        ("apply", "recommend", None, "recommend"),
        ("recommend", "apply", None, "apply"),
        ("recommend", "apply", "apply", "apply"),
        ("recommend", "recommend", "apply", "recommend"),
        ("apply", "recommend", "apply", "recommend"),
        ("apply", "apply", "recommend", "recommend"),
    ],
)
def test_the_pods_mark_decides_then_the_policy_then_the_whole_file(
    whole: str, of_policy: str | None, mark: str | None, mode: str
) -> None:
    of_rules = {"mode": of_policy} if of_policy else {}
    found = modes_of(two_workloads(mark, mark), mode=whole, policies={"brokenRules": of_rules})
    assert found == {"default/api-1": mode}


@pytest.mark.parametrize(
    ("allowed", "on_pod", "on_namespace", "mode"),
    [
        ("none", None, "apply", "recommend"),
        ("none", "apply", "apply", "recommend"),
        ("namespaces", None, "apply", "apply"),
        ("namespaces", "apply", "apply", "apply"),
        ("namespaces", "apply", None, "recommend"),
        ("namespaces", "apply", "recommend", "recommend"),
        ("namespaces", "recommend", "apply", "recommend"),
        ("all", "apply", None, "apply"),
        ("all", "apply", "recommend", "apply"),
        ("all", "recommend", "apply", "recommend"),
    ],
)
def test_annotations_exceed_the_mode_only_as_far_as_the_operator_allows(
    allowed: str, on_pod: str | None, on_namespace: str | None, mode: str
) -> None:
    objects = two_workloads(on_pod, on_pod)
    if on_namespace:
        objects.append(guardrails.namespace(annotations={MARK: on_namespace}))
    found = modes_of(objects, mode="recommend", applyByAnnotation=allowed)
    assert found == {"default/api-1": mode}
    assert modes_of(objects, mode="off", applyByAnnotation=allowed) == {}


def test_an_annotation_that_does_not_count_is_warned_of_and_explained() -> None:
    objects, asked = two_workloads("apply"), policy(mode="recommend")
    made, _ = make_plan(objects, asked)
    said = (
        "annotations apply in namespace default do not turn recommend into apply: applyByAnnotation is none"
    )
    assert said in made.warnings
    allowed, _ = make_plan(objects, policy(mode="recommend", applyByAnnotation="all"))
    assert not [warning for warning in allowed.warnings if "applyByAnnotation" in warning]
    snapshot = load_objects(objects, now=NOW, version=VERSION).snapshot
    why = {
        name: [
            each.says
            for each in explain_pod(place, snapshot, asked, None, model=MODEL).rules
            if each.who == "mode"
        ]
        for name in ("api-1", "web-1")
        if (place := snapshot.pods.named("default", name)) is not None
    }
    assert why["web-1"] == []
    (said,) = why["api-1"]
    assert said.startswith("the pod's annotation apply does not turn recommend of brokenRules, better")
    assert said.endswith("underUtilisedNodes into apply: applyByAnnotation is none")


def test_moves_to_apply_take_precedence_over_recommended_ones() -> None:
    assert modes_of(two_workloads()) == {"default/api-1": "apply"}
    assert modes_of(two_workloads("recommend")) == {"default/web-1": "apply"}
    found = modes_of(two_workloads(None, "apply"), mode="recommend", applyByAnnotation="all")
    assert found == {"default/web-1": "apply"}


def test_moves_that_are_only_recommended_come_last() -> None:
    objects = two_workloads("recommend")
    objects.append(builders.node("third"))
    assert list(modes_of(objects).items()) == [("default/web-1", "apply"), ("default/api-1", "recommend")]


def test_recommended_moves_use_only_limits_left_over() -> None:
    objects = [*two_workloads("recommend"), builders.node("third")]
    assert modes_of(objects, limits={"perCycle": 1}) == {"default/web-1": "apply"}
    assert modes_of(objects, limits={"rates": {"cluster": ["2 per 10m"]}}, buffer="50%") == {
        "default/web-1": "apply"
    }


def test_a_move_that_was_only_recommended_is_not_remembered() -> None:
    made, memory = make_plan(two_workloads(), policy(mode="recommend"))
    assert (len(made.moves), memory.moved) == (1, ())
    again, _ = make_plan(two_workloads(), policy(mode="recommend"), memory, now=NOW + 300)
    assert again.moves == made.moves


@pytest.mark.parametrize(
    ("mode", "said"), [("apply", "is moved to new"), ("recommend", "is recommended to be moved to new")]
)
def test_why_explains_whether_a_move_is_applied(mode: str, said: str) -> None:
    snapshot = load_objects(two_workloads(), now=NOW, version=VERSION).snapshot
    place = snapshot.pods.named("default", "api-1")
    assert place is not None
    told = explain_pod(place, snapshot, policy(mode=mode), None, model=MODEL)
    assert told.verdict.startswith(said)


@pytest.mark.parametrize(
    ("limits", "refused"),
    [
        ({"perCycle": "25%"}, "Limit: no more than perCycle 25% (1 of 4 pods) moves in one plan"),
        (
            {"rates": {"cluster": ["40% per 1h"]}},
            "ClusterRate: no more than 40% per 3600s (1 of 4 pods)",
        ),
    ],
)
def test_why_explains_what_a_limit_in_percent_comes_to(limits: Object, refused: str) -> None:
    """Two pods want to move, and there is room for both."""
    objects = [*two_workloads(), builders.node("third")]
    snapshot = load_objects(objects, now=NOW, version=VERSION).snapshot
    asked = policy(limits={**limits, "perWorkload": "50%"})
    made, _ = make_plan(objects, asked)
    assert len(made.moves) == 1
    (left,) = {"default/api-1", "default/web-1"} - {move.pod for move in made.moves}
    place = snapshot.pods.named(*left.split("/"))
    assert place is not None
    told = explain_pod(place, snapshot, asked, None, model=MODEL)
    assert told.verdict == f"is not moved: {refused}"
    assert "perWorkload 50% (1 of 2 pods)" in [
        each.says for each in told.rules if each.who == "limits in percent"
    ]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_applied_moves_are_the_same_without_the_recommended_ones(seed: int) -> None:
    dice = Random(seed)
    objects, asked = draw_objects(dice), draw_policy(dice)
    mixed = [_mark(each, dice.choice(("apply", "recommend"))) for each in objects]
    alone = [_mark(each, "off" if _marked(each) == "recommend" else "apply") for each in mixed]
    made, memory = make_plan(mixed, asked)
    without, remembered = make_plan(alone, asked)
    assert tuple(move for move in made.moves if move.mode == "apply") == without.moves
    assert memory.moved == remembered.moved
    assert set(moves_of(without)) <= set(moves_of(made))


def _mark(each: Object, mark: str) -> Object:
    if each["kind"] != "Pod":
        return each
    marked = copy.deepcopy(each)
    marked["metadata"].setdefault("annotations", {})[MARK] = mark
    return marked


def _marked(each: Object) -> str | None:
    annotations: dict[str, str] = each["metadata"].get("annotations") or {}
    return annotations.get(MARK)


@pytest.mark.parametrize(
    ("whole", "of_policy", "mark"),
    [("off", None, None), ("off", "apply", "apply"), ("apply", "off", None), ("apply", "off", "apply")],
)
def test_mode_off_proposes_nothing_despite_annotations(
    whole: str, of_policy: str | None, mark: str | None
) -> None:
    of_rules = {"mode": of_policy} if of_policy else {}
    asked = policy(mode=whole, policies={"brokenRules": of_rules})
    made, _ = make_plan(two_workloads(mark, mark), asked)
    assert made.moves == ()
    assert "brokenRules" not in {refused.policy for refused in made.refused}
    said = [warning for warning in made.warnings if warning.startswith("Off: ")]
    assert len(said) == (whole == "off")
    assert (asked.stop_reason() is not None) == (whole == "off")


def test_a_policy_that_is_off_leaves_the_others_alone() -> None:
    asked = policy(
        mode="recommend", policies={"brokenRules": {"mode": "apply"}, "betterPreferences": {"mode": "off"}}
    )
    assert asked.modes() == {
        "brokenRules": "apply",
        "betterPreferences": "off",
        "underUtilisedNodes": "recommend",
    }


def test_why_names_mode_off() -> None:
    snapshot = load_objects(two_workloads(), now=NOW, version=VERSION).snapshot
    place = snapshot.pods.named("default", "api-1")
    assert place is not None
    told = explain_pod(place, snapshot, policy(mode="off"), None, model=MODEL)
    assert [word.who for word in told.rules if word.against] == ["Off"]
