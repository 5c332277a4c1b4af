"""Charges: what a move uses up of disruption budgets, rates, quotas, and limits on moves in flight.

Each limit has a key and a number that is left. Charges are added up under their keys, so it is known when one
more move would exceed a limit.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from msgspec.structs import replace

from reberth.cluster.kinds import HISTORY
from reberth.cluster.rows import PodRow
from reberth.memory.ledger import Disruption, RateWindow, find_room, list_windows
from reberth.memory.notes import ANNOTATION, NOTES_FULL, count_room, read_notes
from reberth.memory.rates import DisruptionLimits
from reberth.records import WorkloadIdentity
from reberth.values.pod_limit import PodLimit
from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import Budget, RuleContext
from rescheduler.protections.pod_groups import find_gang
from rescheduler.protections.workloads import UNREADABLE, QuotaNeed, list_needs

_SPARING = "AlwaysAllow"
_BUDGET_POLICIES = (None, "IfHealthyBudget", _SPARING)
# The Eviction API checks no PodDisruptionBudget for pods in these phases.
_UNBUDGETED = ("Pending", "Succeeded", "Failed")
# The rules of the rates, and the settings field of each.
_RATES = {"ClusterRate": "cluster", "NamespaceRate": "namespace", "WorkloadRate": "workload"}


_NODE, _ONTO = "NodeInFlight", "onto"
_NOTES = NOTES_FULL.rule


class InFlightMove(NamedTuple):
    """A move in flight: its workload, its source node, and its destination if one is chosen."""

    namespace: str
    workload: WorkloadIdentity
    source: int | None
    destination: int | None = None


class Charge(NamedTuple):
    """What one move takes under a key, and how much was left there before any move."""

    rule: str
    key: Hashable
    left: float
    reason: str
    until: float | None = None
    amount: int = 1


def charge_budget(place: int, context: RuleContext) -> Refused | Charge | None:
    """Charge an eviction to the pod's PodDisruptionBudget, or refuse it as the Eviction API would."""
    row = context.row(place)
    budgets = () if row.phase in _UNBUDGETED else context.budgets_of(row)
    if len(budgets) > 1:
        names = ", ".join(sorted(budget.record.metadata.name for budget in budgets))
        return Refused("SeveralBudgets", f"more than one PodDisruptionBudget selects the pod: {names}")
    return _ask_budget(row, budgets[0], context) if budgets else None


def charge_in_flight(in_flight: InFlightMove, context: RuleContext) -> Iterator[Charge]:
    """Charge a move to the limits on moves in flight."""
    workload = in_flight.workload
    limits = context.limits_of(in_flight.namespace, workload)
    whose = (in_flight.namespace, workload.kind, workload.name)
    yield from _count("WorkloadInFlight", "perWorkload", limits.per_workload, whose)
    yield from _count("NamespaceInFlight", "perNamespace", limits.per_namespace, in_flight.namespace)
    if in_flight.source is not None:
        yield from _count(_NODE, "perNode", limits.per_node, ("off", in_flight.source))
    if in_flight.destination is not None:
        yield from charge_onto(in_flight.destination, context)


def charge_onto(destination: int, context: RuleContext) -> Iterator[Charge]:
    """Charge a move to the limit on moves onto its destination."""
    yield from _count(_NODE, "perNode", context.limits.per_node, (_ONTO, destination))


def list_full_nodes(taken: Mapping[Hashable, int], most: int) -> list[int]:
    """List the nodes that have as many moves onto them as allowed."""
    found = (
        key[1] for key, count in taken.items() if count >= most and isinstance(key, tuple) and key[0] == _NODE
    )
    return [node for way, node in found if way == _ONTO]


def charge_cycle(context: RuleContext) -> Iterator[Charge]:
    """Charge a move to the limit of its cycle."""
    yield from _count("Limit", "perCycle", context.limits_of().per_cycle, "cycle")


def charge_ready(place: int, context: RuleContext) -> Iterator[Charge]:
    """Charge a move to the Ready replicas of its workload: the last one stays."""
    if context.protections.last_ready and context.row(place).is_ready:
        workload = int(context.workload_of[context.template_of(place)])
        left = int(context.ready_replicas[workload]) - 1
        yield Charge("LastReady", ("LastReady", workload), left, "no other replica would be Ready")


def charge_gang(place: int, context: RuleContext) -> Iterator[Charge]:
    """Charge a move to the Ready pods that the gang of its PodGroup can spare."""
    row = context.row(place)
    is_asked = context.protections.gangs and row.is_ready
    gang = find_gang(context.template(context.template_of(place)), context) if is_asked else None
    if gang:
        reason = f"schedulingGroup {gang.group}: fewer than minCount {gang.least} would be Ready"
        yield Charge("Gang", ("Gang", row.namespace, gang.group), gang.ready - gang.least, reason)


def charge_rates(place: int, context: RuleContext) -> Iterator[Charge]:
    """Charge a disruption to the rates of the cluster, its namespace and its workload."""
    namespace = context.row(place).namespace
    workload = context.with_uid(namespace, context.identify(place))
    disruption = Disruption("", namespace, workload.uid)
    rates = context.limits_of(namespace, workload).rates
    for rule, scope in zip(_RATES, ("", namespace, workload.uid or (namespace, workload)), strict=True):
        find = partial(_find_rates, (rule, scope), disruption, rates, context)
        yield from context.once((rule, scope, context.without), find)


def charge_records(source: int, context: RuleContext) -> Refused | tuple[Charge, ...]:
    """Charge a move to the room for what it must write: its debit, and its note on the source node."""
    room = context.once(("room", context.without), partial(_find_room, context))
    if isinstance(room, Refused):
        return room
    notes = context.once((_NOTES, source, context.without), partial(_count_note_room, source, context))
    if isinstance(notes, Refused):
        return notes
    debits = Charge("LedgerFull", "LedgerFull", room, f"the move ledger has room for {room} more debits")
    return debits, Charge(_NOTES, (_NOTES, source), notes, NOTES_FULL.reason)


def charge_quotas(place: int, context: RuleContext) -> Iterator[Charge]:
    """Charge a replacement to the ResourceQuotas of its namespace."""
    template = context.template_of(place)
    namespace = context.template(template).namespace
    for need in context.once(("needs", template), partial(_find_needs, template, context)):
        reason = f"ResourceQuota {need.quota} has no room for one more replacement: {need.resource}"
        key = ("Quota", namespace, need.quota, need.resource)
        yield Charge("Quota", key, need.room, reason, amount=need.amount)


def _count_note_room(source: int, context: RuleContext) -> Refused | int:
    node = context.snapshot.nodes.records[source]
    notes = read_notes((node.metadata.annotations or {}).get(ANNOTATION))
    if isinstance(notes, Refused):
        return replace(notes, reason=f"{node.metadata.name}: {notes.reason}")
    opened = context.once("open moves", partial(_list_open, context)) - {context.without}
    return count_room(notes, now=context.now, open_moves=opened)


def _find_room(context: RuleContext) -> Refused | int:
    return find_room(context.ledger, context.limits.rates, now=context.now)


def _list_open(context: RuleContext) -> frozenset[str]:
    histories = context.snapshot.of(HISTORY)
    return frozenset(move.id for history in histories for move in history.status.open or ())


def _ask_budget(row: PodRow, budget: Budget, context: RuleContext) -> Refused | Charge | None:
    meta, spec, status = budget.record.metadata, budget.record.spec, budget.record.status
    policy = spec.unhealthy_pod_eviction_policy
    if policy not in _BUDGET_POLICIES:
        return Refused("PDB", f"PDB {meta.name} has an unknown unhealthyPodEvictionPolicy {policy:.60}")
    if not row.is_ready and _spares_unready(budget):
        return None
    if status.observed_generation < meta.generation:
        return Refused("BudgetUnobserved", f"the disruption controller has not processed PDB {meta.name} yet")
    reserved = math.floor(max(0, status.disruptions_allowed) * context.limits.budget_reserve)
    kept = f", of which {reserved} are left to others" if reserved else ""
    need = f"needs {status.desired_healthy} healthy pods and has {status.current_healthy}"
    reason = f"PDB {meta.name} allows {status.disruptions_allowed}{kept}: it {need}"
    key = ("PDB", row.namespace, meta.name)
    return Charge("PDB", key, status.disruptions_allowed - reserved, reason)


def _spares_unready(budget: Budget) -> bool:
    """Tell whether evicting a pod that is not Ready uses no budget."""
    status = budget.record.status
    is_sparing = budget.record.spec.unhealthy_pod_eviction_policy == _SPARING
    return is_sparing or status.current_healthy >= status.desired_healthy > 0


def _count(rule: str, setting: str, most: PodLimit | int | None, key: Hashable) -> Iterator[Charge]:
    if most is not None:
        left = most.number if isinstance(most, PodLimit) else most
        yield Charge(rule, (rule, key), left, _describe_most(setting, most))


@lru_cache(1024)
def _describe_most(setting: str, most: PodLimit | int) -> str:
    return f"no more than {setting} {most}"


def _find_rates(
    key: tuple[str, Hashable], disruption: Disruption, rates: DisruptionLimits, context: RuleContext
) -> tuple[Charge, ...]:
    """Measure the rates of one rule and scope, whose percentages are counted out."""
    alone = _narrow(rates, key[0])
    windows = list_windows(context.ledger, alone, disruption, now=context.now) if alone else ()
    return tuple(_as_charge(window, (*key, place), context) for place, window in enumerate(windows))


def _narrow(rates: DisruptionLimits, rule: str) -> DisruptionLimits | None:
    """Keep the rates of one scope only, if it has any: so the ledger is not read for the others."""
    kept = getattr(rates, _RATES[rule])
    others = {name: () for name in _RATES.values() if name != _RATES[rule]}
    return replace(rates, **others) if kept else None


def _as_charge(window: RateWindow, key: Hashable, context: RuleContext) -> Charge:
    reserved = math.floor(window.rate.limit * context.limits.rate_reserve)
    kept = f", of which {reserved} are kept in reserve" if reserved else ""
    closed_for = window.rate.period + context.limits.rates.clock_skew
    until = context.now + closed_for if window.left else window.opens_at
    if window.rate.limit <= reserved:
        until = None
    return Charge(window.rule, key, window.left - reserved, f"no more than {window.rate}{kept}", until)


def _find_needs(template: int, context: RuleContext) -> tuple[QuotaNeed, ...]:
    """An unreadable quota is refused before by the protection Quota."""
    try:
        return tuple(list_needs(template, context)) if context.protections.quotas else ()
    except UNREADABLE:
        return ()
