"""The replicas of a template, and what each of them requires of a node."""

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from federation.api import NodeClaim, ReplicaRequirements
from federation.interpreters.kind_rules import KindRules
from federation.interpreters.operations import Operation
from federation.interpreters.sandbox import ScriptFailure
from federation.objects.any_json import LARGEST_COUNT
from federation.objects.names import Key
from federation.objects.template import Object, ResourceTemplate, read_whole
from reberth.cluster.pods.identity import group_of
from reberth.cluster.pods.requests import count_incoming_requests, write_amount
from reberth.other_projects.rules import read, read_each
from reberth.other_projects.table import OtherKind, find_kind
from reberth.records import PodSpec, Quantities
from reberth.values.object_error import ObjectError
from reberth.values.quantity import QuantityError

# The field with the number of replicas, by kind; other kinds are not divided.
REPLICAS = {
    ("apps/v1", "Deployment"): "replicas",
    ("apps/v1", "StatefulSet"): "replicas",
    ("batch/v1", "Job"): "parallelism",
}
_POD = ("v1", "Pod")


class ReplicaDemand(NamedTuple):
    replicas: int = 0
    requirements: ReplicaRequirements | None = None


def read_replica_demand(
    key: Key, template: ResourceTemplate, rules: KindRules | None = None
) -> ReplicaDemand:
    """Read the replicas and their requirements. Raises ObjectError."""
    if rules is not None and rules.has((key.api_version, key.kind), Operation.REPLICAS):
        return _ask(key, template, rules)
    other = find_kind(group_of(key.api_version), key.kind)
    if other is not None and other.replicas:
        return _count_other(key, template, other)
    field, spec = REPLICAS.get((key.api_version, key.kind)), template.part("spec")
    if not isinstance(spec, dict):
        return ReplicaDemand()
    if (key.api_version, key.kind) == _POD:
        return ReplicaDemand(1, _read_requirements(key, template, spec))
    if field is None:
        return ReplicaDemand()
    replicas = 1 if spec.get(field) is None else spec[field]
    if spec.get("completions"):
        replicas = min(replicas, spec["completions"])
    pod = (spec.get("template") or {}).get("spec") or {}
    return ReplicaDemand(replicas, _read_requirements(key, template, pod))


def _count_other(key: Key, template: ResourceTemplate, other: OtherKind) -> ReplicaDemand:
    """Read the replicas of a kind of another project; a number in another form is one that is missing."""
    wanted = {"spec": template.part("spec")}
    found = read(wanted, other.replicas)
    replicas = found if type(found) is int and 0 <= found <= LARGEST_COUNT else 1
    pods = (read(each, "spec") for path in other.templates for each in read_each(wanted, path))
    return ReplicaDemand(replicas, _read_requirements(key, template, next(pods, None) or {}))


def set_replicas(api_version: str, kind: str, spec: Object, replicas: int) -> Object:
    """Return the spec with the replicas of one cluster; a kind that is not divided keeps its own."""
    other = find_kind(group_of(api_version), kind)
    field = other.replicas.removeprefix("spec.") if other else REPLICAS.get((api_version, kind))
    return {**spec, field: replicas} if field else spec


def _ask(key: Key, template: ResourceTemplate, rules: KindRules) -> ReplicaDemand:
    said = rules.count_replicas((key.api_version, key.kind), read_whole(key, template))
    if isinstance(said, ScriptFailure):
        reason = f"{Operation.REPLICAS}: {said.reason}"
        raise ObjectError(key.kind, template.metadata, field="spec", reason=reason)
    needs = said.requirements
    return ReplicaDemand(said.replicas, replace(needs, namespace=key.namespace) if needs else None)


def _read_requirements(key: Key, template: ResourceTemplate, pod: Any) -> ReplicaRequirements | None:  # noqa: ANN401 - any JSON
    try:
        spec = msgspec.convert(pod, PodSpec)
        requests = _write(spec)
    except (msgspec.ValidationError, QuantityError) as error:
        raise ObjectError(
            key.kind, template.metadata, field="spec.template.spec", reason=str(error)
        ) from error
    claim = _read_claim(spec)
    if not (requests or claim or spec.priority_class_name):
        return None
    return ReplicaRequirements(
        node_claim=claim,
        resource_request=requests or None,
        namespace=key.namespace,
        priority_class_name=spec.priority_class_name or "",
    )


def _write(spec: PodSpec) -> Quantities:
    amounts = count_incoming_requests(spec).amounts
    return {name: write_amount(name, amount) for name, amount in sorted(amounts.items()) if amount}


def _read_claim(spec: PodSpec) -> NodeClaim | None:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if not (required or spec.node_selector or spec.tolerations):
        return None
    return NodeClaim(required, spec.node_selector, spec.tolerations)
