"""The requests that a VerticalPodAutoscaler gives to a pod at its creation: recommended within its bounds."""

from collections.abc import Iterable, Mapping

from reberth.cluster.pods.identity import group_of
from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.records import (
    Quantities,
    Quantity,
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


def list_requests(autoscaler: VerticalPodAutoscaler) -> Asked:
    """List the requests that it gives. Raises QuantityError."""
    recommended = autoscaler.status.recommendation
    found: dict[tuple[str, str], Quantity] = {}
    for each in (recommended.container_recommendations or ()) if recommended else ():
        policy = _find_policy(autoscaler, each.container_name)
        if policy.mode != _OFF:
            wanted = policy.controlled_resources or _RESOURCES
            bounded = _bound(each.target or {}, policy)
            found |= {(each.container_name, name): bounded[name] for name in wanted if name in bounded}
    return found


def _find_policy(autoscaler: VerticalPodAutoscaler, container: str) -> VerticalContainerPolicy:
    policy = autoscaler.spec.resource_policy
    by_name = {each.container_name: each for each in (policy.container_policies or ())} if policy else {}
    return by_name.get(container) or by_name.get(_EVERY) or VerticalContainerPolicy()


def _bound(target: Quantities, policy: VerticalContainerPolicy) -> Quantities:
    least, most = policy.min_allowed or {}, policy.max_allowed or {}
    bounded: Quantities = {}
    for name, amount in target.items():
        if name in least and nanos(amount) < nanos(least[name]):
            amount = least[name]  # noqa: PLW2901 - it is bounded
        if name in most and nanos(amount) > nanos(most[name]):
            amount = most[name]  # noqa: PLW2901 - likewise
        bounded[name] = amount
    return bounded
