"""Move requests and answers as annotations: who may write which, and that no move begins twice."""

import msgspec
import pytest
from msgspec.structs import replace

from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.moves.move_request import (
    ANSWERS,
    BUSY,
    EXPIRED,
    GONE,
    LIFE,
    REQUEST,
    Annotations,
    MoveAnswer,
    MoveRequest,
    amend_answer,
    answer_request,
    find_answer,
    place_request,
    prolong_request,
    read_answers,
    read_request,
    refuse_request,
    withdraw_request,
)

NOW = 1_800_000_000.0
FIRST = MoveRequest("00000000000a", "shop", "web-1", "uid-1", ("n2", "n3"), "why not", write_time(NOW + LIFE))
SECOND = replace(FIRST, id="00000000000b")
YES = MoveAnswer(FIRST.id, "leader", FIRST.move, "deployment-web")
NO = refuse_request(MoveAnswer(FIRST.id, "leader"), Refused("PDB", "the budget allows none"))
OTHERS = {"reberth.dev/paused": "true"}


def placed(request: MoveRequest = FIRST, annotations: Annotations = OTHERS) -> Annotations:
    found = place_request(annotations, request, now=NOW)
    assert not isinstance(found, Refused)
    return found


def taken(annotations: Annotations, answer: MoveAnswer) -> Annotations:
    found = answer_request(annotations, answer, now=NOW)
    assert not isinstance(found, Refused)
    return found


def test_a_request_and_its_answer_are_read_as_they_were_written() -> None:
    there = placed()
    assert read_request(there) == FIRST
    after = taken(there, YES)
    assert read_request(after) is None
    assert find_answer(after, FIRST.id) == YES
    assert OTHERS.items() <= after.items()
    assert find_answer(after, SECOND.id) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "../../etc"},
        {"until": "tomorrow"},
        {"to": ["n"] * 65},
        {"reason": "x" * 1025},
        {"pod": "x" * 254},
        {"uid": None},
    ],
)
def test_an_invalid_request_is_ignored_and_blocks_no_other(changes: dict[str, object]) -> None:
    made = msgspec.json.encode({**msgspec.to_builtins(FIRST), **changes}).decode()
    assert read_request({REQUEST: made}) is None
    assert read_request(placed(SECOND, {REQUEST: made})) == SECOND


DEEP = '{"x":' + "[" * 20_000 + "]" * 20_000 + "}"


@pytest.mark.parametrize(
    "annotations",
    [
        None,
        {},
        {REQUEST: "", ANSWERS: "{}"},
        {REQUEST: "1", ANSWERS: "x"},
        {REQUEST: DEEP, ANSWERS: f"[{DEEP}]"},
        {REQUEST: " " * 2**18 + "{}", ANSWERS: " " * 2**18 + "[]"},
    ],
    ids=["none", "missing", "empty", "other", "deep", "long"],
)
def test_missing_and_unreadable_annotations_hold_no_request_and_no_answer(
    annotations: Annotations | None,
) -> None:
    assert read_request(annotations) is None
    assert read_answers(annotations) == ()


def test_one_request_waits_at_a_time_until_it_expires() -> None:
    there = placed()
    assert place_request(there, SECOND, now=NOW) == BUSY
    assert read_request(placed(prolong_request(FIRST, NOW + 5), there)) == prolong_request(FIRST, NOW + 5)
    late = place_request(there, SECOND, now=NOW + LIFE)
    assert not isinstance(late, Refused)
    assert read_request(late) == SECOND


def test_only_a_waiting_request_is_answered_and_only_once() -> None:
    there = placed()
    after = taken(there, YES)
    assert answer_request(after, replace(YES, by="another"), now=NOW) == GONE
    assert (
        answer_request(after, YES, now=NOW) == after
    )  # the same answer, sent again because nobody heard that it arrived
    assert answer_request(placed(SECOND), YES, now=NOW) == GONE
    assert answer_request(OTHERS, YES, now=NOW) == GONE
    assert answer_request(placed(FIRST, after), YES, now=NOW) == GONE  # somebody has put it there again


def test_an_expired_request_can_be_refused_but_not_accepted() -> None:
    there = placed()
    assert answer_request(there, YES, now=NOW + LIFE) == EXPIRED
    refused = answer_request(there, NO, now=NOW + LIFE)
    assert not isinstance(refused, Refused)
    assert read_request(refused) is None


def test_a_request_is_withdrawn_only_by_its_own_client() -> None:
    there = placed()
    assert withdraw_request(there, SECOND.id) == there
    assert withdraw_request(there, FIRST.id) == OTHERS
    assert withdraw_request(taken(there, YES), FIRST.id) == taken(there, YES)


def test_a_later_refusal_replaces_only_its_own_answer() -> None:
    both = taken(placed(SECOND, taken(placed(), YES)), replace(YES, id=SECOND.id))
    later = amend_answer(both, NO)
    assert find_answer(later, FIRST.id) == NO
    assert find_answer(later, SECOND.id) == replace(YES, id=SECOND.id)


def test_answers_do_not_pile_up() -> None:
    annotations: Annotations = {}
    for number in range(20):
        request = replace(FIRST, id=f"{number:012x}")
        annotations = taken(placed(request, annotations), MoveAnswer(request.id, "leader"))
    assert [answer.id for answer in read_answers(annotations)] == [
        f"{number:012x}" for number in range(12, 20)
    ]
    wordy = refuse_request(YES, Refused("NoFeasibleDestination", "x" * 100_000)).refused
    assert wordy is not None
    assert len(wordy.reason) == 2000
