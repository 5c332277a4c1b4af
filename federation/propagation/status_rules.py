"""The status of a template from its copies, by kind.

Counts are added up. observedGeneration becomes the newest generation of the template when each cluster has
observed a copy of that generation. A kind without a rule keeps its status.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from types import MappingProxyType
from typing import NamedTuple

from federation.objects.any_json import LARGEST_COUNT, at, list_at, number, text_at, time_at
from federation.objects.template import Object
from reberth.other_projects.table import find_kind

GENERATION, OF_TEMPLATE = "generation", "resourceTemplateGeneration"
"""Fields that the federation adds to the reported status of a copy."""

_REPLICAS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
_COUNTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("apps", "Deployment"): (*_REPLICAS, "unavailableReplicas"),
    ("apps", "StatefulSet"): (*_REPLICAS, "currentReplicas"),
    ("apps", "ReplicaSet"): ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    ("apps", "DaemonSet"): (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ),
    ("policy", "PodDisruptionBudget"): (
        "currentHealthy",
        "desiredHealthy",
        "disruptionsAllowed",
        "expectedPods",
    ),
}
# What is said of pods that run and are ready, and how many others there are then.
_READY = (
    "readyReplicas",
    "availableReplicas",
    "numberReady",
    "numberAvailable",
    "currentHealthy",
    "disruptionsAllowed",
    "ready",
)
_NOT_READY = {"unavailableReplicas": "replicas", "numberUnavailable": "desiredNumberScheduled"}
# The API server requires these fields, even if they are 0.
_DEMANDED = {
    "StatefulSet": ("replicas", "availableReplicas"),
    "ReplicaSet": ("replicas",),
    "DaemonSet": _COUNTS["apps", "DaemonSet"][:4],
    "PodDisruptionBudget": _COUNTS["policy", "PodDisruptionBudget"],
}


_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST = 253
_IP_MODES = ("VIP", "Proxy")
_MOST_ADDRESSES = 64
"""Addresses of one cluster that a Service or an Ingress shows."""

Network = IPv4Network | IPv6Network
AddressRanges = Mapping[str, Sequence[Network]]
"""The addresses that each cluster may give to Services and Ingresses of the hub."""
NO_RANGES: AddressRanges = MappingProxyType({})


class Copies(NamedTuple):
    """The statuses of a template's copies by cluster; `is_whole` if no cluster is missing."""

    by_cluster: Mapping[str, Object]
    is_whole: bool
    ranges: AddressRanges = NO_RANGES

    @property
    def statuses(self) -> list[Object]:
        return [self.by_cluster[name] for name in sorted(self.by_cluster)]


def forget_readiness(kind: str, status: Object) -> Object:
    """Return the last status of a copy in a member that is silent: nobody knows whether its pods run."""
    unknown: Object = {name: 0 for name in _READY if name in status}
    unknown |= {name: status[of] for name, of in _NOT_READY.items() if of in status}
    if kind == "Pod" and text_at(status, "phase") in {"Pending", "Running"}:
        unknown["phase"] = "Unknown"
    return {**status, **unknown}


def tells_generations(group: str, kind: str) -> bool:
    """Tell whether copies of the kind report an observed generation."""
    return bool(_list_counts(group, kind))


def _list_counts(group: str, kind: str) -> tuple[str, ...]:
    """Return the counts of a kind that are added up."""
    other = find_kind(group, kind)
    return other.sums if other else _COUNTS.get((group, kind), ())


def _add_demanded(group: str, kind: str, copies: Copies, changes: Object) -> Object:
    """Add what the API server requires beside what changes: of another project all that is known of it."""
    other = find_kind(group, kind)
    demanded = other.sums if other else _DEMANDED.get(kind, ())
    told: Object = {name: _sum(copies.statuses, name) for name in demanded}
    first = copies.by_cluster[min(copies.by_cluster)] if copies.by_cluster else {}
    told |= {name: text_at(first, name) for name in (other.tells if other else ())}
    return {**told, **changes}


def sum_status(group: str, kind: str, had: Object, copies: Copies, *, generation: int) -> Object | None:
    """Return the fields of a template's status that change; None if none do."""
    if names := _list_counts(group, kind):
        is_observed = copies.is_whole and all(_has_observed(each, generation) for each in copies.statuses)
        changes = _sum_counts(names, had, copies.statuses, generation if is_observed else None)
        return _add_demanded(group, kind, copies, changes) if changes else None
    rule = _RULES.get((group, kind))
    if rule is None or not copies.statuses:
        return None
    wanted = rule(copies)
    changes = {name: value for name, value in wanted.items() if (had.get(name) or 0) != (value or 0)}
    return changes or None


def _sum_counts(names: Iterable[str], had: Object, statuses: list[Object], generation: int | None) -> Object:
    wanted: Object = {name: _sum(statuses, name) for name in names}
    if generation is not None:
        wanted["observedGeneration"] = generation
    return {name: count for name, count in wanted.items() if number(had, name) != count}


def _sum(statuses: Iterable[Object], name: str) -> int:
    """Add up a count. The API server refuses a larger one, and with it what the other members say."""
    return min(sum(number(each, name) for each in statuses), LARGEST_COUNT)


def _has_observed(copy: Object, generation: int) -> bool:
    is_current = number(copy, "observedGeneration") == number(copy, GENERATION)
    return is_current and number(copy, OF_TEMPLATE) == generation


def _balance(copies: Copies) -> Object:
    """List all addresses; one without a host name gets that of its cluster.

    Whoever gives an address to a Service takes the traffic of that address: an IP counts only in the ranges
    of its cluster.
    """
    ingress = [
        _show_address(cluster, each, copies.ranges.get(cluster, ()))
        for cluster in sorted(copies.by_cluster)
        for each in list_at(copies.by_cluster[cluster], "loadBalancer", "ingress")[:_MOST_ADDRESSES]
    ]
    return {"loadBalancer": {"ingress": ingress} if ingress else {}}


def _show_address(cluster: str, found: object, ranges: Sequence[Network]) -> Object:
    """Show only what the API server takes: it refuses a status with one address that it does not."""
    hostname = text_at(found, "hostname")
    is_sound = len(hostname) <= _LONGEST and all(map(_LABEL.fullmatch, hostname.split(".")))
    named: Object = {"hostname": hostname if is_sound else cluster}
    if not _is_within(at(found, "ip"), ranges):
        return named
    mode = text_at(found, "ipMode")
    return {**named, "ip": at(found, "ip"), **({"ipMode": mode} if mode in _IP_MODES else {})}


def _is_within(address: object, ranges: Sequence[Network]) -> bool:
    try:
        found = ip_address(address) if isinstance(address, str) else None
    except ValueError:
        found = None
    return found is not None and any(found in each for each in ranges)


def _run_pods(copies: Copies) -> Object:
    return {"phase": _worst(copies, ("Failed", "Unknown", "Pending", "Running", "Succeeded"))}


def _bind_claims(copies: Copies) -> Object:
    return {"phase": _worst(copies, ("Lost", "Pending", "Bound"))}


def _worst(copies: Copies, phases: tuple[str, ...]) -> str:
    found = {text_at(copy, "phase") or "Pending" for copy in copies.statuses}
    return next((phase for phase in phases if phase in found), "Pending")


def _run_jobs(copies: Copies) -> Object:
    """The Job is complete when all copies are, and failed when one of them is."""
    statuses = copies.statuses
    wanted: Object = {name: _sum(statuses, name) for name in ("succeeded", "failed")}
    starts = [time for each in statuses if (time := time_at(each, "startTime"))]
    if not starts:
        return {}
    wanted["startTime"] = min(starts)
    over: Object = {**wanted, "active": 0, "ready": 0}
    if failed := [name for name, each in sorted(copies.by_cluster.items()) if _has(each, "Failed")]:
        message = f"Job executed failed in member clusters: {', '.join(failed)}"
        return over | {"conditions": _end("FailureTarget", "Failed", "JobFailed", message, min(starts))}
    if copies.is_whole and all(_has(each, "Complete") for each in statuses):
        ends = max(time_at(each, "completionTime") or min(starts) for each in statuses)
        conditions = _end("SuccessCriteriaMet", "Complete", "Completed", "Job completed", ends)
        return over | {"completionTime": ends, "conditions": conditions}
    return wanted | {"active": _sum(statuses, "active"), "ready": _sum(statuses, "ready")}


def _has(status: Object, name: str) -> bool:
    conditions = list_at(status, "conditions")
    return any((at(each, "type"), at(each, "status")) == (name, "True") for each in conditions)


def _end(first: str, second: str, reason: str, message: str, at: str) -> list[Object]:
    """The API server requires the condition of the criteria beside that of the end of a Job."""
    said = {"status": "True", "reason": reason, "message": message}
    times = {"lastProbeTime": at, "lastTransitionTime": at}
    return [{"type": name, **said, **times} for name in (first, second)]


def _schedule_jobs(copies: Copies) -> Object:
    wanted: Object = {}
    for name in ("lastScheduleTime", "lastSuccessfulTime"):
        times = [time for copy in copies.statuses if (time := time_at(copy, name))]
        if times:
            wanted[name] = max(times)
    return wanted


_RULES: dict[tuple[str, str], Callable[[Copies], Object]] = {
    ("", "Service"): _balance,
    ("networking.k8s.io", "Ingress"): _balance,
    ("", "Pod"): _run_pods,
    ("", "PersistentVolumeClaim"): _bind_claims,
    ("batch", "Job"): _run_jobs,
    ("batch", "CronJob"): _schedule_jobs,
}
