"""Any request on any memory: no crash, and no response that kube-scheduler would reject."""

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest

from extender.answers.settings import AnswerSettings, PreemptSettings
from extender.answers.verbs import FILTER, PREEMPT, VERBS, Verb
from extender.answers.wire import UnreadableCall
from reberth.memory.addon_scores import ScoreSettings, WeightedScore
from reberth.memory.advice import STRICTLY_NOTED, AdviceSettings
from reberth.memory.notes import ANNOTATION
from reberth.records import Outcome, Pod, PodDisruptionBudget, Record
from tests.support import builders
from tests.support.builders import as_record
from tests.support.extender.calls import WEB_SET, Known, candidates, question
from tests.support.memory.advice import history, node
from tests.support.memory.notes import annotation, foreign
from tests.support.memory.objects import HOUR, NOW, move, past, score, web_pod
from tests.support.resumable_rounds import Proof

NAMES = [f"n{number}" for number in range(8)]
STRANGE = ["", "x", "ünï", 'quo"te', "back\\slash", "n" * 300, "\x00", "n1 "]
TEXTS = ["", "not JSON", "[]", '{"preferAvoidPods": 5}', "{" * 3000, annotation(foreign()), "x" * 10_000]
SEEDS_AT_ONCE = 500


def some(chance: random.Random, choices: list[Any], most: int) -> list[Any]:
    return [chance.choice(choices) for _ in range(chance.randrange(most + 1))]


def any_node(chance: random.Random, name: str) -> Record:
    lives = some(chance, [{"life": HOUR}, {"life": HOUR, "strict": True}, {"life": -5.0}], 2)
    fields = {"annotations": {ANNOTATION: chance.choice(TEXTS)}} if chance.random() < 0.2 else {}
    return node(name, notes=lives, unschedulable=chance.random() < 0.2, **fields)


def any_objects(chance: random.Random) -> Iterable[Record]:
    for name in set(some(chance, NAMES, 8)):
        yield any_node(chance, name)
    places = [*NAMES, *STRANGE]
    moves = [
        move(f"m{number}", destinations=tuple(some(chance, places, 4)), planned=NOW - chance.randrange(400))
        for number in range(chance.randrange(3))
    ]
    outcomes = some(chance, list(Outcome), 3)
    closed = [past(one, ago=chance.random() * HOUR, landed_on=chance.choice(places)) for one in outcomes]
    yield history(open=tuple(moves), past=tuple(closed))
    for name in set(some(chance, places, 4)):
        values = {"cpu": chance.choice([-100, 0, 55, 100, 1000, 1e308, None, "7", True])}
        until = chance.choice([None, NOW - 1, NOW + 1])
        yield score(name, name=f"load-{places.index(name)}", valid_until=until, **values)
    for number in range(chance.randrange(4)):
        yield web_pod(f"w{number}", age=chance.randrange(500), node=chance.choice([None, *NAMES]))
        made = builders.pod(f"db-{number}", node="n1", uid=f"v{number}", labels={"app": "db"})
        made["metadata"]["creationTimestamp"] = "2026-11-18T11:00:00Z"
        yield as_record(Pod, made)
    allowed = {"disruptionsAllowed": chance.randrange(-1, 3)}
    yield as_record(PodDisruptionBudget, builders.pdb("db", min_available=1, status=allowed))
    yield WEB_SET


def any_settings(chance: random.Random) -> AnswerSettings:
    switches = {name: chance.random() < 0.9 for name in ("draw", "notes", "standing", "history", "scores")}
    return AnswerSettings(
        advice=AdviceSettings(**switches),
        scores=ScoreSettings((WeightedScore("load", "cpu", weight=chance.randrange(-10, 11)),)),
        preempt=PreemptSettings(chance.choice(["strict", "prefer", "off"])),
    )


def any_question(chance: random.Random, verb: Verb) -> bytes:
    nodes = some(chance, [*NAMES, *STRANGE], 12)
    pod: dict[str, Any] = {"name": f"w{chance.randrange(5)}"}
    if chance.random() < 0.3:
        pod["creationTimestamp"] = chance.choice([None, "yesterday", "9999-12-31T23:59:59Z"])
    if chance.random() < 0.3:
        choices = ["load/cpu=3", "load/cpu=99", "nonsense", "a/b=1", ""]
        pod["annotations"] = {"reberth.dev/score-weights": chance.choice(choices)}
    if chance.random() < 0.2:
        pod["ownerReferences"] = None
    if verb is PREEMPT:
        uids = ["v0", "v1", "v2", "v3", "unknown"]
        body = candidates({name: some(chance, uids, 3) for name in nodes}, **pod)
    else:
        body = question(nodes, **pod)
    return spoil(chance, body) if chance.random() < 0.3 else body


def spoil(chance: random.Random, body: bytes) -> bytes:
    """Cut it, change some bytes, or put something else in the place of a value."""
    place = chance.randrange(len(body))
    kind = chance.randrange(4)
    if kind == 0:
        return body[:place]
    if kind == 1:
        return body[:place] + bytes([chance.randrange(256)]) + body[place + 1 :]
    parts = json.loads(body)
    holder = parts["Pod"]["metadata"] if kind == 2 else parts
    holder[chance.choice(list(holder))] = chance.choice(
        [None, 5, -1.5, "text", [], {}, [None], True, 10**400, float("nan")]
    )
    return json.dumps(parts).encode()


def prove(seed: int) -> bool:
    """Ask once; True if there was an answer, False for an honest error."""
    chance = random.Random(seed)
    settings = any_settings(chance)
    memory = Known(settings.scores).put(*any_objects(chance)).memory
    verb = chance.choice(VERBS)
    body = any_question(chance, verb)
    try:
        asked = verb.read(body)
    except UnreadableCall:
        return False
    decided = verb.decide(memory, asked, settings, NOW).body
    for answer in (decided, verb.stay_neutral(memory, asked).body):
        accept(verb, asked, json.loads(answer.decode(errors="replace")))
    return True


def accept(verb: Verb, asked: Any, answer: Any) -> None:
    """What kube-scheduler demands, and what it does not check but believes."""
    if verb is PREEMPT:
        left = answer["NodeNameToMetaVictims"]
        given = {
            name: json.loads(bytes(entry).decode(errors="replace")) for name, entry in asked.entries.items()
        }
        assert list(left.items()) == [(name, entry) for name, entry in given.items() if name in left]
        return
    names = asked.nodes
    if verb is FILTER:
        refused = answer["FailedAndUnresolvableNodes"]
        assert [name for name in names if name not in refused] == answer["NodeNames"]
        assert refused.keys() <= set(names)
        assert set(refused.values()) <= {STRICTLY_NOTED.reason}
        assert (answer["FailedNodes"], answer["Error"]) == ({}, "")
        return
    assert [entry["Host"] for entry in answer] == list(dict.fromkeys(names))
    allowed = {0, 10} if verb.name == "prioritize" else set(range(11))
    assert all(type(entry["Score"]) is int and entry["Score"] in allowed for entry in answer)
    if verb.name == "prioritize" and names:
        assert any(entry["Score"] for entry in answer)


def test_two_thousand_cases() -> None:
    answered = sum(map(prove, range(2000)))
    assert 1400 < answered < 1950  # the honest errors are proved too


@pytest.mark.soak
def test_a_hundred_thousand_cases() -> None:
    proof = Proof("extender-answers")
    remaining = proof.remaining(range(10_000, 110_000))
    for start in range(0, len(remaining), SEEDS_AT_ONCE):
        seeds = remaining[start : start + SEEDS_AT_ONCE]
        for seed in seeds:
            prove(seed)
        proof.note(seeds)
    print(f"\ncases passed: {len(proof.passed())}")
