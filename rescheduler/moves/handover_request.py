"""A move that a person asks the leading daemon for, as two annotations of our Lease.

REQUEST holds the one that waits for its answer, for a short time. The leader takes it away and puts its
answer to the last ones in ANSWERS, in one write and before the move begins. So a request is begun once or
never, whoever leads. What changes the annotations gives them as they should be; done twice, it changes
nothing the second time.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from reberth.memory.history import MOST_DESTINATIONS
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_time

REQUEST = "reberth.dev/move-request"
ANSWERS = "reberth.dev/move-answers"
LIFE = 20.0
LONGEST_REASON = 1024
"""In bytes; people read it in the note, and the history bounds it."""

BUSY = Refused("HandOverBusy", "another move that is handed over waits for its answer")
GONE = Refused("RequestGone", "the request is answered, withdrawn or replaced")
EXPIRED = Refused("RequestExpired", "the request's time was over before the daemon could take it")

_MOST_ANSWERS = 8
_LONGEST_WHY = 2000

Annotations = Mapping[str, str]
_Text = Annotated[str, Meta(max_length=253)]


class HandoverRequest(msgspec.Struct, frozen=True):
    """One pod, by its uid, and where it shall go; without `to` the forecast says where."""

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
        """The name of the move that it becomes."""
        return f"m-{self.id}"

    def is_over(self, now: float) -> bool:
        return parse_time(self.until) <= now


class HandoverAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the leader says to a request: a move with its history, or a "no", which may come later too."""

    id: str
    by: str
    move: str = ""
    history: str = ""
    refused: Refused | None = None


def prolong_request(request: HandoverRequest, now: float) -> HandoverRequest:
    return msgspec.structs.replace(request, until=write_time(now + LIFE))


def refuse_request(answer: HandoverAnswer, refused: Refused) -> HandoverAnswer:
    brief = Refused(refused.rule, refused.reason[:_LONGEST_WHY])
    return msgspec.structs.replace(answer, refused=brief)


def read_request(annotations: Annotations | None) -> HandoverRequest | None:
    """Give the request that waits; what cannot be read is none."""
    try:
        return msgspec.json.decode((annotations or {}).get(REQUEST, ""), type=HandoverRequest)
    except (msgspec.DecodeError, ValueError):
        return None


def read_answers(annotations: Annotations | None) -> tuple[HandoverAnswer, ...]:
    try:
        return msgspec.json.decode((annotations or {}).get(ANSWERS, ""), type=tuple[HandoverAnswer, ...])
    except msgspec.DecodeError:
        return ()


def find_answer(annotations: Annotations | None, request: str) -> HandoverAnswer | None:
    return next((one for one in read_answers(annotations) if one.id == request), None)


def place_request(annotations: Annotations, request: HandoverRequest, *, now: float) -> Annotations | Refused:
    """Put a request where the leader sees it, unless another one waits there."""
    there = read_request(annotations)
    if there and there.id != request.id and not there.is_over(now):
        return BUSY
    return {**annotations, REQUEST: msgspec.json.encode(request).decode()}


def withdraw_request(annotations: Annotations, request: str) -> Annotations:
    """Take a request away if it still waits."""
    there = read_request(annotations)
    return _without_request(annotations) if there and there.id == request else annotations


def answer_request(annotations: Annotations, answer: HandoverAnswer, *, now: float) -> Annotations | Refused:
    """Answer the request that waits; of those who would, one does, and nobody for the second time."""
    there, known = read_request(annotations), find_answer(annotations, answer.id)
    if there is None or there.id != answer.id:
        return annotations if known == answer else GONE
    if known:
        return GONE
    if there.is_over(now) and not answer.refused:
        return EXPIRED
    return _with_answers(_without_request(annotations), (*read_answers(annotations), answer))


def amend_answer(annotations: Annotations, answer: HandoverAnswer) -> Annotations:
    """Put a newer answer in the place of the one that was given."""
    answers = read_answers(annotations)
    return _with_answers(annotations, tuple(answer if one.id == answer.id else one for one in answers))


def _without_request(annotations: Annotations) -> Annotations:
    return {key: text for key, text in annotations.items() if key != REQUEST}


def _with_answers(annotations: Annotations, answers: tuple[HandoverAnswer, ...]) -> Annotations:
    return {**annotations, ANSWERS: msgspec.json.encode(answers[-_MOST_ANSWERS:]).decode()}
