"""The manifest of a template for a member, without the fields that API servers and controllers fill in.

The member's own API server and controllers assign addresses, selectors and volumes. Fields that are not sent
keep the member's values.
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.objects.names import MANAGED, Key
from federation.objects.template import Object, ResourceTemplate, read_parts
from reberth.records import Labels

GENERATION = "resourcetemplate.karmada.io/generation"
"""Annotation of a copy: the generation of its template."""

_NOT_SENT = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deployment.kubernetes.io/revision",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "volume.kubernetes.io/selected-node",
        "kubernetes.io/service-account.uid",
    }
)
_BOUND = "pv.kubernetes.io/bound-by-controller"
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - the name of a type
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - the name of a volume
_POD_SECURITY = "pod-security.kubernetes.io/"
_HEADLESS = "None"
_OF_THE_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid")


def write_manifest(key: Key, template: ResourceTemplate) -> Object:
    """Write the manifest without the fields that the hub's API server and controllers set."""
    meta = template.metadata
    had = meta.annotations or {}
    annotations = {name: text for name, text in had.items() if name not in _NOT_SENT}
    if meta.generation:
        annotations[GENERATION] = str(meta.generation)
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": meta.labels,
        "annotations": annotations,
    }
    manifest: Object = {
        "apiVersion": key.api_version,
        "kind": key.kind,
        "metadata": {name: value for name, value in metadata.items() if value},
        **read_parts(template),
    }
    clean = _CLEANERS.get((key.api_version, key.kind))
    if clean is not None:
        clean(manifest, had)
    return manifest


def write_namespace(template: ResourceTemplate) -> Object:
    """Write a namespace for a member, with the labels and annotations that it has on the hub."""
    meta = write_manifest(Key("v1", "Namespace", "", template.metadata.name), template)["metadata"]
    labels = {**meta.get("labels", {}), MANAGED: "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**meta, "labels": labels}}


def is_namespace_in_step(wanted: Object, labels: Labels) -> bool:
    """Tell whether a namespace of a member has the labels of the hub's, and no other pod security.

    A label that is gone on the hub is one too many; of other labels the member may have its own.
    """
    given: Labels = wanted["metadata"]["labels"]
    more = {name for name in labels if name.startswith(_POD_SECURITY)} - given.keys()
    return not more and given.items() <= labels.items()


def _clean_service(manifest: Object, _: Mapping[str, str]) -> None:
    spec = _part(manifest, "spec")
    for name in ("clusterIP", "clusterIPs"):
        if spec.get(name) not in (_HEADLESS, [_HEADLESS]):
            spec.pop(name, None)
    for name in ("ipFamilies", "healthCheckNodePort"):
        spec.pop(name, None)


def _clean_service_account(manifest: Object, _: Mapping[str, str]) -> None:
    manifest.pop("secrets", None)


def _clean_secret(manifest: Object, _: Mapping[str, str]) -> None:
    if manifest.get("type") == _TOKEN:
        manifest.pop("data", None)


def _clean_job(manifest: Object, _: Mapping[str, str]) -> None:
    spec = _part(manifest, "spec")
    if spec.get("manualSelector"):
        return
    spec.pop("selector", None)
    labels = _part(spec, "template", "metadata", "labels")
    for name in _OF_THE_JOB:
        labels.pop(name, None)


def _clean_pod(manifest: Object, _: Mapping[str, str]) -> None:
    """The member chooses the node, mounts its own token, and resolves its own PriorityClass."""
    spec = _part(manifest, "spec")
    for name in ("nodeName", "priority"):
        spec.pop(name, None)
    _drop_token(spec, "volumes")
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            _drop_token(container, "volumeMounts")


def _drop_token(holder: Object, name: str) -> None:
    if name in holder:
        holder[name] = [each for each in holder[name] or () if not each["name"].startswith(_TOKEN_VOLUME)]


def _clean_claim(manifest: Object, annotations: Mapping[str, str]) -> None:
    if _BOUND in annotations:
        _part(manifest, "spec").pop("volumeName", None)


def _clean_volume(manifest: Object, _: Mapping[str, str]) -> None:
    _part(manifest, "spec").pop("claimRef", None)


_CLEANERS: dict[tuple[str, str], Callable[[Object, Mapping[str, str]], None]] = {
    ("v1", "Service"): _clean_service,
    ("v1", "ServiceAccount"): _clean_service_account,
    ("v1", "Secret"): _clean_secret,
    ("batch/v1", "Job"): _clean_job,
    ("v1", "Pod"): _clean_pod,
    ("v1", "PersistentVolumeClaim"): _clean_claim,
    ("v1", "PersistentVolume"): _clean_volume,
}


def _part(holder: Object, *path: str) -> Object:
    """Return the mapping at the path, or an empty one."""
    found: Any = holder
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
