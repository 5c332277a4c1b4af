"""Resource templates: objects of any kind that are propagated, read whole."""

from typing import Any

import msgspec
from msgspec import Raw

from federation.objects.names import Key
from reberth.protocol.response import Reader, WatchEvent
from reberth.records import ObjectMeta, Record

Object = dict[str, Any]
_HEAD = ("metadata", "apiVersion", "kind")
_STATUS = "status"


class ResourceTemplate(Record, frozen=True):
    """An object of any kind. Each top-level field stays undecoded until it is read."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    parts: dict[str, Raw] = msgspec.field(default_factory=dict)

    def part(self, name: str) -> Any:  # noqa: ANN401 - any JSON may stand there
        """Decode a top-level field; None if it is missing."""
        raw = self.parts.get(name)
        return None if raw is None else msgspec.json.decode(raw)

    def wish(self) -> dict[str, Raw]:
        """Return all top-level fields except the status, undecoded."""
        return {name: raw for name, raw in self.parts.items() if name != _STATUS}


class _TemplateHead(Record, frozen=True):
    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""


_head = msgspec.json.Decoder(_TemplateHead)
_parts = msgspec.json.Decoder(dict[str, Raw])


def read_template(body: bytes | Raw) -> ResourceTemplate:
    """Read an object. Raises msgspec.MsgspecError for anything else.

    Parts are copied, so that they do not keep the whole response with its managedFields in memory.
    """
    head = _head.decode(body)
    parts = {name: raw.copy() for name, raw in _parts.decode(body).items() if name not in _HEAD}
    return ResourceTemplate(head.metadata, head.api_version, head.kind, parts)


class ResourceTemplateReader(Reader[ResourceTemplate]):
    """Reads responses of the API server for objects of any kind."""

    def __init__(self) -> None:
        super().__init__(ResourceTemplate, objects=_Objects(), lines=_Lines())


class _Objects:
    def decode(self, body: bytes | Raw, /) -> ResourceTemplate:
        return read_template(body)


class _RawLine(Record, frozen=True):
    type: str
    object: Raw


class _Lines:
    _decoder = msgspec.json.Decoder(_RawLine)

    def decode(self, line: bytes | Raw, /) -> WatchEvent[ResourceTemplate]:
        raw = self._decoder.decode(line)
        return WatchEvent(raw.type, read_template(raw.object))


def read_whole(key: Key, template: ResourceTemplate) -> Object:
    """Return an object as a script gets it: all but the fields of its metadata that only API servers need."""
    meta = template.metadata
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "labels": meta.labels,
        "annotations": meta.annotations,
        "generation": meta.generation,
        "creationTimestamp": meta.creation_timestamp,
        "deletionTimestamp": meta.deletion_timestamp,
    }
    known = {name: value for name, value in metadata.items() if value}
    parts = {name: msgspec.json.decode(raw) for name, raw in template.parts.items()}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": known, **parts}


def read_parts(template: ResourceTemplate) -> Object:
    """Return all top-level fields except the status, which each member has for itself."""
    return {name: msgspec.json.decode(raw) for name, raw in template.wish().items()}
