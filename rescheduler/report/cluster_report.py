"""A report about a cluster, made from one look at it: the first thing to read, before anything is installed.

It asks how much there is to gain, so nothing in it depends on how fast moves may be made: rates, moves at
once and moves in one cycle are not limited, only how many pods are forecast. Everything else is as in a plan.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from reberth.cluster.columns import Bools, Ints
from reberth.cluster.pods.requests import CPU, MEMORY, write_version
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import RESOURCES
from reberth.forecast.extender import AVOID, asks_reberth
from reberth.forecast.state.profile import ExtenderConfig
from reberth.forecast.state.view import View
from reberth.memory.rates import DisruptionLimits
from reberth.values.pod_limit import PodLimit
from reberth.values.timestamp import write_time
from rescheduler.model.guardrails import LimitSettings
from rescheduler.model.plan import RECOMMEND, BeforeAndAfter, ClusterScore, Plan, PlannedMove
from rescheduler.model.rules import PROTECTIONS
from rescheduler.observe.rule_context import RuleContext
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.observe.utilisation import Shares, find_usable_nodes, shares
from rescheduler.planning.cycle import begin_cycle
from rescheduler.planning.planner import write_plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.planning.worth import LEVELS
from rescheduler.protections import refuse_protected

MOVES, FORECASTS = 500, 1000
"""The most moves that a report plans, and the most pods that it forecasts: so it ends within a minute."""
BARS = 10
"""Nodes are counted by tenths of what they have."""
_GIBIBYTE = 2**30
_EVERY_LEVEL = max(LEVELS)
_CUT = frozenset({"Limit", "NotesFull", "LedgerFull", "MovesFull"})
"""Rules that say how much may be moved at once: more of these moves would pay, one after the other."""
_MOST_GAPS = 20
_WEIGHT = 20
"""Of the extender, as in the manifests: what it asks for is stronger than every plugin."""


class Amounts(NamedTuple):
    """Pods, and what they request."""

    pods: int
    cores: float
    gibibytes: float


class HeldBack(msgspec.Struct, frozen=True):
    """Pods that a rule keeps where they are; each pod counts for the first rule that protects it."""

    rule: str
    meaning: str
    amounts: Amounts
    example: str


class Repeated(msgspec.Struct, frozen=True):
    """Pods whose move a policy proposed and a rule refused."""

    rule: str
    policy: str
    pods: int
    example: str


class NodeShares(msgspec.Struct, frozen=True):
    """How many usable nodes have requests of each tenth of what they offer, now and after the moves."""

    resource: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    share: float
    """The share of all that is offered which is requested now."""


class PolicyGain(msgspec.Struct, frozen=True):
    """What one policy alone would move."""

    policy: str
    moves: int
    levels: dict[int, int]
    """How many of them each level makes that the levels below do not make."""
    is_cut: bool
    """Whether there may be more moves."""


class ClusterReport(msgspec.Struct, frozen=True):
    """All that the report says."""

    kind: Literal["ClusterReport"]
    now: str
    kubernetes: str
    nodes: int
    leaving: int
    everything: Amounts
    movable: Amounts
    score: ClusterScore
    score_after: ClusterScore
    balance: tuple[NodeShares, ...]
    policies: tuple[PolicyGain, ...]
    moves: tuple[PlannedMove, ...]
    """Those of all policies together, the lowest level and the highest worth first."""
    held_back: tuple[HeldBack, ...]
    repeated: tuple[Repeated, ...]
    warnings: tuple[str, ...]
    is_cut: bool
    """Whether there may be more moves than the report has planned."""
    without_extender: int | None
    """How many moves would pay if kube-scheduler went on without Reberth's extender; None: it asks it now."""


def make_report(
    snapshot: Snapshot, policy: ReschedulerPolicy, model: SchedulerModel, *, gaps: tuple[str, ...] = ()
) -> ClusterReport:
    """Report on a cluster; `gaps` are what could not be read of it."""
    lifted, asks = lift_limits(policy), asks_reberth(model.scheduler)
    helped = model if asks else _add_extender(model)
    cycle = begin_cycle(snapshot, lifted, None, helped)
    plan, _ = write_plan(cycle)
    alone = None if asks else write_plan(begin_cycle(snapshot, lifted, None, model))[0]
    rules = _find_rules(cycle.context)
    usable = find_usable_nodes(cycle.view.facts)
    return ClusterReport(
        kind="ClusterReport",
        now=write_time(snapshot.now),
        kubernetes=write_version(model.version),
        nodes=len(snapshot.nodes.names),
        leaving=int(np.count_nonzero(usable.leaving)),
        everything=_add_up(snapshot, snapshot.pods.counted),
        movable=_add_up(snapshot, snapshot.pods.counted & (rules.number < 0)),
        score=plan.score.before,
        score_after=plan.score.after,
        balance=tuple(_weigh(cycle.view, plan.nodes, name, usable.usable) for name in (CPU, MEMORY)),
        policies=tuple(_try_each(snapshot, lifted, helped)),
        moves=tuple(sorted(plan.moves, key=lambda each: (each.level, -each.worth, each.pod))),
        held_back=tuple(_list_held_back(snapshot, rules)),
        repeated=tuple(_list_repeated(plan)),
        warnings=(*gaps[:_MOST_GAPS], *plan.warnings),
        is_cut=_is_cut(plan),
        without_extender=len(alone.moves) if alone else None,
    )


def lift_limits(policy: ReschedulerPolicy) -> ReschedulerPolicy:
    """Give the policy as it counts for a report: every move is recommended, however many there are."""
    limits: LimitSettings = replace(
        policy.limits,
        per_cycle=PodLimit(MOVES),
        per_node=None,
        per_namespace=None,
        per_workload=None,
        rates=DisruptionLimits(cluster=(), namespace=(), workload=()),
        quiet_hours=(),
    )
    return replace(policy, mode=RECOMMEND, level=_EVERY_LEVEL, forecasts=FORECASTS, limits=limits)


def _add_extender(model: SchedulerModel) -> SchedulerModel:
    """Give the scheduler as it would be with Reberth's extender, set up as the manifests do it."""
    extender = ExtenderConfig(
        url_prefix=f"http://localhost/{AVOID}",
        filter_verb="filter",
        prioritize_verb="prioritize",
        weight=_WEIGHT,
        node_cache_capable=True,
        ignorable=True,
    )
    extenders = (*model.scheduler.extenders, extender)
    return dataclasses.replace(model, scheduler=replace(model.scheduler, extenders=extenders))


class _Rules(NamedTuple):
    """For each pod the number of the first rule that protects it, or -1; and the names of the rules."""

    number: Ints
    names: tuple[str, ...]


def _find_rules(context: RuleContext) -> _Rules:
    names = tuple(PROTECTIONS)
    numbers = {name: place for place, name in enumerate(names)}
    refused = (refuse_protected(place, context) for place in range(len(context.snapshot.pods.rows)))
    found = (numbers.get(each.rule, -1) if each else -1 for each in refused)
    return _Rules(np.fromiter(found, np.int64, len(context.snapshot.pods.rows)), names)


def _add_up(snapshot: Snapshot, pods: Bools) -> Amounts:
    requests, templates = snapshot.templates.requests.main, snapshot.pods.template[pods]
    cpu, memory = (int(requests[RESOURCES.index(name)][templates].sum()) for name in (CPU, MEMORY))
    return Amounts(len(templates), round(cpu / 1000, 1), round(memory / _GIBIBYTE, 1))


def _list_held_back(snapshot: Snapshot, rules: _Rules) -> Iterator[HeldBack]:
    """Those that keep most cores in place come first."""
    found = []
    for number, rule in enumerate(rules.names):
        pods = snapshot.pods.counted & (rules.number == number)
        if pods.any():
            row = snapshot.pods.rows[int(np.flatnonzero(pods)[0])]
            example = f"{row.namespace}/{row.name}"
            found.append(HeldBack(rule, PROTECTIONS[rule], _add_up(snapshot, pods), example))
    yield from sorted(found, key=lambda each: (-each.amounts.cores, -each.amounts.pods, each.rule))


def _list_repeated(plan: Plan) -> Iterator[Repeated]:
    examples: dict[tuple[str, str], str] = {}
    for each in plan.refused:
        examples.setdefault((each.rule, each.policy), f"{each.pod}: {each.reason}")
    counted = sorted(plan.refused.count().items(), key=lambda item: (-item[1], item[0]))
    for (rule, policy), count in counted:
        if rule not in _CUT:
            yield Repeated(rule, policy, count, examples[rule, policy])


def _try_each(snapshot: Snapshot, policy: ReschedulerPolicy, model: SchedulerModel) -> Iterator[PolicyGain]:
    """Plan with each policy alone; one that has moves at a lower level comes first."""
    found = []
    for name in policy.policies.by_name():
        plan, _ = write_plan(begin_cycle(snapshot, _leave_only(policy, name), None, model))
        if plan.moves:
            levels = dict(sorted(Counter(each.level for each in plan.moves).items()))
            found.append(PolicyGain(name, len(plan.moves), levels, _is_cut(plan)))
    yield from sorted(found, key=lambda each: min(each.levels))


def _leave_only(policy: ReschedulerPolicy, name: str) -> ReschedulerPolicy:
    """Give the settings with one policy on, also one that is off now: the report says what it would do."""
    sections = zip(policy.policies.__struct_fields__, policy.policies.by_name().items(), strict=True)
    alone = {field: replace(section, enabled=each == name, mode=None) for field, (each, section) in sections}
    return replace(policy, policies=replace(policy.policies, **alone))


def _is_cut(plan: Plan) -> bool:
    return any(rule in _CUT for rule, _ in plan.refused.count())


def _weigh(view: View, changed: dict[str, BeforeAndAfter], resource: str, usable: Bools) -> NodeShares:
    before = shares(view, resource)
    after = before.copy()
    for name, each in changed.items():
        after[view.nodes.index[name]] = each.after[resource] / 100
    row = RESOURCES.index(resource)
    offered = int(view.nodes.allocatable.main[row].sum())
    share = int(view.requested.main[row].sum()) / offered if offered else 0.0
    now, then = (tuple(_count_tenths(each[usable]).tolist()) for each in (before, after))
    return NodeShares(resource, now, then, round(share, 3))


def _count_tenths(found: Shares) -> Ints:
    """Count the nodes by tenths of their amount; a node that is full counts for the last one."""
    places = np.clip(np.floor(found * BARS + 1e-9), 0, BARS - 1).astype(np.int64)
    return np.bincount(places, minlength=BARS)
