"""Limits on the CPU time of a response, relative to json reading the request and writing the response."""

import json
from collections.abc import Iterator
from statistics import median

import pytest

from extender.answers.settings import AnswerSettings
from extender.answers.verbs import FILTER, PRIORITIZE, SCORES, Verb
from reberth.memory.notes import ANNOTATION, Notes, compose_note, render_notes
from tests.support.cpu_cost import cost, few_collections
from tests.support.extender.calls import Known, question
from tests.support.memory.advice import DRAWN, LOAD, node
from tests.support.memory.objects import HOUR, NOW, WEB, score

pytestmark = pytest.mark.speed

NAMES = [f"node-{number:05d}" for number in range(5000)]
SETTINGS = AnswerSettings(scores=LOAD)


@pytest.fixture(scope="module")
def known() -> Iterator[Known]:
    known = Known()
    for number, name in enumerate(NAMES):
        note = compose_note(WEB, f"m{number}", policy="balance", reason="rebalance", now=NOW, life=HOUR)
        text = render_notes(Notes(ours=(note,)))
        known.put(node(name, annotations={ANNOTATION: text} if number % 160 == 0 else {}))
        known.put(score(name, cpu=number % 200 - 100))
    known.put(DRAWN)
    with few_collections():
        yield known


@pytest.mark.parametrize(("verb", "most"), [(FILTER, 0.5), (PRIORITIZE, 0.5), (SCORES, 0.5)])
def test_five_thousand_names_are_answered_for_less_than_json_costs(
    known: Known, verb: Verb, most: float
) -> None:
    # So many different lists that none is remembered from the last time.
    bodies = [question(NAMES[shift:] + NAMES[:shift]) for shift in range(0, 50, 10)]
    answers = [verb.decide(known.memory, verb.read(body), SETTINGS, NOW).body for body in bodies]
    plain = [json.loads(answer) for answer in answers]

    def ours() -> None:
        for body in bodies:
            verb.decide(known.memory, verb.read(body), SETTINGS, NOW)

    def theirs() -> None:
        for body, answer in zip(bodies, plain, strict=True):
            json.loads(body)
            json.dumps(answer)

    ratio = median(cost(ours) / cost(theirs) for _ in range(15))
    print(f"\n{verb.name}: {ratio:.2f} of json")
    assert ratio <= most
