"""Objects that are propagated: read whole, whatever their kind, and turned into what a member is sent."""

from typing import Any

import msgspec
from msgspec import Raw

from federation.controllers.keys import Key
from reberth.records import ObjectMeta, Record

Object = dict[str, Any]
_NOT_SENT = ("metadata", "apiVersion", "kind", "status")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# What the hub's API server has given an object, and a member's gives its own.
_GIVEN_BY_SERVER: dict[str, tuple[tuple[str, ...], ...]] = {
    "Service": (
        ("spec", "clusterIP"),
        ("spec", "clusterIPs"),
        ("spec", "ipFamilies"),
        ("spec", "healthCheckNodePort"),
    ),
    "ServiceAccount": (("secrets",),),
    "Job": (
        ("spec", "selector"),
        ("spec", "template", "metadata", "labels", "controller-uid"),
        ("spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"),
    ),
}
_HEADLESS = "None"


class Template(Record, frozen=True):
    """Any object. Each part stays as it was written, until somebody asks for it."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    spec: Raw = Raw()
    status: Raw = Raw()
    data: Raw = Raw()
    binary_data: Raw = Raw()
    immutable: Raw = Raw()
    type: Raw = Raw()
    rules: Raw = Raw()
    aggregation_rule: Raw = Raw()
    subjects: Raw = Raw()
    role_ref: Raw = Raw()
    secrets: Raw = Raw()
    image_pull_secrets: Raw = Raw()
    automount_service_account_token: Raw = Raw()

    def part(self, name: str) -> Any:  # noqa: ANN401 - any JSON may stand there
        """Read a part; None where there is none."""
        raw: Raw = getattr(self, name)
        return msgspec.json.decode(raw) if bytes(raw) else None


def read_parts(template: Template) -> Object:
    """Give all parts by their names on the wire."""
    names = zip(Template.__struct_fields__, Template.__struct_encode_fields__, strict=True)
    parts = {wire: template.part(name) for name, wire in names if wire not in _NOT_SENT}
    return {wire: part for wire, part in parts.items() if part is not None}


def write_manifest(key: Key, template: Template) -> Object:
    """Give what a member is to be sent, without what only the hub's API server has a say in."""
    meta = template.metadata
    annotations = {name: text for name, text in (meta.annotations or {}).items() if name != _LAST_APPLIED}
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
    for path in _GIVEN_BY_SERVER.get(key.kind, ()):
        _drop(manifest, path)
    return manifest


def _drop(holder: Object, path: tuple[str, ...]) -> None:
    for step in path[:-1]:
        found = holder.get(step)
        if not isinstance(found, dict):
            return
        holder = found
    value = holder.get(path[-1])
    if value not in (_HEADLESS, [_HEADLESS]):
        holder.pop(path[-1], None)
