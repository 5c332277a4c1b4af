"""kube-scheduler calls: read, answered, counted. Whatever happens, no worse than without us.

A call that cannot be read gets an honest error. One that can be read is answered; where there is doubt, or a
fault of ours, the answer is neutral and counted by its cause.
"""

import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web

from extender import doubting, metrics
from extender.answering import VERBS, Answer, Kinds, Verb
from extender.attention import Attention
from extender.doubting import Standing, find_doubt
from extender.memory import Memory
from extender.receiving import BodyRefused, Limits, receive
from extender.settings import AnswerSettings
from extender.wire import Unreadable
from reberth.logs import Log
from reberth.records import ObjectMeta
from reberth.refusals import Refused

log = Log(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Desk:
    """Answers from the memory, as the settings say at that moment."""

    def __init__(
        self,
        memory: Memory,
        attention: Attention,
        *,
        settings: Callable[[], AnswerSettings],
        standings: Callable[[Kinds], list[Standing]],
        announce: Callable[[ObjectMeta, Refused], None],
        limits: Limits,
    ) -> None:
        self._memory = memory
        self._attention = attention
        self._settings = settings
        self._standings = standings
        self._announce = announce
        self._limits = limits
        self._last_refusal = ""

    def routes(self) -> list[web.RouteDef]:
        return [web.post(verb.path, self._handler(verb)) for verb in VERBS]

    def _handler(self, verb: Verb) -> Handler:
        duration = metrics.DURATION.labels(verb.name)

        async def handle(request: web.Request) -> web.Response:
            started, result = time.perf_counter(), "failed"
            self._attention.hear(verb.part, time.time())
            try:
                result, response = await self._respond(verb, request, started)
            finally:
                metrics.REQUESTS.labels(verb.name, result).inc()
                duration.observe(time.perf_counter() - started)
            return response

        return handle

    async def _respond(self, verb: Verb, request: web.Request, started: float) -> tuple[str, web.Response]:
        try:
            body = await receive(request, self._limits)
            question = verb.read(body)
        except BodyRefused as refused:
            return refused.result, self._refuse(verb, refused.status, refused)
        except Unreadable as unreadable:
            return "unreadable", self._refuse(verb, HTTPStatus.BAD_REQUEST, unreadable)
        self._attention.expect(verb.part, question.pod.uid)
        metrics.BODY_BYTES.labels(verb.name).observe(len(body))
        answer, cause = self._answer(verb, question, started)
        _count(verb, answer)
        if cause:
            metrics.NEUTRAL.labels(verb.name, cause).inc()
        if answer.exhausted:
            self._announce(question.pod, answer.exhausted)
        return "neutral" if cause else "answered", web.Response(
            body=answer.body, content_type="application/json"
        )

    def _answer(self, verb: Verb, question: object, started: float) -> tuple[Answer, str | None]:
        """Answer, neutrally where there is doubt; then also give the cause."""
        settings = self._settings()
        cause = find_doubt(
            self._standings(verb.needs(settings)),
            stale_after=settings.stale_after,
            spent=time.perf_counter() - started,
            deadline=settings.deadline,
        )
        if cause is None:
            try:
                return verb.decide(self._memory, question, settings, time.time()), None
            except Exception:
                log.exception("no answer", verb=verb.name)
                cause = doubting.FAULT
        return verb.stay_neutral(self._memory, question), cause

    def _refuse(self, verb: Verb, status: int, why: Exception) -> web.Response:
        """Refuse with the reason, which is logged once until it changes."""
        text = f"{verb.name}: {why}"
        if text != self._last_refusal:
            log.warning("call refused", verb=verb.name, status=status, reason=str(why))
        self._last_refusal = text
        response = web.Response(status=status, text=f"{text}\n")
        if status != HTTPStatus.BAD_REQUEST:
            response.force_close()  # what is left of the body is nobody's
        return response


def _count(verb: Verb, answer: Answer) -> None:
    said = {
        "asked": answer.asked,
        "avoided": answer.avoided,
        "drawn": answer.drawn,
        "refused": answer.refused,
    }
    for what, nodes in said.items():
        if nodes:
            metrics.NODES.labels(verb.name, what).inc(nodes)
    if answer.exhausted:
        metrics.EXHAUSTED.labels(answer.exhausted.rule).inc()
    if answer.overruled:
        metrics.OVERRULED.inc()
