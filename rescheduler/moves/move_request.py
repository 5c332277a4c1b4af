"""A request that the leading daemon makes a move: a request and its answers, as two annotations of the Lease.

REQUEST holds the one request that waits, for a short time. The leader removes it and adds its answer to
ANSWERS in one write, before the move begins. So a request is begun once or never, even if the leader changes.
If the move began before that write, a crash in between would let the next leader begin it a second time.

Every function here returns the annotations as they should be, and changes nothing when applied a second time:
a write whose answer was lost can be repeated.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from reberth.memory.history import MOST_DESTINATIONS
from reberth.values.refusal import Refused
from reberth.values.text_limits import read_json
from reberth.values.timestamp import parse_time, write_time

REQUEST = "reberth.dev/move-request"
ANSWERS = "reberth.dev/move-answers"
LIFE = 20.0
"""Seconds that a request may wait for its answer."""
LONGEST_REASON = 1024
"""In bytes: the eviction history limits it."""

BUSY = Refused("RequestBusy", "another move request is waiting for its answer")
GONE = Refused("RequestGone", "the move request was answered, withdrawn or replaced")
EXPIRED = Refused("RequestExpired", "the move request expired before the daemon took it")

_MOST_ANSWERS = 8
_LONGEST_REFUSAL = 2000

Annotations = Mapping[str, str]
_Text = Annotated[str, Meta(max_length=253)]


class MoveRequest(msgspec.Struct, frozen=True):
    """One pod, by its uid, and its destinations; without `to` the forecast chooses them."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    namespace: _Text
    pod: _Text
    uid: _Text
    to: Annotated[tuple[_Text, ...], Meta(max_length=MOST_DESTINATIONS)]
    reason: Annotated[str, Meta(max_length=LONGEST_REASON)]
    until: str

    def __post_init__(self) -> None:
        parse_time(self.until)

    @property
    def move(self) -> str:
        """The id of the move that it becomes."""
        return f"m-{self.id}"

    def is_over(self, now: float) -> bool:
        return parse_time(self.until) <= now


class MoveAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The leader's answer: a move with its history, or a refusal. A refusal may also come later."""

    id: str
    by: str
    move: str = ""
    history: str = ""
    refused: Refused | None = None


_Answers: Any = tuple[MoveAnswer, ...]


def prolong_request(request: MoveRequest, now: float) -> MoveRequest:
    return msgspec.structs.replace(request, until=write_time(now + LIFE))


def refuse_request(answer: MoveAnswer, refused: Refused) -> MoveAnswer:
    brief = Refused(refused.rule, refused.reason[:_LONGEST_REFUSAL])
    return msgspec.structs.replace(answer, refused=brief)


def read_request(annotations: Annotations | None) -> MoveRequest | None:
    """Give the request that waits; an unreadable annotation holds none."""
    return read_json((annotations or {}).get(REQUEST), MoveRequest)


def read_answers(annotations: Annotations | None) -> tuple[MoveAnswer, ...]:
    answers: tuple[MoveAnswer, ...] | None = read_json((annotations or {}).get(ANSWERS), _Answers)
    return answers or ()


def find_answer(annotations: Annotations | None, request: str) -> MoveAnswer | None:
    return next((one for one in read_answers(annotations) if one.id == request), None)


def place_request(annotations: Annotations, request: MoveRequest, *, now: float) -> Annotations | Refused:
    """Add a request, unless another one is waiting."""
    there = read_request(annotations)
    if there and there.id != request.id and not there.is_over(now):
        return BUSY
    return {**annotations, REQUEST: msgspec.json.encode(request).decode()}


def withdraw_request(annotations: Annotations, request: str) -> Annotations:
    """Remove a request if it is still waiting."""
    there = read_request(annotations)
    return _without_request(annotations) if there and there.id == request else annotations


def answer_request(annotations: Annotations, answer: MoveAnswer, *, now: float) -> Annotations | Refused:
    """Replace the request by its answer. Only one answer is accepted, and only once."""
    there, known = read_request(annotations), find_answer(annotations, answer.id)
    if there is None or there.id != answer.id:
        return annotations if known == answer else GONE
    if known:
        return GONE
    if there.is_over(now) and not answer.refused:
        return EXPIRED
    return _with_answers(_without_request(annotations), (*read_answers(annotations), answer))


def amend_answer(annotations: Annotations, answer: MoveAnswer) -> Annotations:
    """Replace an earlier answer to the same request."""
    answers = read_answers(annotations)
    return _with_answers(annotations, tuple(answer if one.id == answer.id else one for one in answers))


def _without_request(annotations: Annotations) -> Annotations:
    return {key: text for key, text in annotations.items() if key != REQUEST}


def _with_answers(annotations: Annotations, answers: tuple[MoveAnswer, ...]) -> Annotations:
    return {**annotations, ANSWERS: msgspec.json.encode(answers[-_MOST_ANSWERS:]).decode()}
