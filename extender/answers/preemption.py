"""Removes preemption candidates whose victims a PodDisruptionBudget protects.

kube-scheduler may delete victims that a PodDisruptionBudget protects. This module removes the nodes of such
victims from its list, by the rules of the Eviction API: a pod that the budget does not count (not running, or
terminating) is free, a pod that is not Ready may be. A node that would refuse the pod afterwards is removed
too: its victims would be deleted for nothing. A victim that is not cached is not a reason to refuse.

The remaining candidates stay unchanged: the scheduler depends on their order and numbers.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from extender.answers.wire import ExtenderPreemptionArgs
from reberth.cluster.rows import PodRow
from reberth.memory.advice import STRICTLY_NOTED
from reberth.records import PodDisruptionBudget
from reberth.selectors.labels import NOTHING, Selector, SelectorError, compile_selector
from reberth.values.refusal import Refused

BUDGET_WOULD_BREAK = Refused("BudgetWouldBreak", "a PodDisruptionBudget protects pods that would be evicted")

# Why victims must not be evicted together, or None.
Limit = Callable[[Sequence[PodRow]], Refused | None]


class FilteredCandidates(msgspec.Struct, frozen=True):
    """The remaining candidates, and why the others were removed."""

    left: dict[str, msgspec.Raw]
    dropped: dict[str, Refused]
    overruled: bool = False
    """A limit would be broken on every node, but the settings only prefer to keep it."""


def filter_candidates(
    question: ExtenderPreemptionArgs,
    *,
    find_pod: Callable[[str], PodRow | None],
    refusing: Collection[str],
    limits: Sequence[Limit],
    strict: bool,
) -> FilteredCandidates:
    """Remove the nodes that refuse the pod, and those where a limit would be broken."""
    dropped = {node: STRICTLY_NOTED for node in question.entries if node in refusing}
    broken: dict[str, Refused] = {}
    for node, uids in question.victims.items():
        refused = None if node in dropped else _find_broken(uids, find_pod, limits)
        if refused:
            broken[node] = refused
    overruled = bool(broken) and not strict and len(dropped) + len(broken) == len(question.entries)
    if not overruled:
        dropped |= broken
    left = {node: entry for node, entry in question.entries.items() if node not in dropped}
    return FilteredCandidates(left, dropped, overruled)


def limit_by_budgets(within: Callable[[str], Iterable[PodDisruptionBudget]]) -> Limit:
    """Make the limit for PodDisruptionBudgets; `within` gives the budgets of a namespace."""

    def limit(victims: Sequence[PodRow]) -> Refused | None:
        needed: Counter[tuple[str, str]] = Counter()
        for victim in victims:
            for budget in within(victim.namespace):
                name = (victim.namespace, budget.metadata.name)
                needed[name] += _needs(victim, budget)
                if needed[name] > _allowed(budget):
                    return BUDGET_WOULD_BREAK
        return None

    return limit


def _find_broken(
    uids: Iterable[str], find_pod: Callable[[str], PodRow | None], limits: Iterable[Limit]
) -> Refused | None:
    victims = [victim for victim in map(find_pod, uids) if victim]
    return next((refused for limit in limits if (refused := limit(victims))), None)


def _needs(victim: PodRow, budget: PodDisruptionBudget) -> bool:
    """Tell whether the eviction would be charged to the budget."""
    if victim.phase == "Pending" or victim.is_finished or victim.is_terminating:
        return False
    if not _selector(budget).matches(victim.labels) or victim.name in (budget.status.disrupted_pods or ()):
        return False
    return victim.is_ready or not _frees_unready(budget)


def _frees_unready(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    return status.current_healthy >= status.desired_healthy > 0


def _allowed(budget: PodDisruptionBudget) -> int:
    """Give how many evictions are left; none until the budget's controller has seen its last change."""
    is_seen = budget.status.observed_generation >= budget.metadata.generation
    return max(0, budget.status.disruptions_allowed) if is_seen else 0


def _selector(budget: PodDisruptionBudget) -> Selector:
    """Compile the selector; the API server admits no malformed one, so a malformed one selects nothing."""
    try:
        return compile_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
