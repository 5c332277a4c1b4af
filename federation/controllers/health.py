"""How a copy in a member is, by its status: a kind without a rule here counts as healthy."""

from collections.abc import Callable

from federation.controllers.templates import Object

HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"


def find_health(kind: str, found: Object) -> str:
    """Judge an object as the member shows it."""
    rule, status = _RULES.get(kind), found.get("status")
    if rule is None:
        return HEALTHY
    return HEALTHY if rule(found, status if isinstance(status, dict) else {}) else UNHEALTHY


def _is_current(found: Object, status: Object) -> bool:
    return number(status, "observedGeneration") == number(found.get("metadata") or {}, "generation")


def _rollout(found: Object, status: Object) -> bool:
    wanted: int = (found.get("spec") or {}).get("replicas", 1)
    updated, available = number(status, "updatedReplicas"), number(status, "availableReplicas")
    return _is_current(found, status) and updated >= wanted and available >= updated


def _daemon_set(found: Object, status: Object) -> bool:
    wanted = number(status, "desiredNumberScheduled")
    updated, available = number(status, "updatedNumberScheduled"), number(status, "numberAvailable")
    return _is_current(found, status) and updated >= wanted and available >= updated


def _service(found: Object, status: Object) -> bool:
    if (found.get("spec") or {}).get("type") != "LoadBalancer":
        return True
    return bool((status.get("loadBalancer") or {}).get("ingress"))


def number(holder: Object, name: str) -> int:
    """Read a count; the API server leaves out what is 0."""
    found = holder.get(name)
    return found if isinstance(found, int) else 0


_RULES: dict[str, Callable[[Object, Object], bool]] = {
    "Deployment": _rollout,
    "StatefulSet": _rollout,
    "DaemonSet": _daemon_set,
    "Service": _service,
}
