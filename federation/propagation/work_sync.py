"""Syncing a Work to its member: conflicts, changes since the last write, and the reported status."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from federation.api import ManifestStatus
from federation.failover.health_clock import CopyHealth, tell_health
from federation.interpreters.kind_rules import KindRules
from federation.interpreters.operations import Operation
from federation.interpreters.sandbox import ScriptFailure
from federation.objects.conditions import find_condition, put_conditions
from federation.objects.health import (
    HEALTHY,
    NO_CUSTOM_RULES,
    find_health,
    has_health_rule,
    has_rollouts,
    is_rolling_out,
)
from federation.objects.names import (
    MANAGED,
    TEMPLATE_UID,
    WORK_ID,
    WORK_NAME,
    WORK_NAMESPACE,
    Key,
    permanent_id,
)
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate, read_whole
from federation.propagation.manifest import GENERATION as GENERATION_OF_TEMPLATE
from federation.propagation.status_rules import GENERATION, OF_TEMPLATE, tells_generations
from federation.propagation.works import CONFLICT_RESOLUTION, read_manifests
from reberth.cluster.pods.identity import group_of
from reberth.protocol.nesting import is_deep
from reberth.records import Condition, ObjectMeta
from reberth.values import errors
from reberth.values.errors import ApiError

APPLIED = "Applied"
_OVERWRITE = "overwrite"
_SUCCESS = ("AppliedSuccessful", "Manifest has been successfully applied")
_FAILURE = "AppliedFailed"
_RBAC, _ROLE_BINDINGS = "rbac.authorization.k8s.io", ("ClusterRoleBinding", "RoleBinding")
_BOOTSTRAPPING, _DEFAULTS = "kubernetes.io/bootstrapping", "rbac-defaults"
DISPATCHING, CONTESTED = "Dispatching", "Contested"
_REFUSED = "refused without a reason"
_SUSPENDED = ("SuspendDispatching", "Work dispatching is in a suspended state.")
_DISPATCHED = ("Dispatching", "Work is being dispatched to member clusters.")
_CHANGED_BACK = "ChangedBack"
_CALM = ("Calm", "Nothing in the member changes the copy back.")
_RETAIN = "resourcetemplate.karmada.io/retain-replicas"


LARGEST_STATUS = 2**16
"""Bytes of a copy's status that are told on. That of a binding has those of all its clusters."""
_MOST_DIGITS = 18
"""Of a number that fits into 64 bits."""
_LEVELS_AROUND = 8
"""At least as many as there are around the status of a copy in that of a Work, and of a binding."""


class AppliedManifest(NamedTuple):
    """A manifest that was applied, and the resulting object: changes of others show by its mark."""

    digest: bytes
    uid: str
    mark: str


class ManifestOutcome(NamedTuple):
    """What became of one manifest: its object, or why it could not be applied."""

    target: Key
    plural: str
    found: ResourceTemplate | None
    problem: str | None
    uid: str = ""
    """The uid of its template on the hub."""
    is_contested: bool = False


def list_manifests(work: HeldWork) -> list[Object | None]:
    """Return the manifests of a Work with its labels and annotations; None for one that names no object."""
    return [_complete(work, each) for each in read_manifests(work)] or [None]


def _complete(work: HeldWork, manifest: Any) -> Object | None:  # noqa: ANN401 - any JSON
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not isinstance(metadata, dict) or not _names_an_object(metadata):
        return None
    meta = work.metadata
    labels = {**(metadata.get("labels") or {}), MANAGED: "true", WORK_ID: permanent_id("Work", meta)}
    annotations = {
        **(metadata.get("annotations") or {}),
        WORK_NAMESPACE: meta.namespace,
        WORK_NAME: meta.name,
    }
    return {**manifest, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def _names_an_object(metadata: Object) -> bool:
    marks = all(isinstance(metadata.get(part) or {}, dict) for part in ("labels", "annotations"))
    name, namespace = metadata.get("name"), metadata.get("namespace", "")
    return marks and isinstance(name, str) and isinstance(namespace, str) and bool(name)


def uid_of_template(manifest: Object) -> str:
    return sys.intern(str(manifest["metadata"]["annotations"].get(TEMPLATE_UID, "")))


def key_of_manifest(manifest: Object) -> Key:
    """Its texts are shared: the key is kept, and each reading of the manifest makes them anew."""
    meta = manifest["metadata"]
    version, kind = str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))
    return Key(*map(sys.intern, (version, kind, meta.get("namespace", ""), meta["name"])))


def work_of(found: ObjectMeta) -> tuple[str, str] | None:
    """Return namespace and name of the Work that manages an object in a member."""
    annotations = found.annotations or {}
    if WORK_NAME in annotations and WORK_NAMESPACE in annotations:
        return annotations[WORK_NAMESPACE], annotations[WORK_NAME]
    return None


def is_managed(found: ObjectMeta) -> bool:
    return (found.labels or {}).get(MANAGED) == "true"


def find_conflict(manifest: Object, found: ResourceTemplate | None) -> str | None:
    """Return why the manifest must not be applied: an object exists that is not to be taken over."""
    if found is None or is_managed(found.metadata):
        return None
    policy = (manifest["metadata"].get("annotations") or {}).get(CONFLICT_RESOLUTION)
    if policy == _OVERWRITE:
        return None
    return (
        f"{manifest.get('kind')} {found.metadata.name} already exists and is not managed by the federation; "
        "set conflictResolution: Overwrite to take it over"
    )


def key_of_bound_role(manifest: Object) -> Key | None:
    """Return the role that a binding of roles grants; None for any other object."""
    kind, version = str(manifest.get("kind", "")), str(manifest.get("apiVersion", ""))
    reference = manifest.get("roleRef")
    if kind not in _ROLE_BINDINGS or group_of(version) != _RBAC or not isinstance(reference, dict):
        return None
    role, name = str(reference.get("kind", "")), str(reference.get("name", ""))
    return Key(version, role, manifest["metadata"].get("namespace", "") if role == "Role" else "", name)


def find_foreign_role(key: Key, role: ResourceTemplate | None) -> str | None:
    """Return why a role of a member must not be granted: only its name may be that of a role here.

    Roles that come with Kubernetes are the same everywhere.
    """
    labels = role.metadata.labels or {} if role else {}
    if labels.get(MANAGED) == "true" or labels.get(_BOOTSTRAPPING) == _DEFAULTS:
        return None
    missing = "is not there" if role is None else "is not managed by the federation"
    return f"the role that it grants, {key}, {missing}: propagate the role too"


def digest(manifest: Object) -> bytes:
    """Hash a manifest that was applied: keeping them all would take too much memory."""
    return hashlib.sha256(msgspec.json.encode(manifest, order="deterministic")).digest()


def mark_of(meta: ObjectMeta) -> str:
    """Return what changes with the object: its generation, or its version for kinds without one."""
    return f"g{meta.generation}" if meta.generation else f"v{meta.resource_version}"


def is_as_written(written: AppliedManifest | None, manifest: Object, found: ResourceTemplate | None) -> bool:
    """Tell whether nothing has to be applied: neither the manifest nor the object has changed since."""
    if written is None or found is None or written.digest != digest(manifest):
        return False
    labels, annotations = found.metadata.labels or {}, found.metadata.annotations or {}
    wanted = manifest["metadata"]
    return (
        (found.metadata.uid, mark_of(found.metadata)) == (written.uid, written.mark)
        and wanted["labels"].items() <= labels.items()
        and wanted["annotations"].items() <= annotations.items()
    )


def retain(manifest: Object, found: ResourceTemplate | None, rules: KindRules) -> Object | ScriptFailure:
    """Return the manifest with what an existing copy keeps by the rules of users."""
    target = key_of_manifest(manifest)
    if found is None or not rules.has((target.api_version, target.kind), Operation.RETENTION):
        return manifest
    return rules.retain(manifest, read_whole(target, found))


def omit_retained_replicas(manifest: Object, found: ResourceTemplate | None) -> Object:
    """Omit spec.replicas of an existing copy that something in the member scales, such as an autoscaler."""
    if found is None or not _retains_replicas(manifest):
        return manifest
    spec = {name: value for name, value in (manifest.get("spec") or {}).items() if name != "replicas"}
    return {**manifest, "spec": spec}


def hold_replicas(manifest: Object, found: ResourceTemplate | None) -> Object | None:
    """Return an object that only holds the present replicas, for a second field manager; None if not needed.

    Server-side apply resets a field to its default when its only manager stops sending it.
    """
    spec = found.part("spec") if found is not None and _retains_replicas(manifest) else None
    if not isinstance(spec, dict) or "replicas" not in spec:
        return None
    meta = {name: value for name, value in manifest["metadata"].items() if name in ("name", "namespace")}
    head = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": meta}
    return {**head, "spec": {"replicas": spec["replicas"]}}


def retains_replicas(work: HeldWork) -> bool:
    """Tell whether something in the member scales a copy of the Work."""
    return any(each is not None and _retains_replicas(each) for each in list_manifests(work))


def _retains_replicas(manifest: Object) -> bool:
    return (manifest["metadata"].get("labels") or {}).get(_RETAIN) == "true"


def is_missing_namespace(message: str, namespace: str) -> bool:
    """Tell whether the error is that the namespace does not exist."""
    return bool(namespace) and f'namespaces "{namespace}" not found' in message


def explain_rejection(error: ApiError, target: Key) -> str:
    """Return why a member rejected an object; for an unknown kind the API server answers only 404."""
    if isinstance(error, errors.NotFound) and '"' not in error.message:
        return f"{target.api_version} {target.kind} is not served in this cluster"
    return error.message


def change_work_status(
    work: HeldWork,
    outcomes: Sequence[ManifestOutcome],
    *,
    now: float,
    is_suspended: bool = False,
    rules: KindRules | None = None,
    generation: int = 0,
    counts_rollouts: bool = False,
) -> Object | None:
    """Return the merge patch of a Work's status; None if nothing changes.

    While dispatching is suspended nothing is applied, but the state of the copies is told on. `generation` is
    that of the Work whose manifests were applied; with `counts_rollouts` a rollout is a failure.
    """
    status: Object = {}
    has = work.status.conditions
    last = {each.identifier.ordinal: each.health for each in work.status.manifest_statuses or ()}
    readings = [_read_copy(each, rules, last.get(at, "")) for at, each in enumerate(outcomes)]
    health = next((each.health for each in readings), None)
    if health and counts_rollouts:
        health = health._replace(is_rolling_out=False)
    told = tell_health(has, health, now=now) if health else ()
    wanted = (*_list_conditions(has, outcomes, generation, is_suspended=is_suspended), *told)
    if conditions := put_conditions(has, wanted, now=now):
        status["conditions"] = conditions
    statuses = [
        _describe(ordinal, each.target, each.plural, each.found, reading)
        for ordinal, (each, reading) in enumerate(zip(outcomes, readings, strict=True))
        if each.found is not None
    ]
    if statuses != [_read(each) for each in work.status.manifest_statuses or ()]:
        status["manifestStatuses"] = statuses
    if not status:
        return None
    return {"metadata": {"resourceVersion": work.metadata.resource_version}, "status": status}


def _list_conditions(
    has: tuple[Condition, ...] | None,
    outcomes: Sequence[ManifestOutcome],
    generation: int,
    *,
    is_suspended: bool,
) -> Iterator[Condition]:
    """Yield the conditions that the outcomes call for; of the last two only what has ever been otherwise."""
    if not is_suspended:
        problem = _explain(outcomes)
        reason, message = (_FAILURE, problem) if problem else _SUCCESS
        of = generation if any(has_rollouts(*each.target[:2]) for each in outcomes) else 0
        yield Condition(APPLIED, str(not problem), reason, message, observed_generation=of or None)
    if is_suspended or find_condition(has, DISPATCHING):
        reason, message = _SUSPENDED if is_suspended else _DISPATCHED
        yield Condition(type=DISPATCHING, status=str(not is_suspended), reason=reason, message=message)
    contested = [str(each.target) for each in outcomes if each.is_contested]
    if contested or find_condition(has, CONTESTED):
        reason, message = (_CHANGED_BACK, _name_contested(contested)) if contested else _CALM
        yield Condition(type=CONTESTED, status=str(bool(contested)), reason=reason, message=message)


def is_newest_applied(work: HeldWork) -> bool:
    """Tell whether what is told of the copy is about its newest version.

    Only kinds that are rolled out tell it: the status of their copies changes with each version anyway.
    """
    applied = find_condition(work.status.conditions, APPLIED)
    if work.spec.suspend_dispatching or applied is None or applied.observed_generation is None:
        return True
    return applied.observed_generation >= work.metadata.generation


def _name_contested(contested: Sequence[str]) -> str:
    return (
        f"{', '.join(contested)}: something in the member changes it back as soon as it is applied; "
        "it is applied after pauses that double"
    )


def _explain(outcomes: Sequence[ManifestOutcome]) -> str:
    """Say which manifests are not applied, and why; "" if all are."""
    problems = [each for each in outcomes if each.problem is not None]
    if len(outcomes) == 1:
        return "".join(each.problem or _REFUSED for each in problems)
    named = "; ".join(f"{each.target}: {each.problem or _REFUSED}" for each in problems)
    return f"{len(problems)} of {len(outcomes)} manifests are not applied: {named}" if problems else ""


def _read(status: ManifestStatus) -> Object:
    """Return a status as it was written: a record omits an ordinal of 0."""
    had: Object = msgspec.json.decode(msgspec.json.encode(status))
    return {**had, "identifier": {"ordinal": 0, **had["identifier"]}}


def _tell_generations(group: str, found: ResourceTemplate) -> Object:
    """Return the generations of the copy and of its template: its status alone does not have them."""
    if not tells_generations(group, found.kind):
        return {}
    of_template = (found.metadata.annotations or {}).get(GENERATION_OF_TEMPLATE, "")
    generations = {GENERATION: found.metadata.generation}
    is_number = of_template.isdecimal() and len(of_template) <= _MOST_DIGITS
    return {**generations, OF_TEMPLATE: int(of_template)} if is_number else generations


def _can_be_told(status: Object) -> bool:
    """Tell whether the status of a copy is small and shallow enough to be told on.

    Otherwise the API server of the hub would refuse what is known of all clusters, or nobody could read it.
    """
    text = msgspec.json.encode(status)
    return len(text) <= LARGEST_STATUS and not is_deep(text, within=-_LEVELS_AROUND)


class _CopyReading(NamedTuple):
    """What the member says of a copy; `health` is None for a kind of which health says nothing."""

    told_health: str
    health: CopyHealth | None
    status: Any = None


def _read_copy(outcome: ManifestOutcome, rules: KindRules | None, last: str) -> _CopyReading:
    """Read a copy once, by the rules of users where there are any."""
    if outcome.found is None:
        return _CopyReading("", None)
    target = outcome.target.api_version, outcome.target.kind
    shown, custom = read_whole(outcome.target, outcome.found), rules.health if rules else NO_CUSTOM_RULES
    told = find_health(*target, shown, custom, told=last)
    rolls = told != HEALTHY and is_rolling_out(*target, shown)
    health = CopyHealth(told, rolls) if has_health_rule(*target, custom) else None
    return _CopyReading(told, health, _reflect_status(target, shown, rules))


def _reflect_status(target: tuple[str, str], shown: Object, rules: KindRules | None) -> Any:  # noqa: ANN401 - any JSON
    """Return what is told of a status: what a script picks, and all of it where there is none that works."""
    if rules is None or not rules.has(target, Operation.STATUS):
        return shown.get("status")
    said = rules.reflect_status(shown)
    return shown.get("status") if isinstance(said, ScriptFailure) else said


def _describe(ordinal: int, key: Key, plural: str, found: ResourceTemplate, reading: _CopyReading) -> Object:
    group, _, version = key.api_version.rpartition("/")
    identifier = {
        "ordinal": ordinal,
        "group": group,
        "version": version,
        "kind": key.kind,
        "resource": plural,
        "namespace": key.namespace,
        "name": key.name,
    }
    status = reading.status
    described = {"identifier": {name: value for name, value in identifier.items() if value != ""}}
    if isinstance(status, dict) and _can_be_told(status):
        described["status"] = {**status, **_tell_generations(group, found)}
    return {**described, "health": reading.told_health}
