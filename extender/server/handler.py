"""kube-scheduler's calls: read, answered, counted. Scheduling must never be worse than without the extender.

A call that cannot be read gets an error, which the scheduler ignores (`ignorable: true`). Any other call is
answered; in case of doubt, and after a bug in the extender, the answer is neutral and counted by its cause.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

from aiohttp import web

from extender.answers import freshness
from extender.answers.call_tracker import CallTracker
from extender.answers.freshness import MirrorState, find_neutral_cause
from extender.answers.memory import ClusterMemory
from extender.answers.settings import AnswerSettings
from extender.answers.verbs import VERBS, Answer, Kinds, Verb
from extender.answers.wire import UnreadableCall
from extender.server import metrics
from extender.server.request_body import BodyLimits, BodyRefused, receive, refuse_slow
from reberth.records import ObjectMeta
from reberth.runtime.http_fast_path import PlainCall, Reply
from reberth.runtime.logs import Log
from reberth.values.refusal import Refused

log = Log(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Answered(NamedTuple):
    """A readable call, and its answer."""

    verb: Verb
    question: Any
    size: int
    answer: Answer
    cause: str | None
    """Why the answer is neutral."""
    seconds: float


class CallHandler:
    """Answers calls from the memory, with the settings that are current at that moment."""

    def __init__(
        self,
        memory: ClusterMemory,
        call_tracker: CallTracker,
        *,
        settings: Callable[[], AnswerSettings],
        mirror_states: Callable[[Kinds], list[MirrorState]],
        announce: Callable[[ObjectMeta, Refused], None],
        clock: Callable[[], float],
        limits: BodyLimits,
    ) -> None:
        self._memory = memory
        self._call_tracker = call_tracker
        self._settings = settings
        self._mirror_states = mirror_states
        self._announce = announce
        self._clock = clock
        self._limits = limits
        self._last_refusal = ""
        self._needed: tuple[AnswerSettings | None, dict[str, Kinds]] = None, {}

    def calls(self) -> dict[str, PlainCall]:
        """Give the handlers of calls in kube-scheduler's usual form, by path."""
        return {verb.path: self._make_call(verb) for verb in VERBS}

    def routes(self) -> list[web.RouteDef]:
        """Give the handlers of calls in any other form."""
        return [web.post(verb.path, self._make_handler(verb)) for verb in VERBS]

    def _make_call(self, verb: Verb) -> PlainCall:
        return PlainCall(
            partial(self._reply, verb),
            lambda started: self._refuse(verb, refuse_slow(self._limits), started),
            most_bytes=self._limits.bytes,
            seconds=self._limits.seconds,
        )

    def _make_handler(self, verb: Verb) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            started = time.perf_counter()
            try:
                body = await receive(request, self._limits)
            except BodyRefused as refused:
                return _as_response(self._refuse(verb, refused, started))
            return _as_response(self._reply(verb, body, started))

        return handle

    def _reply(self, verb: Verb, body: bytes, started: float) -> Reply:
        """Answer; defer other work until the response is written, because the scheduler waits for it."""
        try:
            question = verb.read(body)
            answer, cause = self._answer(verb, question, started)
        except UnreadableCall as unreadable:
            self._count_call(verb, "unreadable", _since(started))
            return self._make_refusal(verb, HTTPStatus.BAD_REQUEST, unreadable)
        except Exception:
            self._count_call(verb, "failed", _since(started))
            raise
        answered = _Answered(verb, question, len(body), answer, cause, _since(started))
        return Reply(HTTPStatus.OK, answer.body, "application/json", then=partial(self._finish, answered))

    def _finish(self, answered: _Answered) -> None:
        """Count a call, and prepare for the next one for the same pod."""
        verb, question, size, answer, cause, seconds = answered
        self._count_call(verb, "neutral" if cause else "answered", seconds)
        self._call_tracker.expect(verb.part, question.pod.uid)
        metrics.BODY_BYTES.by_labels[verb.name,].observe(size)
        _count_answer(verb, answer)
        if cause:
            metrics.NEUTRAL.labels(verb.name, cause).inc()
        if answer.exhausted:
            self._announce(question.pod, answer.exhausted)
        verb.prepare_next(self._memory, question)

    def _answer(self, verb: Verb, question: object, started: float) -> tuple[Answer, str | None]:
        """Answer, neutrally in case of doubt; then also give the cause."""
        settings = self._settings()
        cause = find_neutral_cause(
            self._mirror_states(self._list_needed(verb, settings)),
            stale_after=settings.stale_after,
            spent=_since(started),
            deadline=settings.deadline,
        )
        if cause is None:
            try:
                return verb.decide(self._memory, question, settings, self._clock()), None
            except Exception:
                log.exception("answer failed, giving a neutral one", verb=verb.name)
                cause = freshness.FAULT
        return verb.stay_neutral(self._memory, question), cause

    def _list_needed(self, verb: Verb, settings: AnswerSettings) -> Kinds:
        """List the kinds that an answer depends on; the same until the settings change."""
        if self._needed[0] is not settings:
            self._needed = settings, {each.path: each.needs(settings) for each in VERBS}
        return self._needed[1][verb.path]

    def _refuse(self, verb: Verb, refused: BodyRefused, started: float) -> Reply:
        """Refuse a body and close the connection: the rest of the body would be read as the next call."""
        self._count_call(verb, refused.result, _since(started))
        return self._make_refusal(verb, refused.status, refused)._replace(is_last=True)

    def _make_refusal(self, verb: Verb, status: HTTPStatus, why: Exception) -> Reply:
        """Answer with the reason, and log it once until it changes."""
        text = f"{verb.name}: {why}"
        if text != self._last_refusal:
            log.warning("call refused", verb=verb.name, status=status, reason=str(why))
        self._last_refusal = text
        return Reply(status, f"{text}\n".encode())

    def _count_call(self, verb: Verb, result: str, seconds: float) -> None:
        self._call_tracker.hear(verb.part, self._clock())
        metrics.REQUESTS.by_labels[verb.name, result].value += 1
        metrics.DURATION.by_labels[verb.name,].observe(seconds)


def _since(started: float) -> float:
    return time.perf_counter() - started


def _as_response(reply: Reply) -> web.Response:
    if reply.then:
        reply.then()
    response = web.Response(
        status=reply.status, body=reply.body, headers={"Content-Type": reply.content_type}
    )
    if reply.is_last:
        response.force_close()
    return response


def _count_answer(verb: Verb, answer: Answer) -> None:
    said = (
        ("asked", answer.asked),
        ("avoided", answer.avoided),
        ("drawn", answer.drawn),
        ("refused", answer.refused),
    )
    for what, nodes in said:
        if nodes:
            metrics.NODES.by_labels[verb.name, what].value += nodes
    if answer.exhausted:
        metrics.EXHAUSTED.labels(answer.exhausted.rule).inc()
    if answer.overruled:
        metrics.OVERRULED.inc()
