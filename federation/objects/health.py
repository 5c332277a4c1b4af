"""Health of a copy in a member: one rule a kind. Kinds without a rule count as healthy.

The rules for kinds of other projects are in their table; those of Kubernetes' own kinds are here.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from federation.objects.any_json import at, list_at, number
from federation.objects.template import Object
from reberth.cluster.pods.identity import group_of
from reberth.other_projects import rules, table
from reberth.other_projects.table import count_share

HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"


HealthRule = Callable[[Object], str | None]
"""From an object as the member reports it to its health; None if that cannot be told now."""
HealthRules = Mapping[tuple[str, str], HealthRule]
"""Rules by API version and kind, as users give them. They go before those that are built in."""
NO_CUSTOM_RULES: HealthRules = MappingProxyType({})


def find_health(
    api_version: str, kind: str, found: Object, custom: HealthRules = NO_CUSTOM_RULES, *, told: str = ""
) -> str:
    """Return the health of an object as the member reports it; what was `told` last if a rule is silent."""
    if own := custom.get((api_version, kind)):
        return own(found) or told or UNKNOWN
    rule, status = _find_rule(api_version, kind), found.get("status")
    if rule is None:
        return HEALTHY
    return HEALTHY if rule(found, status if isinstance(status, dict) else {}) else UNHEALTHY


def has_health_rule(api_version: str, kind: str, custom: HealthRules = NO_CUSTOM_RULES) -> bool:
    """Tell whether the health of a kind says anything: without a rule it is always Healthy."""
    return (api_version, kind) in custom or _find_rule(api_version, kind) is not None


def has_rollouts(api_version: str, kind: str) -> bool:
    """Tell whether new versions of a kind are rolled out pod by pod."""
    named = (group_of(api_version), kind)
    other = table.find_kind(*named)
    return named in _ROLLOUTS or (other is not None and other.rollout is not None)


def is_rolling_out(api_version: str, kind: str, found: Object) -> bool:
    """Tell whether an object is not complete only because a new version of it is being rolled out.

    A rollout that leaves fewer pods than its strategy allows, or that makes no progress, is a failure. One
    that its controller has not observed yet has begun.
    """
    named = (group_of(api_version), kind)
    if other := table.find_kind(*named):
        return table.is_rolling_out(other, found)
    rule, status = _ROLLOUTS.get(named), found.get("status")
    return rule is not None and rule(found, status if isinstance(status, dict) else {})


def _find_rule(api_version: str, kind: str) -> "_Rule | None":
    named = (group_of(api_version), kind)
    other = table.find_kind(*named)
    if other is not None and other.healthy:
        return lambda found, _: rules.holds(other.healthy, found)
    return _RULES.get(named)


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


def _rolls_deployment(found: Object, status: Object) -> bool:
    """Kubernetes keeps Progressing True after a rollout, with the reason NewReplicaSetAvailable."""
    said = next((each for each in list_at(status, "conditions") if at(each, "type") == "Progressing"), None)
    is_over = at(said, "status") != "True" or at(said, "reason") == "NewReplicaSetAvailable"
    if is_over and _is_current(found, status):
        return False
    wanted, strategy = _wanted(found), at(found, "spec", "strategy", "type")
    allowed = at(found, "spec", "strategy", "rollingUpdate", "maxUnavailable")
    missing = wanted if strategy == "Recreate" else count_share(allowed, wanted, default="25%")
    return number(status, "availableReplicas") >= wanted - missing


def _rolls_stateful_set(found: Object, status: Object) -> bool:
    """One replica must be there: nothing says whether the rollout makes progress."""
    wanted, allowed = _wanted(found), at(found, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
    least = max(1, wanted - max(1, count_share(allowed, wanted, default="1")))
    is_new = bool(status.get("updateRevision")) and status.get("updateRevision") != status.get(
        "currentRevision"
    )
    has_begun = is_new or not _is_current(found, status)
    return has_begun and number(status, "availableReplicas") >= least


def _rolls_daemon_set(found: Object, status: Object) -> bool:
    wanted = number(status, "desiredNumberScheduled")
    allowed = at(found, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
    least = max(1, wanted - max(1, count_share(allowed, wanted, default="1")))
    is_new = number(status, "updatedNumberScheduled") < wanted or not _is_current(found, status)
    return is_new and number(status, "numberAvailable") >= least


_ROLLOUTS: dict[tuple[str, str], _Rule] = {
    ("apps", "Deployment"): _rolls_deployment,
    ("apps", "StatefulSet"): _rolls_stateful_set,
    ("apps", "DaemonSet"): _rolls_daemon_set,
}
