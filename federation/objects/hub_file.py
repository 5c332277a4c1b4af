"""The hub's objects, from what `kubectl get clusters,resourcebindings,... -A -o json` prints, or from YAML.

Lists are opened. Objects of other kinds are resource templates where these are wanted, and else passed over.
Of two objects of one name the later counts. One that cannot be read is reported: a cluster that was left out
would change every decision.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from federation.api import (
    APPS_API_VERSION,
    CLUSTER_API_VERSION,
    CONFIG_API_VERSION,
    INTERPRETER_KIND,
    POLICY_API_VERSION,
    WORK_API_VERSION,
    WORKS_API_VERSION,
    Cluster,
    PropagationPolicy,
    ResourceBinding,
    ResourceInterpreterCustomization,
    WorkloadRebalancer,
)
from federation.objects.names import Key
from federation.objects.resources import RBAC_KINDS, TEMPLATES, HeldWork, can_be_propagated
from federation.objects.template import ResourceTemplate, read_template
from federation.scheduling import name_of
from reberth.cluster.object_files import JsonDocument, list_documents
from reberth.cluster.pods.identity import group_of
from reberth.records import ObjectMeta
from reberth.values.object_error import ObjectError

T = TypeVar("T")
_LIST = "List"


class HubKind(NamedTuple):
    """A kind that is read: its version, its record, and whether it is namespaced."""

    api_version: str
    record: type[Any]
    namespaced: bool = False


KINDS = {
    "Cluster": HubKind(CLUSTER_API_VERSION, Cluster),
    "PropagationPolicy": HubKind(POLICY_API_VERSION, PropagationPolicy, namespaced=True),
    "ClusterPropagationPolicy": HubKind(POLICY_API_VERSION, PropagationPolicy),
    "ResourceBinding": HubKind(WORK_API_VERSION, ResourceBinding, namespaced=True),
    "ClusterResourceBinding": HubKind(WORK_API_VERSION, ResourceBinding),
    "WorkloadRebalancer": HubKind(APPS_API_VERSION, WorkloadRebalancer),
}
WITH_WORKS = KINDS | {
    "Work": HubKind(WORKS_API_VERSION, HeldWork, namespaced=True),
    INTERPRETER_KIND: HubKind(CONFIG_API_VERSION, ResourceInterpreterCustomization),
}
_NAMESPACED = {(each.api_version, each.kind.name) for each in (*TEMPLATES, *RBAC_KINDS) if each.namespaced}


class _ObjectHead(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that tell a list from an object, and one kind from another."""

    kind: str | None = None
    api_version: str | None = None
    items: Raw = Raw()


class HubFile:
    """The objects that were read, by kind and name, and the errors of those that could not be."""

    def __init__(
        self, objects: Iterable[bytes], kinds: Mapping[str, HubKind] = KINDS, *, with_templates: bool = False
    ) -> None:
        """Read texts. Raises TextError for a text that is neither JSON nor YAML."""
        self.faults: list[ObjectError] = []
        self.templates: dict[Key, ResourceTemplate] = {}
        self._kinds = kinds
        self._with_templates = with_templates
        self._objects: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
        for document in list_documents(objects):
            self._take(document, _ObjectHead())

    @property
    def clusters(self) -> list[Cluster]:
        return list(self._objects["Cluster"].values())

    @property
    def bindings(self) -> dict[str, ResourceBinding]:
        return self._objects["ResourceBinding"] | self._objects["ClusterResourceBinding"]

    def list_objects(self, *kinds: str) -> Iterator[Any]:
        """Yield the objects of these kinds."""
        for kind in kinds:
            yield from self._objects[kind].values()

    def names(self, *kinds: str) -> list[str]:
        """Name what there is of these kinds, each with its kind."""
        return [f"{kind} {name}" for kind in kinds for name in sorted(self._objects[kind])]

    def _take(self, document: JsonDocument, above: _ObjectHead) -> None:
        try:
            self._read(document, above)
        except ObjectError as fault:
            self.faults.append(fault)

    def _read(self, document: JsonDocument, above: _ObjectHead) -> None:
        """Read an object, or all objects of a list: they may leave it to the list to name their kind."""
        head = _decode(document, _ObjectHead, above.kind)
        name, version = head.kind or above.kind or "", head.api_version or above.api_version or ""
        kind = self._kinds.get(name)
        if name.endswith(_LIST) and bytes(head.items):
            for item in _decode(head.items, list[Raw], name):
                self._take(item, _ObjectHead(name.removesuffix(_LIST), version))
        elif not name:
            raise ObjectError("object", _read_name(document), field="kind", reason="is missing")
        elif kind is not None and group_of(version) == group_of(kind.api_version):
            record = _complete(_decode(document, kind.record, name), name, version, kind)
            self._objects[name][name_of(record)] = record
        elif self._with_templates and can_be_propagated(version, name):
            self._read_template(document, name, version)

    def _read_template(self, document: JsonDocument, kind: str, version: str) -> None:
        """Read an object that may be propagated. Whether a custom kind has namespaces is not known here."""
        template = _decode(document, ResourceTemplate, kind)
        meta = template.metadata
        if not meta.name:
            raise ObjectError(kind, meta, field="metadata.name", reason="is missing")
        namespace = meta.namespace or ("default" if (version, kind) in _NAMESPACED else "")
        named = replace(template, metadata=replace(meta, namespace=namespace))
        self.templates[Key(version, kind, namespace, meta.name)] = named


def _decode(document: JsonDocument, record: type[T], name: str | None) -> T:
    try:
        if record is ResourceTemplate:
            return cast("T", read_template(document))
        return msgspec.json.decode(document, type=record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason, _, place = str(error).partition(" - at `$")
        field = place.rstrip("`").lstrip(".") or "all of it"
        raise ObjectError(name or "object", _read_name(document), field=field, reason=reason) from error


def _complete(record: Any, name: str, version: str, kind: HubKind) -> Any:  # noqa: ANN401 - a record of the kind
    """Check what decoding does not, and add the default namespace, which hand-written files omit."""
    meta = record.metadata
    if version != kind.api_version:
        reason = f"is {version}, expected {kind.api_version}"
        raise ObjectError(name, meta, field="apiVersion", reason=reason)
    if not meta.name:
        raise ObjectError(name, meta, field="metadata.name", reason="is missing")
    namespace = (meta.namespace or "default") if kind.namespaced else ""
    return replace(record, metadata=replace(meta, namespace=namespace))


def _read_name(document: JsonDocument) -> ObjectMeta:
    """Read the name alone, of an object that cannot be decoded."""
    try:
        meta = msgspec.json.decode(document)["metadata"]
        return ObjectMeta(str(meta["name"]), str(meta.get("namespace", "")))
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError, AttributeError):
        return ObjectMeta()
