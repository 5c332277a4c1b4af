"""Responses to kube-scheduler, from the bytes it sends to the bytes it gets."""

import json
from typing import Any

import pytest

from extender.answers.settings import AnswerSettings, PreemptSettings
from extender.answers.verbs import FILTER, PREEMPT, PRIORITIZE, SCORES, VERBS, Answer, Verb
from reberth.cluster.kinds import BUDGET, HISTORY, JOB, NODE, POD, REPLICA_SET, SCORE
from reberth.memory.addon_scores import ScoreSettings, WeightedScore
from reberth.memory.advice import STRICTLY_NOTED, AdviceSettings
from reberth.records import Outcome, Pod, PodDisruptionBudget
from tests.support import builders
from tests.support.extender.calls import candidates, captured, knowing, question
from tests.support.memory.advice import DRAWN, LOAD, history, node
from tests.support.memory.objects import HOUR, NOW, past, score

SETTINGS = AnswerSettings(scores=LOAD)
STRICT = {"strict": True, "life": HOUR}


def decided(
    verb: Verb, body: bytes, *records: Any, settings: AnswerSettings = SETTINGS, now: float = NOW
) -> Answer:
    memory = knowing(*records, settings=settings.scores)
    return verb.decide(memory, verb.read(body), settings, now)


def said(answer: Answer) -> Any:
    return json.loads(answer.body)


def grades(answer: Answer) -> dict[str, int]:
    entries = said(answer)
    found = {entry["Host"]: entry["Score"] for entry in entries}
    assert len(found) == len(entries)
    return found


def test_all_nodes_pass_where_nothing_is_noted() -> None:
    answer = decided(FILTER, question())
    assert said(answer) == {
        "NodeNames": ["n0", "n1", "n2", "n3"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert (answer.asked, answer.refused) == (4, 0)


def test_strictly_noted_nodes_are_unresolvable_with_a_constant_reason() -> None:
    answer = decided(FILTER, question(), node("n1", notes=[STRICT]), node("n2", notes=[{"life": HOUR}]))
    assert said(answer)["NodeNames"] == ["n0", "n2", "n3"]
    assert said(answer)["FailedAndUnresolvableNodes"] == {"n1": STRICTLY_NOTED.reason}
    assert said(answer)["FailedNodes"] == {}
    assert answer.refused == 1


def test_noted_and_leaving_nodes_get_grade_0_and_others_10() -> None:
    answer = decided(
        PRIORITIZE, question(), node("n1", notes=[{"life": HOUR}]), node("n3", unschedulable=True)
    )
    assert grades(answer) == {"n0": 10, "n1": 0, "n2": 10, "n3": 0}
    assert (answer.avoided, answer.drawn) == (2, 0)


def test_a_destination_gets_all_and_is_counted() -> None:
    answer = decided(PRIORITIZE, question(), DRAWN)
    assert grades(answer) == {"n0": 0, "n1": 0, "n2": 10, "n3": 0}
    assert (answer.avoided, answer.drawn) == (0, 1)


def test_a_draw_to_nodes_that_are_not_asked_about_is_no_draw() -> None:
    answer = decided(PRIORITIZE, question(["n0", "n3"]), DRAWN)
    assert grades(answer) == {"n0": 10, "n3": 10}
    assert answer.drawn == 0


def test_one_node_left_by_the_notes_is_no_draw() -> None:
    noted = [node(name, notes=[{"life": HOUR}]) for name in ("n0", "n2")]
    answer = decided(PRIORITIZE, question(["n0", "n2", "n3"]), DRAWN, *noted)
    assert grades(answer) == {"n0": 0, "n2": 0, "n3": 10}
    assert (answer.avoided, answer.drawn) == (2, 0)


def test_unknown_nodes_keep_their_place_in_the_response() -> None:
    answer = decided(PRIORITIZE, question(["x", "n1", 'y"', "n0"]), node("n1", notes=[{"life": HOUR}]))
    assert grades(answer) == {"x": 10, "n1": 0, 'y"': 10, "n0": 10}


def test_nodes_that_are_named_twice_are_answered_once() -> None:
    for names in (["n1", "n0", "n1"], ["x", "n1", "y", "x"], ["x", "x"]):
        assert list(grades(decided(PRIORITIZE, question(names)))) == list(dict.fromkeys(names))


@pytest.mark.parametrize(("ago", "expected"), [(0, 0), (6 * HOUR, 3), (600 * HOUR, 5)])
def test_scores_are_those_of_add_ons_minus_the_cost_of_bad_landings(ago: float, expected: int) -> None:
    landed = history(past=(past(Outcome.WORSE, ago=ago, landed_on="n1"),))
    answer = decided(SCORES, question(), score("n0", cpu=100), score("n2", cpu=-100), landed)
    assert grades(answer) == {"n0": 10, "n1": expected, "n2": 0, "n3": 5}


@pytest.mark.parametrize(
    ("weight", "expected"), [(3, {"n0": 10, "n1": 5}), (-3, {"n0": 0, "n1": 5}), (0, {"n0": 5, "n1": 5})]
)
def test_weights_turn_scores_around_or_off(weight: int, expected: dict[str, int]) -> None:
    settings = AnswerSettings(scores=ScoreSettings((WeightedScore("load", "cpu", weight=weight),)))
    assert (
        grades(decided(SCORES, question(["n0", "n1"]), score("n0", cpu=100), settings=settings)) == expected
    )


def test_a_score_ends_at_its_instant() -> None:
    ending = score("n0", cpu=100, valid_until=NOW + 10)
    assert grades(decided(SCORES, question(["n0"]), ending, now=NOW + 9)) == {"n0": 10}
    assert grades(decided(SCORES, question(["n0"]), ending, now=NOW + 10)) == {"n0": 5}


@pytest.mark.parametrize("verb", [FILTER, PRIORITIZE, SCORES])
def test_no_nodes_asked_is_answered_with_none(verb: Verb) -> None:
    answer = decided(verb, question([]))
    assert (said(answer) == []) if verb is not FILTER else (said(answer)["NodeNames"] == [])
    assert answer.asked == 0


@pytest.mark.parametrize(("verb", "grade"), [(PRIORITIZE, 10), (SCORES, 5)])
def test_a_neutral_grade_is_the_same_for_all(verb: Verb, grade: int) -> None:
    memory = knowing(node("n1", notes=[STRICT]), score("n0", cpu=100), DRAWN)
    asked = verb.read(question(["n0", "n1", "n2", "x"]))
    assert grades(verb.stay_neutral(memory, asked)) == dict.fromkeys(["n0", "n1", "n2", "x"], grade)


def test_a_neutral_filter_lets_all_pass_and_a_neutral_preempt_keeps_all() -> None:
    memory = knowing(node("n1", notes=[STRICT]))
    assert said(FILTER.stay_neutral(memory, FILTER.read(question())))["NodeNames"] == ["n0", "n1", "n2", "n3"]
    body = candidates({"n1": ["a"], "n0": []})
    kept = said(PREEMPT.stay_neutral(memory, PREEMPT.read(body)))
    assert kept["NodeNameToMetaVictims"] == json.loads(body)["NodeNameToMetaVictims"]


@pytest.mark.parametrize("name", ["filter-cache", "prioritize-cache"])
@pytest.mark.parametrize("verb", [FILTER, PRIORITIZE, SCORES])
def test_recorded_scheduler_requests_are_answered_for_all_their_nodes(verb: Verb, name: str) -> None:
    asked = json.loads(captured(name))["NodeNames"]
    answer = said(decided(verb, captured(name)))
    assert (answer["NodeNames"] if verb is FILTER else [entry["Host"] for entry in answer]) == asked


def test_preemption_candidates_of_a_recorded_request_are_returned_unchanged() -> None:
    asked = json.loads(captured("preempt-cache"))["NodeNameToMetaVictims"]
    answer = said(decided(PREEMPT, captured("preempt-cache")))["NodeNameToMetaVictims"]
    assert list(answer.items()) == list(asked.items())


def victim(name: str) -> Pod:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    made = builders.pod(name, node="n1", uid=f"uid-{name}", labels={"app": "db"}, status=ready)
    made["metadata"]["creationTimestamp"] = "2026-11-18T11:00:00Z"
    return builders.as_record(Pod, made)


def guarded(allowed: int) -> PodDisruptionBudget:
    made = builders.pdb("db", max_unavailable=1, status={"disruptionsAllowed": allowed})
    return builders.as_record(PodDisruptionBudget, made)


@pytest.mark.parametrize(("budgets", "left"), [("prefer", ["n2"]), ("strict", ["n2"]), ("off", ["n1", "n2"])])
def test_a_budget_takes_a_candidate_away(budgets: Any, left: list[str]) -> None:
    settings = AnswerSettings(preempt=PreemptSettings(budgets))
    body = candidates({"n1": ["uid-db-0"], "n2": ["unknown"]})
    answer = decided(PREEMPT, body, victim("db-0"), guarded(0), settings=settings)
    asked = json.loads(body)["NodeNameToMetaVictims"]
    assert said(answer)["NodeNameToMetaVictims"] == {name: asked[name] for name in left}
    assert (answer.asked, answer.refused, answer.exhausted) == (2, 2 - len(left), None)


def test_an_exhausted_preemption_names_its_rule() -> None:
    body = candidates({"n1": ["uid-db-0"]})
    strict = AnswerSettings(preempt=PreemptSettings("strict"))
    answer = decided(PREEMPT, body, victim("db-0"), guarded(0), settings=strict)
    assert said(answer) == {"NodeNameToMetaVictims": {}}
    assert answer.exhausted is not None
    assert answer.exhausted.rule == "BudgetWouldBreak"
    overruled = decided(PREEMPT, body, victim("db-0"), guarded(0))
    assert said(overruled)["NodeNameToMetaVictims"].keys() == {"n1"}
    assert (overruled.overruled, overruled.exhausted) == (True, None)


@pytest.mark.parametrize("budgets", ["prefer", "strict", "off"])
def test_a_node_that_would_refuse_the_pod_is_no_candidate(budgets: Any) -> None:
    settings = AnswerSettings(preempt=PreemptSettings(budgets))
    answer = decided(
        PREEMPT, candidates({"n1": ["a"], "n2": ["b"]}), node("n1", notes=[STRICT]), settings=settings
    )
    assert said(answer)["NodeNameToMetaVictims"].keys() == {"n2"}
    alone = decided(PREEMPT, candidates({"n1": ["a"]}), node("n1", notes=[STRICT]), settings=settings)
    assert alone.exhausted == STRICTLY_NOTED


def test_no_candidates_is_nothing_to_tell() -> None:
    assert decided(PREEMPT, candidates({})).exhausted is None


OFF = AdviceSettings(draw=False, notes=False, standing=False, history=False, scores=False)


@pytest.mark.parametrize(
    ("verb", "settings", "needed"),
    [
        (FILTER, AnswerSettings(), {NODE, REPLICA_SET, JOB}),
        (PRIORITIZE, AnswerSettings(), {NODE, REPLICA_SET, JOB, HISTORY, POD}),
        (PRIORITIZE, AnswerSettings(advice=AdviceSettings(draw=False, notes=False)), {NODE}),
        (SCORES, AnswerSettings(), {NODE, HISTORY, REPLICA_SET, JOB}),
        (SCORES, AnswerSettings(scores=LOAD, advice=AdviceSettings(history=False)), {NODE, SCORE}),
        (PREEMPT, AnswerSettings(), {NODE, REPLICA_SET, JOB, POD, BUDGET}),
        (PREEMPT, AnswerSettings(advice=OFF, preempt=PreemptSettings("off")), set()),
        *((verb, AnswerSettings(advice=OFF, preempt=PreemptSettings("off")), set()) for verb in VERBS),
    ],
)
def test_each_verb_needs_the_kinds_of_its_signals(verb: Verb, settings: AnswerSettings, needed: Any) -> None:
    assert verb.needs(settings) == needed


def test_the_verbs_belong_to_two_extenders() -> None:
    assert {verb.name: verb.part for verb in VERBS} == {
        "filter": "avoid",
        "prioritize": "avoid",
        "preempt": "avoid",
        "scores": "scores",
    }
