"""A snapshot from the output of `kubectl get nodes,pods,... -A -o json`, or from handwritten YAML documents.

A text may hold one JSON value, or several one after another; everything else is read as YAML. Lists are
expanded, and kinds that Reberth does not read are skipped. An unusable object is reported, and the others are
still used. Fields that are rarely written by hand may be missing: the uid, the version, the namespace
"default". If two objects have the same name, the later one counts.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import Raw
from msgspec.structs import replace

from reberth.cluster.cache import ADDED, Cache, Listing
from reberth.cluster.custom_kinds import make_custom_resource
from reberth.cluster.kinds import ALL_RESOURCES, Kind, Resource
from reberth.cluster.owner_templates import keep_custom
from reberth.cluster.pods.identity import group_of
from reberth.cluster.pods.requests import Version
from reberth.cluster.snapshot import Snapshot, take
from reberth.cluster.tables import meta_of
from reberth.records import CustomOwner, ObjectMeta, Record
from reberth.values.object_error import ObjectError

T = TypeVar("T")
Object = TypeVar("Object", bound=Record)

_DEEPEST = 100
_MOST_VALUES = 10_000_000
_SPACE = re.compile(r"\s*")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_RESOURCES = {(each.kind.group, each.kind.name): each for each in ALL_RESOURCES}
_READ_FROM_FILES = {("batch", "Job")}
"""No pod of a Job is ever moved: what one would ask for again is known to a forecast from a file alone."""
_LIST = "List"
_ONLY_VERSION = "1"


JsonDocument = bytes | Raw


class TextError(ValueError):
    """The text as a whole cannot be read."""


class LoadedObjects(NamedTuple):
    """The objects that were read, and the faults of those that cannot be used."""

    snapshot: Snapshot
    faults: tuple[ObjectError, ...]
    is_useless: bool
    """No object and no list was read, or none that is usable."""


def load_objects(
    objects: bytes | Mapping[str, Any] | Iterable[Any],
    *,
    now: float,
    version: Version,
    annotations: frozenset[str] = frozenset(),
) -> LoadedObjects:
    """Read a text, or values decoded from one; pods keep these annotations, too.

    Raises TextError for a text that is neither JSON nor YAML.
    """
    reader = _Reader(Cache(version=version, annotations=annotations))
    for document in list_documents(objects):
        reader.read(document, _Head())
    return LoadedObjects(take(reader.finish(), now=now), tuple(reader.faults), reader.is_useless)


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that distinguish a list from an object, and one kind from another."""

    kind: str | None = None
    api_version: str | None = None
    items: Raw = Raw()


class _Reader:
    """Collects the objects, and the faults of unusable ones."""

    def __init__(self, cache: Cache) -> None:
        self.faults: list[ObjectError] = []
        self._cache = cache
        self._listings: dict[Kind[Any, Any], Listing[Any, Any]] = {}
        self._holders: dict[tuple[str, str], tuple[str, str]] = {}
        self.is_useless = True

    def read(self, document: JsonDocument, above: _Head) -> None:
        """Read an object, or all objects of a list; items of a list may inherit its kind."""
        try:
            self._read(document, above)
        except ObjectError as fault:
            self.faults.append(fault)

    def finish(self) -> Cache:
        for listing in self._listings.values():
            listing.finish(_ONLY_VERSION)
        return self._cache

    def _read(self, document: JsonDocument, above: _Head) -> None:
        head = _decode(document, _Head, above.kind)
        kind, api_version = head.kind or above.kind or "", head.api_version or above.api_version or ""
        resource = _RESOURCES.get((group_of(api_version), kind))
        if kind.endswith(_LIST) and bytes(head.items):
            for item in _decode(head.items, list[Raw], kind, within="items"):
                self.read(item, _Head(kind.removesuffix(_LIST), api_version))
        elif not kind:
            raise ObjectError("object", _read_name(document), field="kind", reason="is missing")
        elif resource is not None:
            self._add(resource, document)
        if _may_be_custom(api_version, kind):
            self._add_custom(api_version, kind, document)
        self.is_useless = False

    def _add_custom(self, api_version: str, kind: str, document: JsonDocument) -> None:
        """Add a controller of another project for the template of its pods, and skip everything else."""
        try:
            owner = msgspec.json.decode(document, type=CustomOwner)
            if bytes(keep_custom(owner).spec.template):
                group = group_of(api_version)
                self._add(make_custom_resource(group, kind, plural=f"{group}/{kind}"), document)
        except (UnicodeDecodeError, msgspec.DecodeError):
            return

    def _add(self, resource: Resource[Any], document: JsonDocument) -> None:
        kind = resource.kind
        record = _complete(_decode(document, kind.record, kind.name), resource)
        meta = meta_of(record)
        holder = self._holders.setdefault((resource.name, meta.uid), (meta.namespace, meta.name))
        if holder != (meta.namespace, meta.name):
            raise ObjectError(
                kind.name, meta, field="metadata.uid", reason=f"is also the uid of {'/'.join(holder)}"
            )
        if kind not in self._listings:
            self._listings[kind] = self._cache.relist(kind)
        self._listings[kind].apply(ADDED, record)


def _may_be_custom(api_version: str, kind: str) -> bool:
    """Tell whether it may be of a kind with a template of pods that is read from files only."""
    named = (group_of(api_version), kind)
    return named in _READ_FROM_FILES or (named not in _RESOURCES and "." in named[0])


def _decode(document: JsonDocument, kind: type[T], name: str | None, *, within: str = "") -> T:
    try:
        return msgspec.json.decode(document, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason, _, place = str(error).partition(" - at `$")
        field = f"{within}{place.rstrip('`')}".lstrip(".") or "all of it"
        raise ObjectError(name or "object", _read_name(document), field=field, reason=reason) from error


def _complete(record: Object, resource: Resource[Object]) -> Object:
    """Add the fields that the API server would set."""
    meta = meta_of(record)
    if not meta.name:
        raise ObjectError(resource.kind.name, meta, field="metadata.name", reason="is missing")
    namespace = (meta.namespace or "default") if resource.namespaced else ""
    uid = meta.uid or f"{resource.name}/{namespace}/{meta.name}"
    version = meta.resource_version if _is_number(meta.resource_version) else _ONLY_VERSION
    return replace(record, metadata=replace(meta, namespace=namespace, uid=uid, resource_version=version))


def _read_name(document: JsonDocument) -> ObjectMeta:
    """Name an object even if nothing else in it is usable."""
    try:
        meta = msgspec.json.decode(document)["metadata"]
        return ObjectMeta(str(meta["name"]), str(meta.get("namespace", "")))
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError, AttributeError):
        return ObjectMeta()


def _is_number(version: str) -> bool:
    return version.isdecimal() and version.isascii()


def list_documents(objects: bytes | Mapping[str, Any] | Iterable[Any]) -> Iterator[JsonDocument]:
    """Give each document as JSON: from a text, or from values that the caller has decoded."""
    try:
        for each in [objects] if isinstance(objects, bytes | Mapping) else objects:
            yield from _read_text(each) if isinstance(each, bytes) else [_write(each)]
    except RecursionError as error:
        raise TextError("is nested too deeply") from error


def _read_text(text: bytes) -> Iterator[JsonDocument]:
    try:
        yield from _read_json(text) if text.lstrip().startswith((b"{", b"[")) else _read_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        raise TextError(" ".join(str(error).split())) from error


def _read_json(text: bytes) -> Iterator[JsonDocument]:
    """Yield a single value, the usual case, as it is; of an array each element."""
    try:
        whole = msgspec.json.decode(text, type=Raw)
    except msgspec.DecodeError:
        yield from map(_write, _read_values(text.decode()))
    else:
        yield from msgspec.json.decode(whole, type=list[Raw]) if text.lstrip().startswith(b"[") else [whole]


def _read_values(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(), _skip_space(text, 0)
    while place < len(text):
        value, end = decoder.raw_decode(text, place)
        yield value
        place = _skip_space(text, end)


def _skip_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place


def _read_yaml(text: bytes) -> Iterator[bytes]:
    _refuse_depth(text)
    for value in yaml.load_all(text, _Loader):
        if _count(value, {}) > _MOST_VALUES:
            raise TextError(f"expands to more than {_MOST_VALUES} values")
        if value is not None:
            yield from map(_write, value if isinstance(value, list) else [value])


def _refuse_depth(text: bytes) -> None:
    """The C loader crashes on deeply nested documents; its parser does not."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RecursionError


def _count(value: object, known: dict[int, int]) -> int:
    """Count the values in a document, those behind an alias once per use: as many would be written."""
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        known[id(value)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(value)]


def _write(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except TypeError as error:
        raise TextError(f"cannot be written as JSON: {error}") from error
