"""What the results of moves stop: as much as those moves have in common.

A replacement that stays pending, or lands elsewhere than forecast, may be the fault of its workload: of a
volume, a quota, a webhook. Then the other workloads must go on. So it stops its own workload. It stops a
namespace, or everything, only if several workloads there have the same trouble.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from reberth.cluster.kinds import HISTORY
from reberth.memory.backoff import closing_time, instant
from reberth.memory.destination_draw import Replica, draw, replica_of
from reberth.records import EvictionHistory, OpenMove, Outcome
from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import RuleContext

HistoryKey = tuple[str, str]
"""A workload: the namespace and the name of its eviction history."""


@dataclass(frozen=True, eq=False)
class ResultBrakes:
    """The brakes that results of moves have put on: everywhere, in namespaces, and for single workloads."""

    everywhere: tuple[Refused, ...] = ()
    namespaces: Mapping[str, Refused] = field(default_factory=dict)
    workloads: Mapping[HistoryKey, Refused] = field(default_factory=dict)

    def refuse(self, place: int, context: RuleContext) -> Refused | None:
        """Refuse to move a pod whose workload or namespace is held."""
        if not self.namespaces and not self.workloads:
            return None
        history = context.history(context.template_of(place))
        held = self.workloads.get(_key(history)) if history else None
        return held or self.namespaces.get(context.row(place).namespace)

    def list_held(self) -> Iterator[str]:
        """Say in one line for each rule what is held."""
        for what, held in (("namespace", self.namespaces), ("workload", self.workloads)):
            for rule in sorted({refused.rule for refused in held.values()}):
                reasons = sorted(refused.reason for refused in held.values() if refused.rule == rule)
                more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
                yield f"{rule}, for its {what} only{more}: {reasons[0]}"

    def __add__(self, other: "ResultBrakes") -> "ResultBrakes":
        return ResultBrakes(
            (*self.everywhere, *other.everywhere),
            {**other.namespaces, **self.namespaces},
            {**other.workloads, **self.workloads},
        )


class _PendingReplacement(NamedTuple):
    """A replacement that has been pending for too long."""

    place: int
    workload: HistoryKey
    move: str


class _JudgedLanding(NamedTuple):
    """A landing that was compared with the forecast; sorted by time."""

    closed_at: float
    move: str
    as_forecast: bool
    workload: HistoryKey


class _Eviction(NamedTuple):
    """A move that was closed after its eviction, or that is open; sorted by time."""

    time: float
    move: str
    opened: OpenMove | None = None


def judge_results(context: RuleContext, *, drawn: bool) -> ResultBrakes:
    """Find the brakes; landings say something only where replacements are drawn to their destinations."""
    return _judge_pending(context) + (_judge_landings(context) if drawn else ResultBrakes())


def _judge_pending(context: RuleContext) -> ResultBrakes:
    pending = list(_list_pending(context))
    held = {each.workload: _describe(each.place, context) for each in pending}
    return _judge_many_pending(pending, context) + ResultBrakes(workloads=held)


def _judge_many_pending(pending: Collection[_PendingReplacement], context: RuleContext) -> ResultBrakes:
    """Find that replacements of several workloads are pending, of the last moves.

    Of the last moves, since many more may have landed meanwhile; and of a limited time, since while all moves
    are stopped the last ones stay the last.
    """
    settings = context.brakes
    since = context.now - settings.pending_within
    young = [each for each in pending if context.row(each.place).created > since]
    if len(young) < settings.fewest_workloads:
        return ResultBrakes()
    parts = (part.read(_read_evictions) for part in context.snapshot.of(HISTORY).parts)
    evictions = [
        each for each in chain.from_iterable(parts) if each.opened is None or context.is_evicted(each.opened)
    ]
    last = {each.move for each in sorted(evictions, key=_eviction_order)[-settings.moves :]}
    counted = [each for each in young if each.move in last]
    workloads = {each.workload for each in counted}
    if len(workloads) < settings.fewest_workloads:
        return ResultBrakes()
    until = sorted(context.row(each.place).created for each in counted)[-settings.fewest_workloads]
    first = _describe(counted[0].place, context)
    said = f"of the last {len(last)} moves {len(workloads)} workloads have a replacement that is pending"
    refused = Refused(first.rule, f"{said}: {first.reason}", until + settings.pending_within)
    return _stop(refused, workloads, context)


def _judge_landings(context: RuleContext) -> ResultBrakes:
    """Find that too few of the last landings were as forecast.

    The eviction histories tell, so a plan, the check before an eviction and the next leader agree. All moves
    may be stopped, so that nothing lands any more: therefore only landings of a limited time count.
    """
    settings = context.brakes
    since = context.now - settings.landings_within
    parts = (part.read(_read_landings) for part in context.snapshot.of(HISTORY).parts)
    recent = sorted(landing for landing in chain.from_iterable(parts) if landing.closed_at > since)
    last = recent[-settings.landings :]
    count = sum(landing.as_forecast for landing in last)
    if len(last) < settings.fewest_landings or count >= settings.inside_forecast * len(last):
        return ResultBrakes()
    least = f"fewer than {settings.inside_forecast:.0%}"
    refused = Refused("ForecastAstray", f"{count} of the last {len(last)} landings were as forecast, {least}")
    return _stop(refused, {each.workload for each in last if not each.as_forecast}, context)


def _stop(refused: Refused, causes: Collection[HistoryKey], context: RuleContext) -> ResultBrakes:
    """Stop what the causes have in common."""
    if len(causes) < context.brakes.fewest_workloads:
        return ResultBrakes(workloads=dict.fromkeys(causes, refused))
    namespaces = {namespace for namespace, _ in causes}
    if len(namespaces) == 1:
        return ResultBrakes(namespaces=dict.fromkeys(namespaces, refused))
    return ResultBrakes((refused,))


def _list_pending(context: RuleContext) -> Iterator[_PendingReplacement]:
    """List the replacements that have been pending for too long.

    Not for ever, since a pod may wait for weeks: as long as a workload is given up after fruitless moves.
    """
    pods, settings = context.snapshot.pods, context.brakes
    waiting = (pods.node < 0) & ~pods.terminating & ~context.finished
    waiting &= pods.created < context.now - settings.pending_replacement
    waiting &= pods.created > context.now - context.limits.back_off.given_up_for
    for place in np.flatnonzero(waiting).tolist():
        row, history = context.row(place), context.history(context.template_of(place))
        move = _find_move(place, history, context) if history and row.node is None else None
        if history and move:
            yield _PendingReplacement(place, _key(history), move)


def _find_move(place: int, history: EvictionHistory, context: RuleContext) -> str | None:
    """Give the move whose replacement a pending pod is.

    A workload has other pending pods too, such as those of a scale-up. Of an open move it is the pod that the
    move draws; a closed one names it.
    """
    row = context.row(place)
    for past in history.status.past or ():
        if past.outcome == Outcome.PENDING and past.replacement_uid == row.uid:
            return past.id
    controller = row.template.controller
    opened = [move for move in history.status.open or () if move.id != context.without]
    moves = [move for move in opened if controller and move.controller_uid == controller.uid]
    drawing = draw(replica_of(row), moves, _list_replicas(place, context), now=context.now) if moves else None
    return drawing.id if drawing and context.is_evicted(drawing) else None


def _list_replicas(place: int, context: RuleContext) -> list[Replica]:
    """List all pods of the pod's controller."""
    pods = context.snapshot.pods
    workloads = context.workload_of[pods.template]
    alike = np.flatnonzero(workloads == workloads[place]).tolist()
    return [replica_of(pods.rows[other]) for other in alike]


def _describe(place: int, context: RuleContext) -> Refused:
    row, most = context.row(place), context.brakes.pending_replacement
    said = f"{row.namespace}/{row.name} has been pending for {context.now - row.created:.0f} s"
    end = row.created + context.limits.back_off.given_up_for
    return Refused("PendingReplacement", f"{said}, more than {most:g} s", end)


def _read_evictions(histories: tuple[EvictionHistory, ...]) -> tuple[_Eviction, ...]:
    """An open move does not say when its pod was evicted: shortly after it was planned."""
    opened = (move for history in histories for move in history.status.open or ())
    past = (move for history in histories for move in history.status.past or ())
    return (
        *(_Eviction(instant(move.evicted_at or move.planned_at), move.id, move) for move in opened),
        *(_Eviction(instant(move.evicted_at), move.id) for move in past if move.evicted_at),
    )


def _eviction_order(eviction: _Eviction) -> tuple[float, str]:
    return eviction.time, eviction.move


def _read_landings(histories: tuple[EvictionHistory, ...]) -> tuple[_JudgedLanding, ...]:
    return tuple(
        _JudgedLanding(closing_time(move), move.id, move.as_forecast, _key(history))
        for history in histories
        for move in history.status.past or ()
        if move.as_forecast is not None
    )


def _key(history: EvictionHistory) -> HistoryKey:
    return history.metadata.namespace, history.metadata.name
