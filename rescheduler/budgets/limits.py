"""How much may be moved: what a plan may still spend, as a value that each accepted move makes smaller.

    limits = begin_limits(context)
    limits = limits.spend(move)  # or why not

It begins with what is under way already: our own open moves, and pods that somebody else is evicting.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from reberth.cluster.kinds import HISTORY
from reberth.cluster.templates import Template
from reberth.memory.backoff import find_block
from reberth.records import EvictionHistory, OpenMove
from reberth.values.refusal import Refused
from rescheduler.budgets.allowances import (
    Flight,
    Toll,
    ask_budgets,
    list_full_nodes,
    list_in_flight,
    list_of_cycle,
    list_quotas,
    list_rates,
    list_ready,
)
from rescheduler.model.guardrails import LimitSettings
from rescheduler.model.quiet_hours import find_quiet, find_zone
from rescheduler.observe.node_eligibility import may_enter, may_leave
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections.annotations import EVICTION_IN_PROGRESS

__all__ = ["LimitSettings", "Limits", "Spending", "begin_limits"]

_Taken = Mapping[Hashable, int]


class Spending(NamedTuple):
    """A move that a plan would make. Pods and nodes are their places; None: no destination is chosen yet."""

    place: int
    source: int
    policy: str
    destination: int | None = None


@dataclass(frozen=True, eq=False)
class Limits:
    """What was taken so far, under the key of each limit."""

    context: RuleContext
    taken: _Taken

    def refuse(self, move: Spending) -> Refused | None:
        """Tell which limit forbids a move."""
        asked = self._ask(move)
        return asked if isinstance(asked, Refused) else None

    def spend(self, move: Spending) -> "Limits | Refused":
        """Give what is left after a move."""
        asked = self._ask(move)
        return asked if isinstance(asked, Refused) else Limits(self.context, _take(self.taken, asked))

    def list_full(self) -> list[int]:
        """List the nodes that nothing more may be moved onto."""
        most = self.context.limits.per_node
        return [] if most is None else list_full_nodes(self.taken, most)

    def _ask(self, move: Spending) -> Refused | tuple[Toll, ...]:
        context = self.context
        tolls = [*list_of_cycle(context)]
        full = self._find_closed(tolls)
        refused = full or _refuse_nodes(move, context) or _refuse_now(move, context)
        budget = refused or ask_budgets(move.place, context)
        if isinstance(budget, Refused):
            return budget
        tolls += [*([budget] if budget else []), *_list_tolls(move, context)]
        return self._find_closed(tolls) or tuple(tolls)

    def _find_closed(self, tolls: Iterable[Toll]) -> Refused | None:
        """Find the first limit of which not enough is left."""
        for toll in tolls:
            if self.taken.get(toll.key, 0) + toll.amount > toll.left:
                return Refused(toll.rule, toll.reason, toll.until)
        return None


def begin_limits(context: RuleContext) -> Limits:
    """Give what a plan may spend, before its first move."""
    return Limits(context, _take({}, _list_under_way(context)))


def _take(taken: _Taken, tolls: Iterable[Toll]) -> _Taken:
    more = dict(taken)
    for toll in tolls:
        more[toll.key] = more.get(toll.key, 0) + toll.amount
    return more


def _refuse_nodes(move: Spending, context: RuleContext) -> Refused | None:
    records = context.snapshot.nodes.records
    refused = context.once(("leave", move.source), partial(may_leave, records[move.source]))
    if refused or move.destination is None:
        return refused
    return context.once(("enter", move.destination), partial(may_enter, records[move.destination]))


def _refuse_now(move: Spending, context: RuleContext) -> Refused | None:
    """Tell what time alone forbids: the policy rests, or the workload is left alone."""
    limits, now = context.limits, context.now
    quiet = find_quiet(limits.quiet_hours, move.policy, zone=find_zone(limits.time_zone), now=now)
    history = context.history(context.template_of(move.place))
    if quiet or history is None:
        return quiet
    node = context.snapshot.nodes.names[move.source]
    return find_block(history.status, now, node=node, back_off=limits.back_off)


def _list_tolls(move: Spending, context: RuleContext) -> Iterator[Toll]:
    row = context.row(move.place)
    flight = Flight(row.namespace, context.identify(move.place), move.source, move.destination)
    yield from list_in_flight(flight, context)
    yield from list_ready(move.place, context)
    yield from list_rates(move.place, context)
    yield from list_quotas(move.place, context)


def _list_under_way(context: RuleContext) -> Iterator[Toll]:
    for history in context.snapshot.of(HISTORY):
        for move in history.status.open or ():
            yield from _list_of_open(history, move, context)
    for place in _find_evacuated(context):
        node = int(context.snapshot.pods.node[place])
        flight = Flight(context.row(place).namespace, context.identify(place), node if node >= 0 else None)
        yield from list_in_flight(flight, context)
        yield from _list_of_living(place, context)


def _list_of_open(history: EvictionHistory, move: OpenMove, context: RuleContext) -> Iterator[Toll]:
    """Give what one of our own moves takes; its debit stands in the ledger."""
    namespace, index = history.metadata.namespace, context.snapshot.nodes.index
    destination = index.get(move.destinations[0]) if move.destinations else None
    flight = Flight(namespace, history.spec.workload, index.get(move.from_), destination)
    yield from list_in_flight(flight, context)
    place = context.snapshot.pods.named(namespace, move.pod)
    if place is not None and context.row(place).uid == move.pod_uid:
        yield from _list_of_living(place, context)


def _list_of_living(place: int, context: RuleContext) -> Iterator[Toll]:
    """Give what the eviction of a pod that is to go will take; it has not gone yet."""
    if context.row(place).is_terminating:
        return
    budget = ask_budgets(place, context)
    if isinstance(budget, Toll):
        yield budget
    yield from list_ready(place, context)
    yield from list_quotas(place, context)


def _find_evacuated(context: RuleContext) -> list[int]:
    """Find the pods that somebody else is evicting, step by step."""
    marked = context.snapshot.templates_where(_is_evacuated)
    places: list[int] = np.flatnonzero(context.spread(marked) & ~context.finished).tolist()
    return places


def _is_evacuated(template: Template) -> bool:
    annotations = template.pod.metadata.annotations
    return annotations is not None and EVICTION_IN_PROGRESS in annotations
