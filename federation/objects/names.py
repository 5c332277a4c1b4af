"""Keys of objects, and the names, labels and annotations that tie bindings, Works and copies together."""

import hashlib
from typing import NamedTuple

from federation.api.bindings import BINDING_KINDS, BoundResource
from federation.api.digests import fnv_1a, write_harmless
from federation.api.labels import LABELS
from reberth.records import Labels, ObjectMeta

PREFIX_OF_WORKS = "karmada-es-"
MANAGED = "karmada.io/managed"
TEMPLATE_UID = "resourcetemplate.karmada.io/uid"
WORK_NAMESPACE = "work.karmada.io/namespace"
WORK_NAME = "work.karmada.io/name"
WORK_ID = LABELS["Work"]
EXECUTION_FINALIZER = "karmada.io/execution-controller"

_NAMESPACE_OF_BINDING = {kind: f"{kind.lower()}.karmada.io/namespace" for kind in BINDING_KINDS}
_NAME_OF_BINDING = {kind: f"{kind.lower()}.karmada.io/name" for kind in BINDING_KINDS}
_LONGEST_NAME = 253
_RESERVED = ("karmada-cluster", "karmada-system", "reberth-system")
_RESERVED_PREFIXES = ("kube-", PREFIX_OF_WORKS)
_DIGEST = 10


class Key(NamedTuple):
    """Which object; its namespace is "" if it is cluster-scoped."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(filter(None, (self.namespace, self.name)))}"


def is_reserved(namespace: str) -> bool:
    """Tell whether a namespace belongs to Kubernetes or to the federation itself."""
    return namespace in _RESERVED or namespace.startswith(_RESERVED_PREFIXES)


def is_withheld(template: Key | BoundResource) -> bool:
    """Tell whether an object is propagated for nobody: it may be a key or token of the cluster or of ours."""
    return template.kind == "Secret" and is_reserved(template.namespace)


def permanent_id(kind: str, meta: ObjectMeta) -> str:
    """Return the permanent id of an object, or its uid if no webhook has set one."""
    return (meta.labels or {}).get(LABELS[kind]) or meta.uid


def name_binding(template: Key) -> str:
    """Return the name of a template's binding."""
    return _shorten(f"{template.name.replace(':', '.')}-{template.kind}".lower(), str(template))


def name_work(template: Key) -> str:
    """Return the name of a template's Works, as Karmada does: the same in the namespace of each cluster."""
    readable = template.name.replace(":", ".").lower()
    whole = "-".join(filter(None, (template.namespace, readable, template.kind.lower())))
    return f"{readable[: _LONGEST_NAME - _DIGEST - 1]}-{write_harmless(fnv_1a(whole))}"


def namespace_of_works(cluster: str) -> str:
    return f"{PREFIX_OF_WORKS}{cluster}"


def cluster_of_works(namespace: str) -> str | None:
    """Return the cluster whose Works are in the namespace; None for another namespace."""
    return namespace.removeprefix(PREFIX_OF_WORKS) if namespace.startswith(PREFIX_OF_WORKS) else None


def tie_to_binding(kind: str, meta: ObjectMeta) -> tuple[Labels, Labels]:
    """Return the labels and annotations by which a Work refers to its binding."""
    annotations = {_NAME_OF_BINDING[kind]: meta.name}
    if meta.namespace:
        annotations[_NAMESPACE_OF_BINDING[kind]] = meta.namespace
    return {LABELS[kind]: permanent_id(kind, meta)}, annotations


def binding_of(work: ObjectMeta, api_version: str) -> Key | None:
    """Return the key of the binding of a Work."""
    annotations = work.annotations or {}
    for kind in BINDING_KINDS:
        if name := annotations.get(_NAME_OF_BINDING[kind]):
            return Key(api_version, kind, annotations.get(_NAMESPACE_OF_BINDING[kind], ""), name)
    return None


def _shorten(name: str, whole: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - _DIGEST - 1]}-{_digest(whole)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
