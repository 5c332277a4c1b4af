"""How much may be moved: the limits of a plan, and what its moves have used of them.

    limits = begin_limits(context)
    limits = limits.spend(move)  # or why not

They begin with what is already in flight: our own open moves, and pods that other tools are evicting.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from reberth.cluster.kinds import HISTORY
from reberth.cluster.templates import Template
from reberth.memory.backoff import find_block
from reberth.records import EvictionHistory, OpenMove
from reberth.values.refusal import Refused
from rescheduler.budgets.allowances import (
    Charge,
    InFlightMove,
    charge_budget,
    charge_cycle,
    charge_gang,
    charge_in_flight,
    charge_onto,
    charge_quotas,
    charge_rates,
    charge_ready,
    charge_records,
    list_full_nodes,
)
from rescheduler.budgets.refused_before import charge_asking, charge_try, refuse_before
from rescheduler.model.quiet_hours import find_quiet, find_zone
from rescheduler.observe.node_eligibility import refuse_destination, refuse_source
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections.annotations import EVICTION_IN_PROGRESS

_Taken = Mapping[Hashable, int]


class CandidateMove(NamedTuple):
    """A move that a plan considers. Pods and nodes are given by their places; the destination may be open."""

    place: int
    source: int
    policy: str
    destination: int | None = None


@dataclass(frozen=True, eq=False)
class Limits:
    """What moves have used so far, under the key of each limit."""

    context: RuleContext
    taken: _Taken
    _last: dict[CandidateMove, Refused | tuple[Charge, ...]] = field(default_factory=dict, repr=False)

    def refuse(self, move: CandidateMove) -> Refused | None:
        """Refuse a move that would exceed a limit."""
        asked = self._charge(move)
        return asked if isinstance(asked, Refused) else None

    def spend(self, move: CandidateMove) -> "Limits | Refused":
        """Give the limits after a move, or refuse it."""
        asked = self._charge(move)
        return asked if isinstance(asked, Refused) else Limits(self.context, _take(self.taken, asked))

    def open(self, move: OpenMove, history: EvictionHistory, context: RuleContext) -> "Limits":
        """Give the limits when one more move is open, in a context that knows of it."""
        return Limits(context, _take(self.taken, _list_of_open(history, move, context)))

    def leave_out(self, move: OpenMove, history: EvictionHistory | None) -> "Limits":
        """Give the limits without a move, and without its charges if a history has it open."""
        charged = _list_of_open(history, move, self.context) if history else ()
        returned = (charge._replace(amount=-charge.amount) for charge in charged)
        return Limits(self.context.leave_out(move.id), _take(self.taken, returned))

    def list_full(self) -> list[int]:
        """List the nodes onto which no more moves are allowed."""
        most = self.context.limits.per_node
        return [] if most is None else list_full_nodes(self.taken, most)

    def _charge(self, move: CandidateMove) -> Refused | tuple[Charge, ...]:
        """Give all charges of a move; what is asked about next is most often its destination."""
        start = move._replace(destination=None)
        if start not in self._last:
            self._last.clear()
            self._last[start] = self._charge_start(start)
        charged = self._last[start]
        if isinstance(charged, Refused) or move.destination is None:
            return charged
        onto = _refuse_onto(move.destination, self.context) or self._collect(
            charge_onto(move.destination, self.context)
        )
        return onto if isinstance(onto, Refused) else (*charged, *onto)

    def _charge_start(self, move: CandidateMove) -> Refused | tuple[Charge, ...]:
        context = self.context
        cycle = self._collect(charge_cycle(context))
        if isinstance(cycle, Refused):
            return cycle
        refused = _refuse_off(move.source, context) or _refuse_now(move, context)
        budget = refused or charge_budget(move.place, context)
        if isinstance(budget, Refused):
            return budget
        records = charge_records(move.source, context)
        if isinstance(records, Refused):
            return records
        others = self._collect(chain([budget] if budget else (), records, _list_charges(move, context)))
        return others if isinstance(others, Refused) else (*cycle, *others)

    def _collect(self, charges: Iterable[Charge]) -> Refused | tuple[Charge, ...]:
        """Give the charges, or refuse by the first limit of which not enough is left."""
        found = []
        for charge in charges:
            if self.taken.get(charge.key, 0) + charge.amount > charge.left:
                return Refused(charge.rule, charge.reason, charge.until)
            found.append(charge)
        return tuple(found)


def begin_limits(context: RuleContext) -> Limits:
    """Give the limits before the first move of a plan."""
    return Limits(context, _take({}, _list_under_way(context)))


def _take(taken: _Taken, charges: Iterable[Charge]) -> _Taken:
    more = dict(taken)
    for charge in charges:
        more[charge.key] = more.get(charge.key, 0) + charge.amount
    return more


def _refuse_off(source: int, context: RuleContext) -> Refused | None:
    record = context.snapshot.nodes.records[source]
    return context.once(("leave", source), partial(refuse_source, record))


def _refuse_onto(destination: int, context: RuleContext) -> Refused | None:
    record = context.snapshot.nodes.records[destination]
    return context.once(("enter", destination), partial(refuse_destination, record))


def _refuse_now(move: CandidateMove, context: RuleContext) -> Refused | None:
    """Refuse by time: quiet hours of the policy, an earlier refusal, or back-off of the workload."""
    limits, now = context.limits, context.now
    quiet = find_quiet(limits.quiet_hours, move.policy, zone=find_zone(limits.time_zone), now=now)
    refused = quiet or refuse_before(move.place, context)
    history = context.history(context.template_of(move.place))
    if refused or history is None:
        return refused
    node = context.snapshot.nodes.names[move.source]
    return find_block(history.status, now, node=node, back_off=limits.back_off)


def _list_charges(move: CandidateMove, context: RuleContext) -> Iterator[Charge]:
    row = context.row(move.place)
    in_flight = InFlightMove(row.namespace, context.identify(move.place), move.source)
    yield from charge_in_flight(in_flight, context)
    yield from charge_ready(move.place, context)
    yield from charge_gang(move.place, context)
    yield from charge_rates(move.place, context)
    yield from charge_quotas(move.place, context)
    yield from charge_asking(move.place, context)
    yield from charge_try(move.place, context)


def _list_under_way(context: RuleContext) -> Iterator[Charge]:
    for history in context.snapshot.of(HISTORY):
        for move in history.status.open or ():
            yield from _list_of_open(history, move, context)
    for place in _find_evacuated(context):
        node = int(context.snapshot.pods.node[place])
        in_flight = InFlightMove(
            context.row(place).namespace, context.identify(place), node if node >= 0 else None
        )
        yield from charge_in_flight(in_flight, context)
        yield from _list_of_living(place, context)


def _list_of_open(history: EvictionHistory, move: OpenMove, context: RuleContext) -> Iterator[Charge]:
    """Charge one of our open moves; its debit is already in the ledger."""
    namespace, index = history.metadata.namespace, context.snapshot.nodes.index
    destination = index.get(move.destinations[0]) if move.destinations else None
    in_flight = InFlightMove(namespace, history.spec.workload, index.get(move.from_), destination)
    yield from charge_in_flight(in_flight, context)
    place = context.snapshot.pods.named(namespace, move.pod)
    if place is not None and context.row(place).uid == move.pod_uid:
        yield from _list_of_living(place, context)


def _list_of_living(place: int, context: RuleContext) -> Iterator[Charge]:
    """Charge the eviction of a pod that is about to be evicted, but still exists."""
    if context.row(place).is_terminating:
        return
    budget = charge_budget(place, context)
    if isinstance(budget, Charge):
        yield budget
    yield from charge_ready(place, context)
    yield from charge_gang(place, context)
    yield from charge_quotas(place, context)


def _find_evacuated(context: RuleContext) -> list[int]:
    """Find the pods that another tool is evicting in steps."""
    marked = context.snapshot.templates_where(_is_evacuated)
    places: list[int] = np.flatnonzero(context.spread(marked) & ~context.finished).tolist()
    return places


def _is_evacuated(template: Template) -> bool:
    annotations = template.pod.metadata.annotations
    return annotations is not None and EVICTION_IN_PROGRESS in annotations
