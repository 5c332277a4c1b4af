"""Protections by the state of the workload: surges, replicas, quotas."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Ints
from reberth.cluster.kinds import AUTOSCALER, QUOTA, SCALED_OBJECT
from reberth.cluster.pods.identity import Signature, group_of
from reberth.cluster.pods.requests import CPU, MEMORY, PODS, STORAGE
from reberth.cluster.templates import RESOURCES, Template
from reberth.forecast.replacement.next_pod import NextPod
from reberth.records import Autoscaler, ObjectMeta, ResourceQuota, ScaleTarget
from reberth.selectors import SelectorError
from reberth.values.quantity import MILLI, UNIT, QuantityError, nanos
from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections.quota_scopes import counts

_SURGES = ("evictionSurgeReplicas", "eviction-autoscaler.azure.com/original-min-replicas")
_SCALERS = (AUTOSCALER, SCALED_OBJECT)
_STANDARD = (CPU, MEMORY, STORAGE)
UNREADABLE = (QuantityError, SelectorError)
"""What is raised for a quota that cannot be read."""


# The group, kind and name of a workload.
_Named = tuple[str, str, str]


class QuotaNeed(NamedTuple):
    """What a replacement needs of a ResourceQuota, and what is left of it; in nanos."""

    quota: str
    resource: str
    amount: int
    room: int


def refuse_surge(template: int, context: RuleContext) -> Refused | None:
    root = context.root(template)
    key = _find_surge(root.metadata) if root else None
    if key:
        return Refused("Surge", f"the workload's annotation {key}: a surge is running")
    return _refuse_surge_of_scaler(template, context)


def refuse_few(template: int, context: RuleContext) -> Refused | None:
    least = context.protections.min_replicas
    if least <= 1:
        return None
    count = _count_replicas(template, context)
    return (
        Refused("MinReplicas", f"{count} replicas, fewer than minReplicas {least}") if count < least else None
    )


def refuse_quota(template: int, context: RuleContext) -> Refused | None:
    if not context.protections.quotas:
        return None
    try:
        lacking = next((need for need in list_needs(template, context) if need.amount > need.room), None)
    except UNREADABLE as error:
        return Refused("Quota", f"a ResourceQuota of the namespace cannot be read: {error}")
    if lacking is None:
        return None
    return Refused(
        "Quota", f"ResourceQuota {lacking.quota} has no room for a replacement: {lacking.resource}"
    )


def list_needs(template: int, context: RuleContext) -> Iterator[QuotaNeed]:
    """List what a replacement would need of each quota while the evicted pod still counts.

    A StatefulSet creates the replacement after the pod is deleted, so it needs only as much as the
    replacement requests more. Raises UNREADABLE.
    """
    quotas = tuple(context.snapshot.of(QUOTA).within(context.template(template).namespace))
    following = context.next_of(template) if quotas else None
    if not isinstance(following, NextPod):
        return
    for quota in quotas:
        if counts(quota, following.template.pod):
            returned = _find_returned(quota, template, context)
            yield from _list_needs_of(quota, following, returned)


def _find_returned(quota: ResourceQuota, template: int, context: RuleContext) -> NextPod | None:
    """Give the pod whose quota is free again before the replacement is created."""
    signature, old = context.sign(template), context.template(template)
    is_first_gone = isinstance(signature, Signature) and signature.controller.kind == "StatefulSet"
    return NextPod(old) if is_first_gone and counts(quota, old.pod) else None


def _list_needs_of(quota: ResourceQuota, following: NextPod, returned: NextPod | None) -> Iterator[QuotaNeed]:
    used = quota.status.used or {}
    for resource, hard in (quota.status.hard or {}).items():
        amount = _amount(resource, following)
        if amount and returned:
            amount -= _amount(resource, returned._replace(limits=following.limits))
        if amount > 0:
            room = nanos(hard) - nanos(used.get(resource, 0))
            yield QuotaNeed(quota.metadata.name, resource, amount, room)


def _refuse_surge_of_scaler(template: int, context: RuleContext) -> Refused | None:
    signature = context.sign(template)
    if isinstance(signature, Refused):
        return None
    root = signature.root
    for kind in _SCALERS:
        surging = context.snapshot.of(kind).part(signature.namespace).read(_list_surging)
        found = surging.get((group_of(root.api_version), root.kind, root.name))
        if found:
            name, key = found
            return Refused("Surge", f"annotation {key} of {kind.name} {name}: a surge is running")
    return None


def _list_surging(scalers: Iterable[Autoscaler]) -> Mapping[_Named, tuple[str, str]]:
    """Give the workloads with a running surge, each with the name of its scaler and the annotation."""
    found = ((scaler, _find_surge(scaler.metadata)) for scaler in scalers)
    return {
        _name_target(scaler.spec.scale_target_ref): (scaler.metadata.name, key)
        for scaler, key in found
        if key
    }


def _name_target(target: ScaleTarget) -> _Named:
    return group_of(target.api_version or "apps/v1"), target.kind or "Deployment", target.name


def _find_surge(meta: ObjectMeta) -> str | None:
    annotations = meta.annotations or {}
    return next((key for key in _SURGES if key in annotations), None)


def _amount(resource: str, pod: NextPod) -> int:
    """Tell what a pod takes, in nanos; limits that are not known count as the requests, or 1."""
    if resource in (PODS, "count/pods"):
        return UNIT
    is_limit = resource.startswith("limits.")
    if is_limit and pod.limits is not None:
        return pod.limits.get(resource.removeprefix("limits."), 0)
    requested = resource.removeprefix("limits.").removeprefix("requests.")
    return max(_requested(requested, pod.template), int(is_limit))


def _requested(resource: str, template: Template) -> int:
    if resource in _STANDARD:
        main: Ints = np.frombuffer(template.main, np.int64)
        return int(main[RESOURCES.index(resource)]) * (MILLI if resource == CPU else UNIT)
    return template.extended.get(resource, 0) * UNIT


def _count_replicas(template: int, context: RuleContext) -> int:
    """Count the replicas in the owner's spec; without one, those that exist."""
    root = context.root(template)
    desired = root.spec.replicas if root else None
    return int(context.replicas[context.workload_of[template]]) if desired is None else desired
