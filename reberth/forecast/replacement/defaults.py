"""What the API server fills in when a pod is created, beside its admission plugins.

kube-apiserver: `pkg/apis/core/v1/defaults.go`: `SetDefaults_Pod`, `defaultPodRequests`,
`defaultHostNetworkPorts`; `pkg/registry/core/pod/strategy.go`: `mutatePodAffinity`,
`mutateTopologySpreadConstraints`
"""

from collections.abc import Iterable

from msgspec.structs import replace

from reberth.cluster.pods.requests import CPU, MEMORY, count_incoming_requests, write_amount
from reberth.records import (
    Affinity,
    Labels,
    LabelSelector,
    LabelSelectorRequirement,
    LimitedResources,
    PodAffinity,
    PodAffinityTerm,
    Quantities,
    TemplateContainer,
    TemplateSpec,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

_OF_PODS = (CPU, MEMORY)
_HUGE_PAGES = "hugepages-"
_Containers = tuple[TemplateContainer, ...] | None


def fill_in(spec: TemplateSpec) -> TemplateSpec:
    """Fill in requests where only limits are given, and the host ports of a pod in the host's network."""
    containers, initial = _fill_all(spec.containers, spec), _fill_all(spec.init_containers, spec)
    filled = replace(spec, containers=containers, init_containers=initial)
    return _fill_whole(filled) if spec.resources and spec.resources.limits else filled


def merge_label_keys(spec: TemplateSpec, labels: Labels) -> TemplateSpec:
    """Turn matchLabelKeys into requirements of the selectors beside them."""
    affinity, constraints = spec.affinity, spec.topology_spread_constraints
    if affinity is None and not constraints:
        return spec
    merged = tuple(_merge_spread(each, labels) for each in constraints or ())
    return replace(
        spec,
        affinity=affinity and _merge_affinity(affinity, labels),
        topology_spread_constraints=merged if constraints else constraints,
    )


def fill_requests(resources: LimitedResources | None) -> LimitedResources | None:
    """Take the limits for the requests that are not given."""
    if resources is None or not resources.limits:
        return resources
    return replace(resources, requests={**resources.limits, **(resources.requests or {})})


def _fill_all(containers: _Containers, spec: TemplateSpec) -> _Containers:
    return containers and tuple(_fill(each, in_host_network=bool(spec.host_network)) for each in containers)


def _fill(container: TemplateContainer, *, in_host_network: bool) -> TemplateContainer:
    filled = fill_requests(container.resources)
    if filled is not container.resources:
        container = replace(container, resources=filled)
    if not in_host_network or not container.ports:
        return container
    ports = tuple(replace(each, host_port=each.host_port or each.container_port) for each in container.ports)
    return replace(container, ports=ports)


def _fill_whole(spec: TemplateSpec) -> TemplateSpec:
    """Fill in the requests of a pod as a whole: the sums of its containers, else its own limits."""
    whole = spec.resources or LimitedResources()
    amounts = count_incoming_requests(replace(spec, resources=None, overhead=None)).amounts
    sums: Quantities = {name: write_amount(name, amounts[name]) for name in _OF_PODS if name in amounts}
    limits = {
        name: each
        for name, each in (whole.limits or {}).items()
        if name in _OF_PODS or name.startswith(_HUGE_PAGES)
    }
    return replace(spec, resources=replace(whole, requests={**limits, **sums, **(whole.requests or {})}))


def _merge_affinity(affinity: Affinity, labels: Labels) -> Affinity:
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    return replace(
        affinity,
        pod_affinity=near and _merge_terms(near, labels),
        pod_anti_affinity=apart and _merge_terms(apart, labels),
    )


def _merge_terms(side: PodAffinity, labels: Labels) -> PodAffinity:
    required = side.required_during_scheduling_ignored_during_execution
    preferred = side.preferred_during_scheduling_ignored_during_execution
    return replace(
        side,
        required_during_scheduling_ignored_during_execution=_each(required, labels),
        preferred_during_scheduling_ignored_during_execution=preferred
        and tuple(_merge_weighted(each, labels) for each in preferred),
    )


def _each(terms: tuple[PodAffinityTerm, ...] | None, labels: Labels) -> tuple[PodAffinityTerm, ...] | None:
    return terms and tuple(_merge_term(each, labels) for each in terms)


def _merge_weighted(weighted: WeightedPodAffinityTerm, labels: Labels) -> WeightedPodAffinityTerm:
    return replace(weighted, pod_affinity_term=_merge_term(weighted.pod_affinity_term, labels))


def _require(keys: Iterable[str] | None, operator: str, labels: Labels) -> Iterable[LabelSelectorRequirement]:
    return [LabelSelectorRequirement(key, operator, (labels[key],)) for key in keys or () if key in labels]


def _merge_term(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    more = [
        *_require(term.match_label_keys, "In", labels),
        *_require(term.mismatch_label_keys, "NotIn", labels),
    ]
    return replace(term, label_selector=_extend(term.label_selector, more))


def _merge_spread(constraint: TopologySpreadConstraint, labels: Labels) -> TopologySpreadConstraint:
    more = list(_require(constraint.match_label_keys, "In", labels))
    return replace(constraint, label_selector=_extend(constraint.label_selector, more))


def _extend(selector: LabelSelector | None, more: list[LabelSelectorRequirement]) -> LabelSelector | None:
    """A selector that is missing selects nothing, and stays missing."""
    if not more or selector is None:
        return selector
    return replace(selector, match_expressions=(*(selector.match_expressions or ()), *more))
