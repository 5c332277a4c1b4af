"""Which pods a ResourceQuota counts: those that match all of its scopes.

The same as `podMatchesScopeFunc` of Kubernetes, in pkg/quota/v1/evaluator/core/pods.go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.records import (
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Quantities,
    QuotaScope,
    ResourceQuota,
)
from reberth.selectors import compile_selector
from reberth.values.quantity import nanos

_PRIORITY_CLASS = "PriorityClass"


def counts(quota: ResourceQuota, pod: Pod) -> bool:
    """Tell whether the quota counts the pod. Raises SelectorError, as the API server refuses such a pod."""
    matched = [_matches(scope, pod) for scope in _list_scopes(quota)]
    return all(matched)


def _list_scopes(quota: ResourceQuota) -> Iterator[QuotaScope]:
    yield from (QuotaScope(name, "Exists") for name in quota.spec.scopes or ())
    selector = quota.spec.scope_selector
    if selector:
        yield from selector.match_expressions or ()


def _matches(scope: QuotaScope, pod: Pod) -> bool:
    if scope.scope_name == _PRIORITY_CLASS:
        return _has_priority_class(pod, scope)
    has_property = _PROPERTIES.get(scope.scope_name)
    return has_property is not None and has_property(pod)


def _has_deadline(pod: Pod) -> bool:
    return pod.spec.active_deadline_seconds is not None and pod.spec.active_deadline_seconds >= 0


def _has_no_deadline(pod: Pod) -> bool:
    return not _has_deadline(pod)


def _is_best_effort(pod: Pod) -> bool:
    """Limits are not cached, but the API server adds a request for each of them."""
    if pod.status.qos_class:
        return pod.status.qos_class == "BestEffort"
    return not any(
        nanos(amount) > 0
        for requests in _list_requests(pod.spec)
        for name, amount in requests.items()
        if name in (CPU, MEMORY)
    )


def _is_not_best_effort(pod: Pod) -> bool:
    return not _is_best_effort(pod)


def _list_requests(spec: PodSpec) -> Iterator[Quantities]:
    """The requests of the whole pod take precedence over those of its containers."""
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    asked = [spec.resources] if spec.resources else [each.resources for each in containers]
    yield from (each.requests for each in asked if each and each.requests)


def _has_priority_class(pod: Pod, scope: QuotaScope) -> bool:
    name = pod.spec.priority_class_name
    wanted = LabelSelectorRequirement(_PRIORITY_CLASS, scope.operator, scope.values)
    selector = compile_selector(LabelSelector(match_expressions=(wanted,)))
    return selector.matches({_PRIORITY_CLASS: name} if name else {})


def _looks_beyond_its_namespace(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    both = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(
        term.namespaces or term.namespace_selector is not None
        for each in both
        if each
        for term in _list_terms(each)
    )


def _list_terms(affinity: PodAffinity) -> Iterable[PodAffinityTerm]:
    yield from affinity.required_during_scheduling_ignored_during_execution or ()
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
    yield from (each.pod_affinity_term for each in preferred)


_PROPERTIES: Mapping[str, Callable[[Pod], bool]] = {
    "Terminating": _has_deadline,
    "NotTerminating": _has_no_deadline,
    "BestEffort": _is_best_effort,
    "NotBestEffort": _is_not_best_effort,
    "CrossNamespacePodAffinity": _looks_beyond_its_namespace,
}
"""Every other scope matches no pod: VolumeAttributesClass is about claims."""
