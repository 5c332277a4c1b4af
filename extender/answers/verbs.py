"""The answers to kube-scheduler's calls, from the arguments and the memory to bytes.

Every answer has a neutral form, which does not affect the scheduler's decision: all nodes pass, all get the
same score, all candidates stay.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from extender.answers.memory import ClusterMemory
from extender.answers.preemption import filter_candidates, limit_by_budgets
from extender.answers.settings import AnswerSettings
from extender.answers.wire import (
    ExtenderArgs,
    ExtenderPreemptionArgs,
    pass_all,
    read_args,
    read_preemption_args,
    write_filter,
    write_preempt,
)
from reberth.cluster.kinds import BUDGET, HISTORY, NODE, OWNED_CONTROLLERS, POD, SCORE, Kind
from reberth.memory.addon_scores import MOST_GRADE, Grades
from reberth.memory.advice import PodAdvice, grade_avoiding, grade_scores, refuse_nodes
from reberth.records import ObjectMeta, OpenMove
from reberth.values.refusal import Refused

_OWNERS = set(OWNED_CONTROLLERS)
# Signals that an answer does not depend on are not gathered: each takes time in every call.
_REFUSES_WITHOUT = {"draw": False, "history": False}
_AVOIDS_WITHOUT = {"history": False}
_SCORES_WITHOUT = {"draw": False, "notes": False}
_NO_AVOIDANCE = MOST_GRADE
_NO_WORTH = MOST_GRADE // 2

Kinds = set[Kind[Any, Any]]


class Answer(NamedTuple):
    """The response body, and the numbers for the metrics."""

    body: bytes
    asked: int
    avoided: int = 0
    drawn: int = 0
    refused: int = 0
    exhausted: Refused | None = None
    """Why no candidate is left, although the call had some."""
    overruled: bool = False


class Verb(NamedTuple):
    """One call of the extender API: how it is read, which kinds it needs, how it is answered."""

    name: str
    path: str
    read: Callable[[bytes], Any]
    needs: Callable[[AnswerSettings], Kinds]
    decide: Callable[[ClusterMemory, Any, AnswerSettings, float], Answer]
    stay_neutral: Callable[[ClusterMemory, Any], Answer]
    part: str
    """The extender in kube-scheduler's configuration that makes this call."""
    prepare_next: Callable[[ClusterMemory, Any], object] = lambda *_: None
    """Work that can be done before the next call for the same pod arrives."""


def _filter(memory: ClusterMemory, asked: ExtenderArgs, settings: AnswerSettings, now: float) -> Answer:
    if not memory.index.notes.has_strict:
        return _pass_all(memory, asked)
    refused = refuse_nodes(_advise(memory, asked.pod, settings, now, without=_REFUSES_WITHOUT), asked.nodes)
    if not refused:
        return _pass_all(memory, asked)
    passed = [node for node in asked.nodes if node not in refused]
    reasons = {node: each.reason for node, each in refused.items()}
    return Answer(write_filter(passed, reasons), len(asked.nodes), refused=len(refused))


def _pass_all(_: ClusterMemory, asked: ExtenderArgs) -> Answer:
    return Answer(pass_all(asked), len(asked.nodes))


def _avoid(memory: ClusterMemory, asked: ExtenderArgs, settings: AnswerSettings, now: float) -> Answer:
    advice = _advise(memory, asked.pod, settings, now, without=_AVOIDS_WITHOUT)
    nodes = memory.locate(asked.nodes)
    grades = grade_avoiding(memory.index, advice, nodes.rows)
    body, number = memory.fragments.write(nodes, grades), len(nodes.names)
    if advice.drawn_by and _is_drawn(advice.drawn_by, nodes.names, grades):
        return Answer(body, number, drawn=1)
    return Answer(body, number, avoided=number - int(np.count_nonzero(grades)))


def _score(memory: ClusterMemory, asked: ExtenderArgs, settings: AnswerSettings, now: float) -> Answer:
    nodes = memory.locate(asked.nodes)
    advice = _advise(memory, asked.pod, settings, now, without=_SCORES_WITHOUT)
    grades = grade_scores(memory.index, advice, nodes.rows)
    return Answer(memory.fragments.write(nodes, grades), len(nodes.names))


def _grade_alike(grade: int) -> Callable[[ClusterMemory, ExtenderArgs], Answer]:
    def answer(memory: ClusterMemory, asked: ExtenderArgs) -> Answer:
        nodes = memory.locate(asked.nodes)
        grades = np.full(len(nodes.names), grade, dtype=np.uint8)
        return Answer(memory.fragments.write(nodes, grades), len(nodes.names))

    return answer


def _preempt(
    memory: ClusterMemory, asked: ExtenderPreemptionArgs, settings: AnswerSettings, now: float
) -> Answer:
    budgets = settings.preempt.budgets
    advice = _advise(memory, asked.pod, settings, now, without=_REFUSES_WITHOUT)
    filtered = filter_candidates(
        asked,
        find_pod=memory.of(POD).by_uid,
        refusing=refuse_nodes(advice, asked.entries),
        limits=[] if budgets == "off" else [limit_by_budgets(memory.of(BUDGET).rows().within)],
        strict=budgets == "strict",
    )
    return Answer(
        write_preempt(filtered.left),
        len(asked.entries),
        refused=len(filtered.dropped),
        exhausted=None if filtered.left else next(iter(filtered.dropped.values()), None),
        overruled=filtered.overruled,
    )


def _keep_all(_: ClusterMemory, asked: ExtenderPreemptionArgs) -> Answer:
    return Answer(write_preempt(asked.entries), len(asked.entries))


def _advise(
    memory: ClusterMemory,
    pod: ObjectMeta,
    settings: AnswerSettings,
    now: float,
    *,
    without: Mapping[str, bool],
) -> PodAdvice:
    return memory.advise(pod, now=now, settings=replace(settings.advice, **without))


def _is_drawn(move: OpenMove, nodes: list[str], grades: Grades) -> bool:
    """Tell whether the one best node is a destination; else the others are low because they are avoided."""
    return np.count_nonzero(grades) == 1 and nodes[int(grades.argmax())] in (move.destinations or ())


def _need_for_refusing(settings: AnswerSettings) -> Kinds:
    return {NODE, *_OWNERS} if settings.advice.notes else set()


def _need_for_avoiding(settings: AnswerSettings) -> Kinds:
    advice = settings.advice
    needed = _need_for_refusing(settings)
    if advice.draw:
        needed |= {HISTORY, POD}
    return needed | ({NODE} if advice.draw or advice.standing else set())


def _need_for_scoring(settings: AnswerSettings) -> Kinds:
    advice = settings.advice
    needed: Kinds = {NODE, HISTORY, *_OWNERS} if advice.history else set()
    return needed | ({NODE, SCORE} if advice.scores and settings.scores.scores else set())


def _need_for_preempting(settings: AnswerSettings) -> Kinds:
    needed = _need_for_refusing(settings)
    return needed if settings.preempt.budgets == "off" else needed | {POD, BUDGET}


PARTS = ("avoid", "scores")
_AVOID, _SCORES = PARTS
FILTER = Verb(
    "filter",
    "/avoid/filter",
    read_args,
    _need_for_refusing,
    _filter,
    _pass_all,
    _AVOID,
    lambda memory, asked: memory.locate(asked.nodes),  # the pod is prioritized next
)
PRIORITIZE = Verb(
    "prioritize",
    "/avoid/prioritize",
    read_args,
    _need_for_avoiding,
    _avoid,
    _grade_alike(_NO_AVOIDANCE),
    _AVOID,
)
PREEMPT = Verb(
    "preempt", "/avoid/preempt", read_preemption_args, _need_for_preempting, _preempt, _keep_all, _AVOID
)
SCORES = Verb(
    "scores",
    "/scores/prioritize",
    read_args,
    _need_for_scoring,
    _score,
    _grade_alike(_NO_WORTH),
    _SCORES,
)
VERBS = (FILTER, PRIORITIZE, PREEMPT, SCORES)
