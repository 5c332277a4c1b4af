"""Aggregated status: from the copies in the clusters to the binding and to the resource template."""

from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Any

import msgspec

from federation.api import AggregatedStatus, ResourceBinding
from federation.failover.health_clock import read_health_clock
from federation.interpreters.kind_rules import KindRules
from federation.interpreters.operations import Operation
from federation.interpreters.sandbox import ScriptFailure
from federation.objects.any_json import number
from federation.objects.conditions import find_condition, put_condition
from federation.objects.health import UNKNOWN
from federation.objects.merge_patch import make_merge_patch
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate, read_whole
from federation.propagation.status_rules import (
    NO_RANGES,
    AddressRanges,
    Copies,
    forget_readiness,
    sum_status,
)
from federation.propagation.work_sync import APPLIED
from federation.propagation.works import targets_of
from reberth.cluster.pods.identity import group_of
from reberth.other_projects.table import find_kind
from reberth.records import Condition
from reberth.values.text_limits import cut

FULLY_APPLIED = "FullyApplied"
LARGEST_SUM = 2**19
"""Bytes of the statuses of all copies that a binding tells: etcd takes no object of more than 1.5 MiB."""
_SUCCESS = ("FullyAppliedSuccess", "All works have been successfully applied")
_FAILURE = ("FullyAppliedFailed", "Failed to apply all works, see status.aggregatedStatus for details")

_READY_COUNTS = {
    ("apps", "Deployment"): "readyReplicas",
    ("apps", "StatefulSet"): "readyReplicas",
    ("apps", "ReplicaSet"): "readyReplicas",
    ("apps", "DaemonSet"): "numberReady",
}


def change_binding_status(
    binding: ResourceBinding, works: Mapping[str, HeldWork], *, now: float, silent: Collection[str] = ()
) -> Object | None:
    """Return the merge patch of aggregatedStatus and FullyApplied; None if nothing changes.

    Copies in members that are `silent` keep the status that was reported last; their health is Unknown.
    """
    status: Object = {}
    told = _find_told(works)
    aggregated = [
        _describe(name, works[name], is_silent=name in silent, is_told=name in told) for name in sorted(works)
    ]
    if aggregated != [_read(each) for each in binding.status.aggregated_status or ()]:
        status["aggregatedStatus"] = aggregated
    if conditions := _change_conditions(binding, works, now):
        status["conditions"] = conditions
    if not status:
        return None
    return {"metadata": {"resourceVersion": binding.metadata.resource_version}, "status": status}


def _find_told(works: Mapping[str, HeldWork]) -> set[str]:
    """Find the clusters whose status of the copy is told, the smallest first.

    With all of them the API server might refuse the binding, and what every cluster says would be lost.
    """
    sizes = sorted((len(bytes(_read_raw(work))), name) for name, work in works.items())
    totals = accumulate(size for size, _ in sizes)
    return {name for (_, name), total in zip(sizes, totals, strict=True) if total <= LARGEST_SUM}


def change_template_status(
    key: Key,
    binding: ResourceBinding,
    template: ResourceTemplate,
    works: Mapping[str, HeldWork],
    *,
    ranges: AddressRanges = NO_RANGES,
    silent: Collection[str] = (),
    rules: KindRules | None = None,
) -> Object | None:
    """Return the merge patch of a template's status; None if nothing changes or the kind has no rule.

    The uid is its precondition: a template that was made anew does not get the status of the one before.
    """
    if rules is not None and rules.has((key.api_version, key.kind), Operation.AGGREGATION):
        return _aggregate(key, template, works, silent, rules)
    found = {
        name: forget_readiness(key.kind, status) if name in silent else status
        for name, work in works.items()
        if isinstance(status := read_status(work), dict)
    }
    copies = Copies(found, is_whole=targets_of(binding).keys() <= found.keys(), ranges=ranges)
    had = template.part("status")
    status = sum_status(
        key.api_version.rpartition("/")[0],
        key.kind,
        had if isinstance(had, dict) else {},
        copies,
        generation=template.metadata.generation,
    )
    return None if status is None else {"metadata": {"uid": template.metadata.uid}, "status": status}


def _aggregate(
    key: Key,
    template: ResourceTemplate,
    works: Mapping[str, HeldWork],
    silent: Collection[str],
    rules: KindRules,
) -> Object | None:
    """Return the merge patch of the status that a script makes; a script that fails leaves it as it is."""
    items = [_describe(name, work, is_silent=name in silent) for name, work in sorted(works.items())]
    said = rules.aggregate(read_whole(key, template), items)
    had = template.part("status") or {}
    if isinstance(said, ScriptFailure) or said == had:
        return None
    return {"metadata": {"uid": template.metadata.uid}, "status": make_merge_patch(had, said)}


def _change_conditions(
    binding: ResourceBinding, works: Mapping[str, HeldWork], now: float
) -> list[Object] | None:
    targets = targets_of(binding)
    if not targets:
        return None
    is_full = all(name in works and is_applied(works[name]) for name in targets)
    reason, message = _SUCCESS if is_full else _FAILURE
    wanted = Condition(type=FULLY_APPLIED, status=str(is_full), reason=reason, message=message)
    return put_condition(binding.status.conditions, wanted, now=now)


def says_fully_applied(change: Object) -> bool:
    """Tell whether a patch of a binding's status turns FullyApplied to True."""
    conditions = change["status"].get("conditions") or ()
    return any((each["type"], each["status"]) == (FULLY_APPLIED, "True") for each in conditions)


def is_applied(work: HeldWork) -> bool:
    condition = find_condition(work.status.conditions, APPLIED)
    return condition is not None and condition.status == "True"


def _describe(cluster: str, work: HeldWork, *, is_silent: bool = False, is_told: bool = True) -> Object:
    condition = find_condition(work.status.conditions, APPLIED)
    described: Object = {"clusterName": cluster, "applied": is_applied(work)}
    if condition and condition.status != "True":
        described["appliedMessage"] = cut(condition.message or "")
    status = read_status(work) if is_told else None
    if isinstance(status, dict):
        described["status"] = status
    health = next((each.health for each in work.status.manifest_statuses or ()), "")
    return {
        **described,
        "health": UNKNOWN if is_silent else health or UNKNOWN,
        **_describe_clock(work),
    }


def _describe_clock(work: HeldWork) -> Object:
    clock = read_health_clock(work.status.conditions)
    if clock.reported is None:
        return {}
    told = {"creationTimestamp": clock.reported, "unhealthySince": clock.failing or clock.unknown}
    return {"settled": clock.is_settled, **{name: time for name, time in told.items() if time}}


def read_copies(works: Mapping[str, HeldWork]) -> tuple[AggregatedStatus, ...]:
    """Return the copies as their Works report them now; the binding shows it a moment later."""
    described = [_describe(name, work) for name, work in sorted(works.items())]
    return msgspec.json.decode(msgspec.json.encode(described), type=tuple[AggregatedStatus, ...])


def _read(had: AggregatedStatus) -> Object:
    return {"applied": False, **msgspec.json.decode(msgspec.json.encode(had))}


def read_status(work: HeldWork) -> Any:  # noqa: ANN401 - any JSON
    """Return the status that the member reported of the first object of a Work."""
    raw = _read_raw(work)
    return msgspec.json.decode(raw) if bytes(raw) else None


def _read_raw(work: HeldWork) -> msgspec.Raw:
    return next((each.status for each in work.status.manifest_statuses or ()), msgspec.Raw())


def _find_ready_count(group: str, kind: str) -> str | None:
    other = find_kind(group, kind)
    names = other.sums if other else ()
    told = (name for name in ("readyReplicas", "numberReady") if name in names)
    return _READY_COUNTS.get((group, kind)) or next(told, None)


def has_ready_copy(
    binding: ResourceBinding, works: Mapping[str, HeldWork], silent: Collection[str]
) -> bool | None:
    """Tell whether pods of a workload are ready anywhere; None if it has none to be ready."""
    resource = binding.spec.resource
    field = _find_ready_count(group_of(resource.api_version), resource.kind)
    if field is None or (binding.spec.replicas == 0 and field == "readyReplicas"):
        return None
    statuses = (read_status(work) for name, work in works.items() if name not in silent)
    return any(isinstance(each, dict) and number(each, field) > 0 for each in statuses)
