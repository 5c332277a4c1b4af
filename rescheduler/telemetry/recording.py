"""Writes plans, moves and the state of the cluster to the metrics."""

from collections import Counter
from collections.abc import Iterable
from math import nan

import numpy as np

from reberth.cluster.kinds import HISTORY
from reberth.cluster.pods.requests import CPU, MEMORY, Version, write_version
from reberth.forecast.state.proven_versions import describe_unproven
from reberth.memory.backoff import instant
from reberth.memory.ledger import Disruption, list_windows
from reberth.runtime.faults import FAULTS
from reberth.runtime.metrics import bounded
from reberth.values.refusal import FAULT, Refused
from rescheduler.budgets.refused_before import list_waiting
from rescheduler.model.plan import APPLY, OFF, RECOMMEND, Plan
from rescheduler.model.refusal_scopes import find_scope
from rescheduler.moves.outcome import Landing, MoveReport
from rescheduler.observe.utilisation import find_usable_nodes, shares
from rescheduler.planning.cycle import Cycle
from rescheduler.telemetry import metrics


def count_plan(plan: Plan) -> None:
    """Count the proposals of a plan, and what became of them."""
    moves = Counter(move.policy for move in plan.moves)
    refused: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for (rule, policy), count in plan.refused.count().items():
        refused[policy] += count
        rules[bounded(rule, metrics.REFUSALS)] += count
    for counts, result in ((moves, "planned"), (refused, "refused")):
        for policy, count in counts.items():
            metrics.PROPOSALS.labels(bounded(policy, metrics.POLICIES), result).inc(count)
    _note_faults(plan, is_refused=rules[FAULT] > 0)
    metrics.PLAN_REFUSED.clear()
    for rule, count in rules.items():
        metrics.REFUSED.labels(rule).inc(count)
        metrics.PLAN_REFUSED.labels(rule).set(count)
    for mode in (APPLY, RECOMMEND):
        metrics.PLAN_MOVES.labels(mode).set(sum(move.mode == mode for move in plan.moves))
    for part in metrics.SCORE_PARTS:
        metrics.SCORE.labels(part, "now").set(getattr(plan.score.before, part))
        metrics.SCORE.labels(part, "planned").set(getattr(plan.score.after, part))


def _note_faults(plan: Plan, *, is_refused: bool) -> None:
    for warning in plan.warnings:
        if warning.startswith(f"{FAULT}: "):
            FAULTS.note("policy", "", warning)
    for one in plan.refused if is_refused else ():  # they may be tens of thousands
        if one.rule == FAULT:
            FAULTS.note("plan", one.pod, one.reason)


def show_state(cycle: Cycle, warnings: Iterable[str]) -> None:
    """Show the state of the cluster, and what stops moves."""
    _show_utilisation(cycle)
    now, context = cycle.now, cycle.context
    given_up = [instant(each.status.given_up_until) > now for each in context.snapshot.of(HISTORY)]
    metrics.GIVEN_UP.set(sum(given_up))
    metrics.PLAN_WARNINGS.set(len(list(warnings)))
    metrics.REJECTING_NODES.set(len({node for found in cycle.rejections.values() for node in found.tolist()}))
    metrics.WAITING_REFUSALS.clear()
    for one in list_waiting(context):
        metrics.WAITING_REFUSALS.labels(bounded(one.rule, metrics.REFUSALS), find_scope(one.rule)).inc()
    metrics.RATE_REMAINING.clear()
    rates = context.limits_of().rates
    for window in list_windows(context.ledger, rates, Disruption("", "", ""), now=now):
        if window.rule == "ClusterRate":
            metrics.RATE_REMAINING.labels(window.rate.name).set(window.left)
    for policy, mode in cycle.settings.modes().items():
        for each in (APPLY, RECOMMEND, OFF):
            metrics.MODE.labels(policy, each).set(mode == each)
    stops = {refused.rule for refused in (*cycle.brakes.everywhere, *cycle.pauses.list_rules())}
    for rule in metrics.BRAKES | metrics.PAUSES:
        metrics.BRAKES_ON.labels(rule).set(rule in stops)


def show_versions(versions: Iterable[Version]) -> None:
    """Show on which versions of Kubernetes forecasts are made, and whether they have been proven there."""
    metrics.PROVEN.clear()
    for version in versions:
        metrics.PROVEN.labels(write_version(version)).set(describe_unproven(version) is None)


def forget_state() -> None:
    """Reset the gauges that only the leader sets: two processes would show different values."""
    by_label = (metrics.PLAN_REFUSED, metrics.PLAN_MOVES, metrics.SCORE, metrics.UTILISATION)
    for gauge in (
        *by_label,
        metrics.RATE_REMAINING,
        metrics.WAITING_REFUSALS,
        metrics.BRAKES_ON,
        metrics.MODE,
    ):
        gauge.clear()
    for gauge in (metrics.PLAN_WARNINGS, metrics.REJECTING_NODES, metrics.GIVEN_UP, metrics.APPLYING):
        gauge.set(0)
    metrics.IN_FLIGHT.set_function(lambda: 0.0)
    metrics.AGREEMENT.set(nan)


def count_refusal(policy: str, refused: Refused) -> None:
    """Count a move that was refused before its eviction."""
    metrics.MOVES.labels(bounded(policy, metrics.POLICIES), "refused").inc()
    metrics.MOVES_REFUSED.labels(bounded(refused.rule, metrics.REFUSALS)).inc()


def count_remembered(rule: str) -> None:
    """Count a refusal that is remembered."""
    metrics.REFUSALS_REMEMBERED.labels(bounded(rule, metrics.REFUSALS), find_scope(rule)).inc()


def count_end(report: MoveReport, landing: Landing | None) -> None:
    """Count the end of a move."""
    entry, ending = report.entry, report.ending
    if report.refused:
        count_refusal(entry.policy, report.refused)
        return
    policy = bounded(entry.policy, metrics.POLICIES)
    metrics.MOVES.labels(policy, "evicted").inc()
    metrics.OUTCOMES_SEEN.labels(policy, ending.outcome).inc()
    if ending.landed_on == entry.from_:
        metrics.RETURNS.labels(policy).inc()
    if ending.time_to_ready is not None:
        metrics.TIME_TO_READY.observe(ending.time_to_ready)
    if ending.score_before is not None and ending.score_after is not None:
        metrics.GAIN.labels("seen").observe(ending.score_after - ending.score_before)
    if landing:
        metrics.LANDINGS.labels("hit" if landing.as_forecast else "miss").inc()
    if landing and landing.cause:
        metrics.LANDING_MISSES.labels(landing.cause).inc()


def _show_utilisation(cycle: Cycle) -> None:
    view = cycle.view
    usable = find_usable_nodes(view.facts).usable
    for resource in (CPU, MEMORY):
        used = shares(view, resource)[usable]
        for bar in metrics.UTILISATION_BARS:
            metrics.UTILISATION.labels(resource, f"{bar:g}").set(int(np.sum(used <= bar)))
        metrics.UTILISATION.labels(resource, "+Inf").set(len(used))
