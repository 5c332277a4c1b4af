"""The hub's objects, from what `kubectl get clusters,resourcebindings,... -A -o json` prints, or from YAML.

Lists are opened, and kinds that the scheduler does not need are passed over. Of two objects of one name the
later counts. One that cannot be read is reported: a cluster that was left out would change every decision.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from federation.api import (
    APPS_API_VERSION,
    CLUSTER_API_VERSION,
    POLICY_API_VERSION,
    WORK_API_VERSION,
    Cluster,
    PropagationPolicy,
    ResourceBinding,
    WorkloadRebalancer,
)
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


class _ObjectHead(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that tell a list from an object, and one kind from another."""

    kind: str | None = None
    api_version: str | None = None
    items: Raw = Raw()


class HubFile:
    """The objects that were read, by kind and name, and the errors of those that could not be."""

    def __init__(self, objects: Iterable[bytes]) -> None:
        """Read texts. Raises TextError for a text that is neither JSON nor YAML."""
        self.faults: list[ObjectError] = []
        self._objects: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
        for document in list_documents(objects):
            self._take(document, _ObjectHead())

    @property
    def clusters(self) -> list[Cluster]:
        return list(self._objects["Cluster"].values())

    @property
    def bindings(self) -> dict[str, ResourceBinding]:
        return self._objects["ResourceBinding"] | self._objects["ClusterResourceBinding"]

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
        kind = KINDS.get(name)
        if name.endswith(_LIST) and bytes(head.items):
            for item in _decode(head.items, list[Raw], name):
                self._take(item, _ObjectHead(name.removesuffix(_LIST), version))
        elif not name:
            raise ObjectError("object", _read_name(document), field="kind", reason="is missing")
        elif kind is not None and group_of(version) == group_of(kind.api_version):
            record = _complete(_decode(document, kind.record, name), name, version)
            self._objects[name][name_of(record)] = record


def _decode(document: JsonDocument, record: type[T], name: str | None) -> T:
    try:
        return msgspec.json.decode(document, type=record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason, _, place = str(error).partition(" - at `$")
        field = place.rstrip("`").lstrip(".") or "all of it"
        raise ObjectError(name or "object", _read_name(document), field=field, reason=reason) from error


def _complete(record: Any, name: str, version: str) -> Any:  # noqa: ANN401 - one of the records of KINDS
    """Check what decoding does not, and add the default namespace, which hand-written files omit."""
    kind, meta = KINDS[name], record.metadata
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
