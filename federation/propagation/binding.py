"""The binding of a resource template: what its policy says, and the patches that make it so."""

from typing import Any

import msgspec

from federation.api import (
    WORK_API_VERSION,
    BindingSpec,
    BoundResource,
    PropagationPolicy,
    ResourceBinding,
    SchedulingType,
    Suspension,
)
from federation.api.bindings import CLUSTER_SCOPED, NAMESPACED
from federation.api.labels import LABELS
from federation.interpreters.kind_rules import KindRules
from federation.objects.merge_patch import make_merge_patch
from federation.objects.names import Key, is_withheld, name_binding, permanent_id
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.policy_match import CLUSTER_POLICY, POLICY, kind_of_policy
from federation.propagation.replica_demand import read_replica_demand
from reberth.records import Labels

_NAMESPACE_OF_POLICY = "propagationpolicy.karmada.io/namespace"
_NAME_OF_POLICY = {kind: f"{kind.lower()}.karmada.io/name" for kind in (POLICY, CLUSTER_POLICY)}
_CLAIMS = {LABELS[kind] for kind in (POLICY, CLUSTER_POLICY)}
_MARKS = {*_CLAIMS, _NAMESPACE_OF_POLICY, *_NAME_OF_POLICY.values()}
# The fields of a binding's spec that its policy and its template set; others own the rest.
_OWNED_FIELDS = (
    "propagateDeps",
    "replicaRequirements",
    "replicas",
    "placement",
    "schedulerName",
    "failover",
    "conflictResolution",
    "suspension",
    "preserveResourcesOnDeletion",
)

Marks = dict[str, str | None]


def key_of_binding(template: Key) -> Key:
    kind = NAMESPACED if template.namespace else CLUSTER_SCOPED
    return Key(WORK_API_VERSION, kind, template.namespace, name_binding(template))


def template_of(binding: ResourceBinding) -> Key:
    return _key_of(binding.spec.resource)


def _key_of(bound: BoundResource) -> Key:
    return Key(bound.api_version, bound.kind, bound.namespace, bound.name)


def find_misuse(binding: ResourceBinding) -> str:
    """Return why nothing may be propagated by the binding; "" if it may be.

    Whoever may write bindings of one namespace must not get the objects of another one, or of the cluster,
    sent to a member of his choice.
    """
    bound = binding.spec.resource
    if bound.namespace != binding.metadata.namespace:
        return f"the resource, {_key_of(bound)}, is not in the binding's namespace"
    return f"{_key_of(bound)} is in a reserved namespace" if is_withheld(bound) else ""


def is_divided(binding: ResourceBinding) -> bool:
    """Tell whether the clusters share the replicas; otherwise each has all of them."""
    scheduling = binding.spec.placement.replica_scheduling if binding.spec.placement else None
    return scheduling is not None and scheduling.replica_scheduling_type is SchedulingType.DIVIDED


def mark_claim(policy: PropagationPolicy | None) -> tuple[Marks, Marks]:
    """Return the labels and annotations of an object that a policy has claimed; None removes one."""
    labels: Marks = {LABELS[kind]: None for kind in (POLICY, CLUSTER_POLICY)}
    annotations: Marks = {_NAMESPACE_OF_POLICY: None, **dict.fromkeys(_NAME_OF_POLICY.values())}
    if policy is not None:
        kind, meta = kind_of_policy(policy), policy.metadata
        labels[LABELS[kind]] = permanent_id(kind, meta)
        annotations[_NAME_OF_POLICY[kind]] = meta.name
        if meta.namespace:
            annotations[_NAMESPACE_OF_POLICY] = meta.namespace
    return labels, annotations


def exchange_marks(had: Labels | None, said: Labels | None) -> Labels:
    """Return the labels or annotations of a template, with the claim replaced by that of its binding."""
    kept = {name: value for name, value in (had or {}).items() if name not in _MARKS}
    return kept | {name: value for name, value in (said or {}).items() if name in _MARKS}


def list_claims(labels: Labels | None) -> Labels:
    """Return the labels that say which policy has claimed an object."""
    return {name: value for name, value in (labels or {}).items() if name in _CLAIMS}


def says_claim(template: ResourceTemplate, binding: ResourceBinding) -> bool:
    """Tell whether the template has the claim that its binding has."""
    return list_claims(binding.metadata.labels).items() <= (template.metadata.labels or {}).items()


def is_claimed(labels: Labels | None) -> bool:
    return bool(list_claims(labels))


def write_binding(
    key: Key, template: ResourceTemplate, policy: PropagationPolicy, rules: KindRules | None = None
) -> Object:
    """Write a new binding, owned by its template."""
    labels, annotations = mark_claim(policy)
    target = key_of_binding(key)
    meta = template.metadata
    owner = {"apiVersion": key.api_version, "kind": key.kind, "name": meta.name, "uid": meta.uid}
    metadata = {
        "name": target.name,
        "labels": _given(labels),
        "annotations": _given(annotations),
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": metadata,
        "spec": msgspec.to_builtins(_spec(key, template, policy, rules)),
    }


def change_binding(
    binding: ResourceBinding,
    key: Key,
    template: ResourceTemplate,
    policy: PropagationPolicy | None,
    rules: KindRules | None = None,
) -> Object | None:
    """Return the merge patch that brings a binding up to its policy; None if nothing changes.

    Without a policy the binding keeps its spec and loses its claim: the workload keeps running.
    """
    patch = change_marks(binding.metadata.labels, binding.metadata.annotations, policy)
    if policy is not None:
        wanted = _spec(key, template, policy, rules, before=binding.spec.suspension)
        change = _change_spec(binding.spec, wanted)
        if change:
            patch["spec"] = change
    return _conditional(patch, binding.metadata.resource_version)


def change_template(template: ResourceTemplate, policy: PropagationPolicy | None) -> Object | None:
    """Return the merge patch that sets the claim on the template; None if it has it.

    The precondition is the uid alone: other changes of the template in the meantime do not matter.
    """
    meta = template.metadata
    patch = change_marks(meta.labels, meta.annotations, policy)
    return {"metadata": {**patch["metadata"], "uid": meta.uid}} if patch else None


def change_marks(
    labels: Labels | None, annotations: Labels | None, policy: PropagationPolicy | None
) -> Object:
    wanted = zip(("labels", "annotations"), (labels, annotations), mark_claim(policy), strict=True)
    changes = {
        part: {name: value for name, value in marks.items() if (had or {}).get(name) != value}
        for part, had, marks in wanted
    }
    metadata = {part: change for part, change in changes.items() if change}
    return {"metadata": metadata} if metadata else {}


def _conditional(patch: Object, version: str) -> Object | None:
    if not patch:
        return None
    return {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}


def _given(marks: Marks) -> Labels:
    return {name: value for name, value in marks.items() if value is not None}


def _spec(
    key: Key,
    template: ResourceTemplate,
    policy: PropagationPolicy,
    rules: KindRules | None,
    *,
    before: Suspension | None = None,
) -> BindingSpec:
    said, demand = policy.spec, read_replica_demand(key, template, rules)
    return BindingSpec(
        resource=BoundResource(key.api_version, key.kind, key.namespace, key.name, template.metadata.uid),
        propagate_deps=said.propagate_deps if said.propagate_deps is not None else said.association,
        replica_requirements=demand.requirements,
        replicas=demand.replicas,
        placement=said.placement,
        scheduler_name=said.scheduler_name,
        failover=said.failover,
        conflict_resolution=said.conflict_resolution,
        suspension=_suspend(said.suspension, before),
        preserve_resources_on_deletion=said.preserve_resources_on_deletion,
    )


def _suspend(said: Suspension | None, before: Suspension | None) -> Suspension | None:
    """A policy suspends dispatching. Suspending the scheduling is set on the binding, and kept."""
    if before is None or before.scheduling is None:
        return said
    return msgspec.structs.replace(said or Suspension(), scheduling=before.scheduling)


def _change_spec(has: BindingSpec, wanted: BindingSpec) -> Object:
    """Return the fields that differ, with null for nested members that are gone."""
    old, new = msgspec.to_builtins(has), msgspec.to_builtins(wanted)
    change: dict[str, Any] = {
        name: make_merge_patch(old.get(name), new.get(name))
        for name in _OWNED_FIELDS
        if old.get(name) != new.get(name)
    }
    if (_key_of(has.resource), has.resource.uid) != (_key_of(wanted.resource), wanted.resource.uid):
        change["resource"] = new["resource"]
    return change
