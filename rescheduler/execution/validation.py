"""Validates moves right before their evictions, and scores landings, on the newest state of the cluster.

Between the plan and the eviction seconds pass. A snapshot of a large cluster costs much more than a
question about one pod. So whoever asks while an answer is being found waits, and then all that wait are
answered on one snapshot, in the order in which they have asked: it is taken after the last of them asked.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from reberth.cluster.cache import Contents
from reberth.cluster.pods.identity import find_signature
from reberth.cluster.snapshot import Snapshot, build
from reberth.records import Node, OpenMove, Pod
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.execution.context import ExecutionContext, PodForecasts, ReasonCheck
from rescheduler.model.plan import LandingScores
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.moves.revalidation import POD_MOVED, Revalidation, choose_usable, refuse_by_budgets
from rescheduler.protections.pod_state import refuse_pod

R = TypeVar("R")

# While moves keep coming, a snapshot is taken twice a second: ten moves a second then share it.
_APART = 0.5


class MoveValidator:
    """Tells for all moves of one leader whether they may still be made, and what their landings are worth."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._turn = asyncio.Lock()
        self._waiting: list[_Question] = []
        self._not_before = 0.0  # by the clock of the event loop

    async def refuse(self, entry: OpenMove, pod: Pod, *, resumed: bool) -> Refused | None:
        """Validate a move whose pod was just read. A resumed move was begun by an earlier leader."""
        refused = refuse_pod(pod) or (POD_MOVED if pod.spec.node_name != entry.from_ else None)
        if refused:
            return refused
        return await self.ask(lambda survey: survey.refuse(entry, pod, resumed=resumed))

    async def score_landing(self, move: OpenMove, landed_on: str) -> LandingScores | None:
        """Score a landing; without a forecast nothing is known of it."""
        if self._context.forecast is None:
            return None
        return await self.ask(lambda survey: survey.score_landing(move, landed_on))

    async def ask(self, ask: "Callable[[Survey], R]") -> R:
        """Ask a question about the newest state, together with all that wait."""
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Question(ask, answer))
        try:
            async with self._turn:
                if not answer.done():
                    await self._answer_all()
            return await answer
        finally:
            answer.cancel()

    async def _answer_all(self) -> None:
        """Answer all that wait. If this task is cancelled meanwhile, the next in line answers the others."""
        await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
        self._not_before = asyncio.get_running_loop().time() + _APART
        asked = [each for each in self._waiting if not each.answer.done()]
        contents, now = self._context.mirror.cache.contents(), self._context.clock()
        answers = await self._context.offload(partial(self._find_answers, asked, contents, now))
        for each, found in zip(asked, answers, strict=True):
            each.give(found)
        self._waiting = [each for each in self._waiting if not each.answer.done()]

    def _find_answers(self, asked: "list[_Question]", contents: Contents, now: float) -> "list[_Answer]":
        survey = Survey(self._context, build(contents, now=now))
        return [_answer(each.ask, survey) for each in asked]


@dataclass(frozen=True, eq=False)
class Survey:
    """One snapshot, and what several questions about it have in common; each is found when it is needed."""

    context: ExecutionContext
    snapshot: Snapshot

    def refuse(self, entry: OpenMove, pod: Pod, *, resumed: bool) -> Refused | None:
        """Validate a move; it then counts as open for those after it."""
        refused = self._refuse(entry, pod, resumed=resumed)
        if self.forecasts:
            self._rules.count_open(entry)
        return refused

    def _refuse(self, entry: OpenMove, pod: Pod, *, resumed: bool) -> Refused | None:
        """A person's request takes precedence over the rules of the plan, but not over the budgets."""
        usable = self._choose_usable(entry, pod)
        if isinstance(usable, Refused):
            return usable
        if entry.policy == MANUAL or self.forecasts is None:
            return refuse_by_budgets(entry.pod_uid, self.snapshot)
        return self._rules.refuse(entry, usable[0]) or self._reasons.refuse(entry, resumed=resumed)

    def score_landing(self, move: OpenMove, landed_on: str) -> LandingScores | None:
        return self.forecasts.score_landing(move, landed_on) if self.forecasts else None

    @cached_property
    def forecasts(self) -> PodForecasts | None:
        forecast = self.context.forecast
        return forecast.look_at(self.snapshot) if forecast else None

    @cached_property
    def _rules(self) -> Revalidation:
        context = self.context
        return Revalidation(
            self.snapshot,
            policy=context.policy(),
            schedulers=context.forecast.schedulers if context.forecast else frozenset(),
            health=ClusterHealth(drawn=context.settings().extender != "none"),
        )

    @cached_property
    def _reasons(self) -> ReasonCheck:
        return self.context.find_reasons(self.snapshot)

    def _choose_usable(self, entry: OpenMove, pod: Pod) -> tuple[str, ...] | Refused:
        who = find_signature(pod.metadata, {})
        if isinstance(who, Refused):
            return who
        usable = choose_usable(
            entry.destinations or (),
            source=entry.from_,
            who=who,
            find=partial(_find_node, self.snapshot),
            now=self.snapshot.now,
        )
        if isinstance(usable, Refused) or self.forecasts is None:
            return usable
        return self.forecasts.refuse_destinations(pod, usable) or usable


@dataclass(frozen=True, eq=False)
class _Question:
    """A question that waits for its answer; an asker that is cancelled does not wait any more."""

    ask: Callable[[Survey], Any]
    answer: asyncio.Future[Any]

    def give(self, found: "_Answer") -> None:
        if self.answer.done():
            return
        if found.error:
            self.answer.set_exception(found.error)
        else:
            self.answer.set_result(found.value)


@dataclass(frozen=True)
class _Answer:
    value: Any = None
    error: BaseException | None = None


def _answer(ask: Callable[[Survey], Any], survey: Survey) -> _Answer:
    """An error in one question must not keep the others from their answers."""
    try:
        return _Answer(ask(survey))
    except Exception as error:  # noqa: BLE001 - the asker gets it, whatever it is
        return _Answer(error=error)


def _find_node(snapshot: Snapshot, name: str) -> Node | None:
    place = snapshot.nodes.index.get(name)
    return None if place is None else snapshot.nodes.records[place]
