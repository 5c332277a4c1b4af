"""The workloads of a WorkloadRebalancer as its status lists them: each once, in a fixed order."""

from collections.abc import Callable, Iterable, Sequence

from federation.api import ObservedWorkload, RebalancedWorkload, RebalanceResult, ResourceSelector
from federation.api.rebalancers import DRY_RUN
from reberth.records import Labels
from reberth.selectors.labels import compile_selector

Listing = Sequence[tuple[RebalancedWorkload, Labels]]
LookUp = Callable[[ResourceSelector], Listing]


def order(entry: ObservedWorkload) -> str:
    """Return the sort key of an entry."""
    workload = entry.workload
    return f"{workload.api_version}/{workload.kind}/{workload.namespace}/{workload.name}"


def merge_entries(
    wanted: Iterable[RebalancedWorkload], entries: Iterable[ObservedWorkload]
) -> tuple[ObservedWorkload, ...]:
    """Update the entries: add new workloads, and drop unwanted ones unless they have succeeded.

    What a dry run has answered is no result.
    """
    asked = dict.fromkeys(wanted)
    known = {
        entry.workload: entry
        for entry in entries
        if entry.reason != DRY_RUN and (entry.workload in asked or entry.result is RebalanceResult.SUCCESSFUL)
    }
    new = (ObservedWorkload(workload) for workload in asked if workload not in known)
    return tuple(sorted((*known.values(), *new), key=order))


def select_workloads(selectors: Iterable[ResourceSelector], look_up: LookUp) -> list[RebalancedWorkload]:
    """List the workloads that the selectors match. Raises SelectorError."""
    return [
        workload
        for selector in selectors
        for workload, labels in look_up(selector)
        if _selects(selector, workload, labels)
    ]


def _selects(selector: ResourceSelector, workload: RebalancedWorkload, labels: Labels) -> bool:
    if selector.namespace not in ("", workload.namespace) or selector.name not in ("", workload.name):
        return False
    if selector.label_selector is None:
        return True
    return compile_selector(selector.label_selector).matches(labels)
