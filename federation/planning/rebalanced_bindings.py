"""From a workload that a WorkloadRebalancer names to its binding, and to the trigger of that binding."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from federation.api import RebalancedWorkload, ResourceBinding, ResourceSelector, WorkloadRebalancer
from federation.objects.names import Key
from federation.propagation.binding import key_of_binding
from federation.rebalancing.entries import Listing, select_workloads
from federation.rebalancing.handover import set_timeout
from federation.rebalancing.review import Limits
from reberth.cluster.pods.identity import group_of
from reberth.records import ObjectMeta
from reberth.selectors.labels import SelectorError
from reberth.values.object_error import ObjectError

ListTemplates = Callable[[str, str], Iterable[ObjectMeta]]
"""The metadata of all objects of an API version and kind."""


class Lookup(NamedTuple):
    """How to find a binding by its key, and the objects of a kind."""

    binding: Callable[[Key], ResourceBinding | None]
    templates: ListTemplates

    def find_binding(self, workload: RebalancedWorkload) -> ResourceBinding | None:
        """Return a workload's binding. One of that name may belong to a kind of another API group."""
        binding = self.binding(binding_key(workload))
        if binding is None or binding.metadata.deletion_timestamp is not None:
            return None
        api_version = binding.spec.resource.api_version
        is_its = not api_version or group_of(api_version) == group_of(workload.api_version)
        return binding if is_its else None

    def resolve(self, rebalancer: WorkloadRebalancer) -> list[RebalancedWorkload]:
        """List the workloads that its selectors match now. Raises ObjectError."""
        try:
            return select_workloads(rebalancer.spec.workload_selectors or (), self._list_bound)
        except SelectorError as error:
            meta = rebalancer.metadata
            field = "spec.workloadSelectors"
            raise ObjectError("WorkloadRebalancer", meta, field=field, reason=str(error)) from error

    def _list_bound(self, selector: ResourceSelector) -> Listing:
        """List the objects of a kind that have a binding; others cannot be rebalanced."""
        metas = self.templates(selector.api_version, selector.kind)
        named = ((_refer(selector, meta), meta.labels or {}) for meta in metas)
        return [(workload, labels) for workload, labels in named if self.find_binding(workload) is not None]


def binding_key(workload: RebalancedWorkload) -> Key:
    return key_of_binding(Key(workload.api_version, workload.kind, workload.namespace, workload.name))


def choose_handover(rebalancer: WorkloadRebalancer, binding: ResourceBinding, limits: Limits) -> int | None:
    """Return how long new copies have: as the rebalancer says, the policy, or the settings; None: no time."""
    if limits.handover is None or rebalancer.spec.handover_timeout_seconds is not None:
        return limits.handover
    return set_timeout(binding, limits.handover)


def _refer(selector: ResourceSelector, meta: ObjectMeta) -> RebalancedWorkload:
    return RebalancedWorkload(selector.api_version, selector.kind, meta.name, meta.namespace)
