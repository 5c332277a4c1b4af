"""Dependencies of a workload: the objects that its pods name, and the bindings that propagate them.

A binding with `propagateDeps` takes its dependencies to each cluster where it is, or is still being evicted
from. The binding of a dependency lists in `requiredBy` who needs it and where. It may have a policy, too.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from federation.api import BindingSnapshot, PurgeMode, ResourceBinding, TargetCluster
from federation.interpreters.kind_rules import KindRules
from federation.interpreters.operations import Operation
from federation.interpreters.sandbox import ScriptFailure
from federation.objects.any_json import at, list_at, text_at
from federation.objects.names import Key, is_withheld
from federation.objects.template import Object, ResourceTemplate, read_whole
from federation.propagation.binding import is_claimed, key_of_binding
from federation.propagation.policy_match import MADE_BY_EVERY_CLUSTER
from federation.rebalancing.handover import kept_replicas
from reberth.cluster.pods.identity import group_of
from reberth.other_projects.rules import read_each
from reberth.other_projects.table import find_kind

_POD_AT: dict[tuple[str, str], tuple[str, ...]] = {
    ("v1", "Pod"): ("spec",),
    ("apps/v1", "Deployment"): ("spec", "template", "spec"),
    ("apps/v1", "ReplicaSet"): ("spec", "template", "spec"),
    ("apps/v1", "StatefulSet"): ("spec", "template", "spec"),
    ("apps/v1", "DaemonSet"): ("spec", "template", "spec"),
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_CONFIGURATION, _SECRET = "ConfigMap", "Secret"
_ACCOUNT, _CLAIM = "ServiceAccount", "PersistentVolumeClaim"
# Where the sources of volumes name a Secret.
_SECRETS_OF_VOLUMES: dict[str, tuple[str, ...]] = {
    "secret": ("secretName",),
    "azureFile": ("secretName",),
    "cephfs": ("secretRef", "name"),
    "cinder": ("secretRef", "name"),
    "csi": ("nodePublishSecretRef", "name"),
    "flexVolume": ("secretRef", "name"),
    "iscsi": ("secretRef", "name"),
    "rbd": ("secretRef", "name"),
    "scaleIO": ("secretRef", "name"),
    "storageos": ("secretRef", "name"),
}


def find_dependencies(
    key: Key, template: ResourceTemplate, rules: KindRules | None = None
) -> frozenset[Key] | None:
    """Return the objects that the pods of a workload name; none for a kind without pods.

    Where users have scripts for the kind, it is what these find, or None if one of them fails.
    """
    if rules is not None and rules.has((key.api_version, key.kind), Operation.DEPENDENCIES):
        return _ask(key, template, rules)
    pods = _list_pods(key, template)
    found = {each for pod in pods for each in _of_pod(pod)} - set(MADE_BY_EVERY_CLUSTER)
    keys = (Key("v1", kind, key.namespace, name) for kind, name in found if name)
    return frozenset(each for each in keys if not is_withheld(each))


def _list_pods(key: Key, template: ResourceTemplate) -> Iterator[Any]:
    """Yield the specs of the pods that a workload describes."""
    if path := _POD_AT.get((key.api_version, key.kind)):
        yield at(template.part(path[0]), *path[1:])
    elif other := find_kind(group_of(key.api_version), key.kind):
        described = {"spec": template.part("spec")} if other.templates else {}
        for where in other.templates:
            yield from (at(each, "spec") for each in read_each(described, where))


def _ask(key: Key, template: ResourceTemplate, rules: KindRules) -> frozenset[Key] | None:
    """Ask the scripts. What they find in other namespaces is not the workload's to take along."""
    found = rules.find_dependencies((key.api_version, key.kind), read_whole(key, template))
    if isinstance(found, ScriptFailure):
        return None
    keys = (
        Key(each["apiVersion"], each["kind"], text_at(each, "namespace"), each["name"])
        for each in found
        if each["name"] and text_at(each, "namespace") in ("", key.namespace)
    )
    return frozenset(
        each for each in keys if not is_withheld(each) and (each.kind, each.name) not in MADE_BY_EVERY_CLUSTER
    )


def find_clusters(binding: ResourceBinding) -> tuple[TargetCluster, ...]:
    """Return the clusters of the workload, including those that keep an old copy for a while."""
    targets = binding.spec.clusters or ()
    tasks = binding.spec.graceful_eviction_tasks or ()
    names = {each.name for each in targets}
    left = {
        task.from_cluster: task.replicas or 0 for task in tasks if task.purge_mode is not PurgeMode.DIRECTLY
    }
    left |= kept_replicas(binding)
    kept = (TargetCluster(name, count) for name, count in sorted(left.items()) if name not in names)
    return (*targets, *kept)


def write_snapshots(dependents: Iterable[ResourceBinding]) -> list[Object]:
    """Write `requiredBy`: who needs an object, and where, in a fixed order."""
    snapshots = []
    for one in dependents:
        clusters = [{"name": each.name, "replicas": each.replicas} for each in find_clusters(one)]
        if clusters:
            meta = one.metadata
            snapshots.append({"namespace": meta.namespace, "name": meta.name, "clusters": clusters})
    return sorted(snapshots, key=lambda each: (each["namespace"], each["name"]))


def write_attached_binding(
    key: Key, template: ResourceTemplate, snapshots: list[Object], *, conflict: str | None
) -> Object:
    """Write the binding of a dependency, owned by the object itself."""
    target, meta = key_of_binding(key), template.metadata
    owner = {"apiVersion": key.api_version, "kind": key.kind, "name": meta.name, "uid": meta.uid}
    spec: Object = {
        "resource": {**owner, "namespace": key.namespace},
        "requiredBy": snapshots,
        "conflictResolution": conflict or "Abort",
    }
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": {
            "name": target.name,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": spec,
    }


def change_required_by(binding: ResourceBinding, snapshots: list[Object]) -> Object | None:
    """Return the merge patch of `requiredBy`; None if nothing changes."""
    if [_read(each) for each in binding.spec.required_by or ()] == snapshots:
        return None
    return {
        "metadata": {"resourceVersion": binding.metadata.resource_version},
        "spec": {"requiredBy": snapshots or None},
    }


def is_unused(binding: ResourceBinding) -> bool:
    """Tell whether the binding existed only for its dependents: no policy and no scheduler uses it."""
    return not (is_claimed(binding.metadata.labels) or binding.spec.placement or binding.spec.clusters)


def _read(snapshot: BindingSnapshot) -> Object:
    clusters = [{"name": each.name, "replicas": each.replicas} for each in snapshot.clusters or ()]
    return {"namespace": snapshot.namespace, "name": snapshot.name, "clusters": clusters}


def _of_pod(pod: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON
    yield _ACCOUNT, text_at(pod, "serviceAccountName") or text_at(pod, "serviceAccount")
    for reference in list_at(pod, "imagePullSecrets"):
        yield _SECRET, text_at(reference, "name")
    for volume in list_at(pod, "volumes"):
        yield from _of_volume(volume)
    for kind in _CONTAINERS:
        for container in list_at(pod, kind):
            yield from _of_container(container)


def _of_volume(volume: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - likewise
    yield _CONFIGURATION, text_at(volume, "configMap", "name")
    yield _CLAIM, text_at(volume, "persistentVolumeClaim", "claimName")
    for source, path in _SECRETS_OF_VOLUMES.items():
        yield _SECRET, text_at(volume, source, *path)
    for source in list_at(volume, "projected", "sources"):
        yield _CONFIGURATION, text_at(source, "configMap", "name")
        yield _SECRET, text_at(source, "secret", "name")


def _of_container(container: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - likewise
    for source in list_at(container, "envFrom"):
        yield _CONFIGURATION, text_at(source, "configMapRef", "name")
        yield _SECRET, text_at(source, "secretRef", "name")
    for variable in list_at(container, "env"):
        yield _CONFIGURATION, text_at(variable, "valueFrom", "configMapKeyRef", "name")
        yield _SECRET, text_at(variable, "valueFrom", "secretKeyRef", "name")
