"""The minimal extender used as a baseline answers in kube-scheduler's format, with keep-alive."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from bench.extender.asking import VERBS, Connection, Question, measure, refuse_differences, turn
from bench.extender.dutiful import Dutiful
from bench.extender.floor import Responder, respond
from bench.reading.arms import Failed
from extender.answers.wire import UnreadableCall, read_args

NAMES = [f"node-{number:05d}" for number in range(3_000)]
POD = {"metadata": {"name": "web", "labels": {"a]": '"NodeNames":["x"]'}}}


@pytest.fixture
async def port() -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    async with await loop.create_server(Responder, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(("verb", "score"), [("/avoid/prioritize", 10), ("/scores/prioritize", 5)])
@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:3]])
def test_every_node_gets_the_same_grade(verb: str, score: int, names: list[str]) -> None:
    answer = json.loads(respond(verb.encode(), Question(POD, names).write()))
    assert answer == [{"Host": name, "Score": score} for name in names]


def test_the_minimum_is_to_parse_the_call_and_to_find_its_nodes() -> None:
    dutiful = Dutiful()
    dutiful.look_at(Question(POD, NAMES).write())
    assert dutiful.memory.locate(read_args(Question(POD, NAMES).write()).nodes).names == NAMES
    with pytest.raises(UnreadableCall):
        dutiful.look_at(b'{"Pod":{"metadata":{}},"NodeNames":[1]}')


def test_every_node_passes() -> None:
    answer = json.loads(respond(b"/avoid/filter", Question(POD, NAMES).write()))
    assert answer["NodeNames"] == NAMES
    assert not any((answer["FailedNodes"], answer["FailedAndUnresolvableNodes"], answer["Error"]))


async def test_calls_follow_each_other_on_one_connection(port: int) -> None:
    def ask() -> list[bytes]:
        with Connection(port) as connection:
            return [connection.ask(verb, Question(POD, NAMES).write())[1] for verb in VERBS]

    answers = await asyncio.to_thread(ask)
    assert [len(json.loads(answer)) for answer in answers] == [4, len(NAMES), len(NAMES)]


async def test_each_call_but_the_first_ones_is_measured(port: int) -> None:
    questions = turn([POD], NAMES, times=5)
    seconds = await asyncio.to_thread(measure, {"one": port, "other": port}, questions, warm=2)
    assert {name: [len(taken) for taken in verbs.values()] for name, verbs in seconds.items()} == {
        "one": [3, 3, 3],
        "other": [3, 3, 3],
    }


def test_the_list_of_nodes_turns_from_pod_to_pod() -> None:
    first, second = turn([POD, {}], NAMES, times=2)
    assert first == (POD, NAMES)
    assert second.pod == {}
    assert second.nodes[-1] != NAMES[-1]
    assert sorted(second.nodes) == NAMES


def test_answers_that_differ_are_refused() -> None:
    refuse_differences([[b'{"a":1}'], [b'{ "a": 1 }']])
    with pytest.raises(Failed, match="alike"):
        refuse_differences([[b'{"a":1}'], [b'{"a":2}']])
