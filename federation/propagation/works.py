"""The Works of a binding: one for each cluster, with the manifest for that cluster."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from federation.api import (
    WORKS_API_VERSION,
    GracefulEvictionTask,
    PurgeMode,
    ResourceBinding,
)
from federation.api.bindings import kind_of
from federation.failover.state_preservation import annotate_state, labels_for_copy
from federation.interpreters.kind_rules import KindRules
from federation.interpreters.operations import Operation
from federation.interpreters.sandbox import ScriptFailure
from federation.objects.names import (
    EXECUTION_FINALIZER,
    MANAGED,
    TEMPLATE_UID,
    Key,
    name_work,
    namespace_of_works,
    tie_to_binding,
)
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.binding import exchange_marks, is_divided
from federation.propagation.manifest import write_manifest
from federation.propagation.replica_demand import set_replicas
from federation.rebalancing.handover import kept_replicas
from federation.scheduling.rounding import divide, prefers_last_name
from reberth.records import Labels
from reberth.values.object_error import ObjectError

CONFLICT_RESOLUTION = "work.karmada.io/conflict-resolution"


class WorkChanges(NamedTuple):
    """Changes of the Works of one binding, by cluster."""

    create: dict[str, Object]
    change: dict[str, tuple[HeldWork, Object]]
    delete: dict[str, HeldWork]


def plan_works(
    key: Key,
    binding: ResourceBinding,
    template: ResourceTemplate,
    existing: Mapping[str, HeldWork],
    rules: KindRules | None = None,
) -> WorkChanges:
    """Compare the existing Works with the wanted ones.

    A cluster from which the workload is evicted keeps its Work unchanged. With purge mode Directly the Work
    is deleted at once, and other clusters get new ones only when it is gone: no two copies at a time.
    """
    tasks = {task.from_cluster: task for task in binding.spec.graceful_eviction_tasks or ()}
    targets = targets_of(binding) | _keep(binding, existing)
    held = {name for name, task in tasks.items() if name not in targets and not _is_direct(task)}
    wanted = {
        name: write_work(
            key,
            binding,
            template,
            name,
            replicas,
            state=labels_for_copy(binding, name, existing.get(name)),
            rules=rules,
        )
        for name, replicas in targets.items()
    }
    waits = any(_is_direct(task) and name in existing and name not in targets for name, task in tasks.items())
    changes = {
        name: (existing[name], change)
        for name, work in wanted.items()
        if name in existing and (change := change_work(existing[name], work))
    }
    return WorkChanges(
        create={} if waits else {name: work for name, work in wanted.items() if name not in existing},
        change=changes,
        delete={name: work for name, work in existing.items() if name not in targets and name not in held},
    )


def targets_of(binding: ResourceBinding) -> dict[str, int]:
    """Return the clusters that get a copy, with its replicas: scheduled ones, and those of dependents."""
    needed = {each.name: 0 for one in binding.spec.required_by or () for each in one.clusters or ()}
    return needed | {each.name: each.replicas for each in binding.spec.clusters or ()}


def _keep(binding: ResourceBinding, existing: Mapping[str, HeldWork]) -> dict[str, int]:
    """Return the old copies that stay until the new ones are ready, except those to be purged directly."""
    direct = {task.from_cluster for task in binding.spec.graceful_eviction_tasks or () if _is_direct(task)}
    targets = targets_of(binding)
    return {
        name: max(replicas, targets.get(name, 0))
        for name, replicas in kept_replicas(binding).items()
        if name in existing and name not in direct
    }


def _is_direct(task: GracefulEvictionTask) -> bool:
    return task.purge_mode is PurgeMode.DIRECTLY


def write_work(
    key: Key,
    binding: ResourceBinding,
    template: ResourceTemplate,
    cluster: str,
    replicas: int,
    *,
    state: Labels | None = None,
    rules: KindRules | None = None,
) -> Object:
    """Write the Work of one cluster; `state` are labels that the copy takes over from the one it replaces.

    Raises ObjectError if a script that sets the replicas fails.
    """
    labels, annotations = tie_to_binding(kind_of(binding), binding.metadata)
    whole = write_manifest(key, template)
    if binding.spec.replicas and rules and rules.has((key.api_version, key.kind), Operation.REVISION):
        whole = _revise(whole, template, replicas, rules)
    elif binding.spec.replicas:
        whole = _set_share(whole, binding, cluster, replicas)
    manifest = complete_manifest(whole, binding)
    manifest["metadata"]["labels"] |= state or {}
    return {
        "apiVersion": WORKS_API_VERSION,
        "kind": "Work",
        "metadata": {
            "name": name_work(key),
            "namespace": namespace_of_works(cluster),
            "labels": labels,
            "annotations": {**annotations, **annotate_state(state or {})},
            "finalizers": [EXECUTION_FINALIZER],
        },
        "spec": {
            "workload": {"manifests": [manifest]},
            "suspendDispatching": _is_halted(binding, cluster),
            "preserveResourcesOnDeletion": bool(binding.spec.preserve_resources_on_deletion),
        },
    }


def _revise(manifest: Object, template: ResourceTemplate, replicas: int, rules: KindRules) -> Object:
    said = rules.revise(manifest, replicas)
    if isinstance(said, ScriptFailure):
        reason = f"{Operation.REVISION}: {said.reason}"
        raise ObjectError(str(manifest["kind"]), template.metadata, field="spec", reason=reason)
    return said


def _is_halted(binding: ResourceBinding, cluster: str) -> bool:
    said = binding.spec.suspension
    if said is None:
        return False
    clusters = said.dispatching_on_clusters
    return bool(said.dispatching or (clusters and cluster in (clusters.cluster_names or ())))


def _set_share(manifest: Object, binding: ResourceBinding, cluster: str, replicas: int) -> Object:
    """Set the cluster's share of the replicas."""
    api_version, kind, spec = manifest["apiVersion"], manifest["kind"], manifest.get("spec")
    if not isinstance(spec, dict):
        return manifest
    shared = set_replicas(api_version, kind, spec, replicas)
    if shared is not spec:
        shared |= _share_completions(spec, binding, cluster)
    return {**manifest, "spec": shared}


def complete_manifest(manifest: Object, binding: ResourceBinding) -> Object:
    """Set the labels and annotations of a managed copy."""
    metadata = manifest["metadata"]
    said = binding.metadata
    metadata["labels"] = {**exchange_marks(metadata.get("labels"), said.labels), MANAGED: "true"}
    annotations = exchange_marks(metadata.get("annotations"), said.annotations)
    annotations[TEMPLATE_UID] = binding.spec.resource.uid
    annotations.setdefault(CONFLICT_RESOLUTION, (binding.spec.conflict_resolution or "Abort").lower())
    metadata["annotations"] = annotations
    return manifest


def _share_completions(spec: Object, binding: ResourceBinding, cluster: str) -> Object:
    """Divide the completions of a Job like its replicas."""
    completions, targets = spec.get("completions"), targets_of(binding)
    if not completions or not is_divided(binding):
        return {}
    from_the_end = prefers_last_name(binding.spec.resource.uid)
    return {"completions": divide(completions, targets, last_name_first=from_the_end)[cluster]}


def change_work(work: HeldWork, wanted: Object) -> Object | None:
    """Return the merge patch that brings a Work to the wanted state; None if nothing changes."""
    patch: Object = {}
    spec, metadata = wanted["spec"], wanted["metadata"]
    has = {
        "suspendDispatching": bool(work.spec.suspend_dispatching),
        "preserveResourcesOnDeletion": bool(work.spec.preserve_resources_on_deletion),
        "workload": {"manifests": read_manifests(work)},
    }
    if changed := {name: value for name, value in spec.items() if has[name] != value}:
        patch["spec"] = changed
    marks = {
        part: metadata[part]
        for part in ("labels", "annotations")
        if not metadata[part].items() <= (getattr(work.metadata, part) or {}).items()
    }
    if not patch and not marks:
        return None
    return {**patch, "metadata": {**marks, "resourceVersion": work.metadata.resource_version}}


def read_manifests(work: HeldWork) -> list[Any]:
    return [msgspec.json.decode(each) for each in work.spec.workload.manifests or ()]
