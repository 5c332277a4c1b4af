"""Health of a copy in a member: one rule a kind. Kinds without a rule count as healthy."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from federation.objects.any_json import at, list_at, number
from federation.objects.template import Object
from reberth.cluster.pods.identity import group_of

HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"


HealthRule = Callable[[Object], str]
"""From an object as the member reports it to its health."""
HealthRules = Mapping[tuple[str, str], HealthRule]
"""Rules by API version and kind, as users give them. They go before those that are built in."""
NO_CUSTOM_RULES: HealthRules = MappingProxyType({})


def find_health(api_version: str, kind: str, found: Object, custom: HealthRules = NO_CUSTOM_RULES) -> str:
    """Return the health of an object as the member reports it."""
    if own := custom.get((api_version, kind)):
        return own(found)
    rule, status = _find_rule(api_version, kind), found.get("status")
    if rule is None:
        return HEALTHY
    return HEALTHY if rule(found, status if isinstance(status, dict) else {}) else UNHEALTHY


def has_health_rule(api_version: str, kind: str, custom: HealthRules = NO_CUSTOM_RULES) -> bool:
    """Tell whether the health of a kind says anything: without a rule it is always Healthy."""
    return (api_version, kind) in custom or _find_rule(api_version, kind) is not None


def _find_rule(api_version: str, kind: str) -> "_Rule | None":
    return _RULES.get((group_of(api_version), kind))


def _is_current(found: Object, status: Object) -> bool:
    return number(status, "observedGeneration") == number(at(found, "metadata"), "generation")


def _wanted(found: Object) -> int:
    wanted = at(found, "spec", "replicas")
    return wanted if isinstance(wanted, int) else 1


def _rollout(found: Object, status: Object) -> bool:
    updated, available = number(status, "updatedReplicas"), number(status, "availableReplicas")
    return _is_current(found, status) and updated >= _wanted(found) and available >= updated


def _replica_set(found: Object, status: Object) -> bool:
    return _is_current(found, status) and number(status, "availableReplicas") >= _wanted(found)


def _daemon_set(found: Object, status: Object) -> bool:
    wanted = number(status, "desiredNumberScheduled")
    updated, available = number(status, "updatedNumberScheduled"), number(status, "numberAvailable")
    return _is_current(found, status) and updated >= wanted and available >= updated


def _pod(found: Object, status: Object) -> bool:
    """A kubelet keeps a deleted pod Ready to its end, and may call it Succeeded then."""
    if at(found, "metadata", "deletionTimestamp"):
        return False
    if status.get("phase") == "Succeeded":
        return True
    conditions = list_at(status, "conditions")
    is_ready = any((at(each, "type"), at(each, "status")) == ("Ready", "True") for each in conditions)
    return status.get("phase") == "Running" and is_ready


def _service(found: Object, status: Object) -> bool:
    return at(found, "spec", "type") != "LoadBalancer" or _has_address(found, status)


def _has_address(_: Object, status: Object) -> bool:
    return bool(at(status, "loadBalancer", "ingress"))


def _is_bound(_: Object, status: Object) -> bool:
    return status.get("phase") == "Bound"


def _budget(_: Object, status: Object) -> bool:
    return number(status, "currentHealthy") >= number(status, "desiredHealthy")


_Rule = Callable[[Object, Object], bool]
_RULES: dict[tuple[str, str], _Rule] = {
    ("apps", "Deployment"): _rollout,
    ("apps", "StatefulSet"): _rollout,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _is_bound,
    ("networking.k8s.io", "Ingress"): _has_address,
    ("policy", "PodDisruptionBudget"): _budget,
}
