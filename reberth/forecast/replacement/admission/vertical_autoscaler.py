"""The requests that a VerticalPodAutoscaler gives to a pod at its creation: recommended within its bounds.

It also shrinks what it recommends to the LimitRanges of whole pods: that is not foretold.
"""

from collections.abc import Iterable, Mapping

from reberth.cluster.pods.identity import group_of
from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.records import (
    LimitedResources,
    LimitRange,
    LimitRangeItem,
    Quantities,
    Quantity,
    TemplateSpec,
    VerticalContainerPolicy,
    VerticalPodAutoscaler,
    WorkloadIdentity,
)
from reberth.values.quantity import nanos

ANNOTATION = "vpaUpdates"
"""What its admission controller writes on each pod that it changed."""
Asked = Mapping[tuple[str, str], Quantity]
"""Requests by container and resource."""

_EVERY = "*"
_OFF = "Off"
_RESOURCES = (CPU, MEMORY)
_REQUESTS_ONLY = "RequestsOnly"
_CONTAINER = "Container"


def find_autoscaler(
    autoscalers: Iterable[VerticalPodAutoscaler], owners: Iterable[WorkloadIdentity]
) -> VerticalPodAutoscaler | None:
    """Find the one that targets the controller, or the owner above it, and changes pods at their creation."""
    targets = {(group_of(each.api_version), each.kind, each.name) for each in owners}
    for each in autoscalers:
        target, policy = each.spec.target_ref, each.spec.update_policy
        is_theirs = (group_of(target.api_version), target.kind, target.name) in targets
        if is_theirs and (policy is None or policy.update_mode != _OFF):
            return each
    return None


def list_requests(
    autoscaler: VerticalPodAutoscaler, spec: TemplateSpec, ranges: Iterable[LimitRange]
) -> Asked:
    """List the requests that it gives to the containers of a pod. Raises QuantityError."""
    recommended, containers = (
        autoscaler.status.recommendation,
        {each.name: each for each in spec.containers or ()},
    )
    items = [item for each in ranges for item in each.spec.limits or () if item.type == _CONTAINER]
    found: dict[tuple[str, str], Quantity] = {}
    for each in (recommended.container_recommendations or ()) if recommended else ():
        policy, container = _find_policy(autoscaler, each.container_name), containers.get(each.container_name)
        if policy.mode != _OFF and container is not None:
            wanted = policy.controlled_resources or _RESOURCES
            bounded = _bound_all(each.target or {}, policy, container.resources or LimitedResources(), items)
            found |= {(each.container_name, name): bounded[name] for name in wanted if name in bounded}
    return found


def list_kept_limits(autoscaler: VerticalPodAutoscaler, spec: TemplateSpec) -> frozenset[str]:
    """List the containers whose limits it leaves as they are."""
    names = (each.name for each in spec.containers or ())
    return frozenset(each for each in names if _keeps_limits(_find_policy(autoscaler, each)))


def _find_policy(autoscaler: VerticalPodAutoscaler, container: str) -> VerticalContainerPolicy:
    policy = autoscaler.spec.resource_policy
    by_name = {each.container_name: each for each in (policy.container_policies or ())} if policy else {}
    return by_name.get(container) or by_name.get(_EVERY) or VerticalContainerPolicy()


def _keeps_limits(policy: VerticalContainerPolicy) -> bool:
    return policy.controlled_values == _REQUESTS_ONLY


def _bound_all(
    target: Quantities,
    policy: VerticalContainerPolicy,
    own: LimitedResources,
    items: Iterable[LimitRangeItem],
) -> Quantities:
    """Bound it in the autoscaler's order: by LimitRanges, by its policy, by limits that it keeps."""
    for item in items:
        least, most = item.min or {}, item.max or {}
        target = _bound(_bound(target, least, {}), _keep_ratio(own, least), _keep_ratio(own, most))
    target = _bound(target, policy.min_allowed or {}, policy.max_allowed or {})
    return _bound(target, {}, (own.limits or {}) if _keeps_limits(policy) else {})


def _keep_ratio(own: LimitedResources, bounds: Quantities) -> Quantities:
    """Tell at which requests the limits, which keep their ratio to them, reach these bounds."""
    found: Quantities = {}
    for name, bound in bounds.items():
        limit, request = nanos((own.limits or {}).get(name, 0)), nanos((own.requests or {}).get(name, 0))
        if limit:
            found[name] = f"{nanos(bound) * request // limit}n" if request else bound
    return found


def _bound(target: Quantities, least: Quantities, most: Quantities) -> Quantities:
    bounded: Quantities = {}
    for name, amount in target.items():
        if nanos(amount) < nanos(least.get(name, 0)):
            amount = least[name]  # noqa: PLW2901 - it is bounded
        if name in most and nanos(amount) > nanos(most[name]):
            amount = most[name]  # noqa: PLW2901 - likewise
        bounded[name] = amount
    return bounded
