"""What the API server would refuse of an object, by the schema of its definition."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.support.builders import Object
from tests.support.federation.crds import CRDS, schema_of

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_HOST = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SCHEMAS: Mapping[str, Object] = {kind: schema_of(kind) for kind in CRDS}
LARGEST_OBJECT = 3 * 2**19
"""Bytes that etcd takes in one object."""


class SchemaCheck:
    """Checks what is written; it remembers what it has found, since controllers try the same write again."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, bytes], tuple[str, ...]] = {}

    def find_new_violation(self, kind: str, whole: Object, before: Object) -> str:
        """Name a field that is not allowed and was not so before; "" if there is none.

        Only the parts that have changed can have one: objects are long, and most writes change the status.
        """
        schema = _SCHEMAS[kind]
        required = (name for name in schema.get("required", ()) if name in before or not before)
        if missing := next((name for name in required if name not in whole), ""):
            return f".{missing}: is missing"
        changed = (name for name in schema["properties"] if whole.get(name) != before.get(name))
        new = (each for name in changed for each in self._list_new(kind, name, whole, before))
        return next(new, "")

    def _list_new(self, kind: str, name: str, whole: Object, before: Object) -> Iterator[str]:
        if found := self._list(kind, name, whole.get(name)):
            had = set(self._list(kind, name, before.get(name)))
            yield from (each for each in found if each not in had)

    def _list(self, kind: str, name: str, part: Any) -> tuple[str, ...]:
        key = kind, name, msgspec.json.encode(part)
        if key not in self._found:
            schema = _SCHEMAS[kind]["properties"][name]
            self._found[key] = tuple(list_violations(part, schema, f".{name}"))
        return self._found[key]


def list_violations(value: Any, schema: Object, place: str = "") -> Iterator[str]:
    """Name each field that the schema does not allow; rules in CEL and formats are not looked at."""
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return
    kind = schema.get("type", "")
    if kind and (not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        yield f"{place}: {type(value).__name__} is no {kind}"
    elif kind == "object":
        yield from _list_in_object(value, schema, place)
    elif kind == "array":
        yield from _exceed(place, len(value), schema, "Items")
        yield from _list_in_array(value, schema["items"], place)
    else:
        yield from _list_in_scalar(value, schema, place)


def _list_in_array(values: list[Any], schema: Object, place: str) -> Iterator[str]:
    """Look at each text once, and at equal objects that follow each other: long lists repeat them."""
    known: dict[str, list[str]] = {}
    last, found = None, list[str]()
    for index, each in enumerate(values):
        if type(each) is str:
            if each not in known:
                known[each] = list(list_violations(each, schema, ""))
            found = known[each]
        elif each != last:
            found = list(list_violations(each, schema, ""))
        last = each
        yield from (f"{place}[{index}]{why}" for why in found)


def _list_in_object(value: Object, schema: Object, place: str) -> Iterator[str]:
    yield from _exceed(place, len(value), schema, "Properties")
    yield from (f"{place}.{name}: is missing" for name in schema.get("required", ()) if name not in value)
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, each in value.items():
        inner = known.get(name, others)
        if isinstance(inner, dict):
            yield from list_violations(each, inner, f"{place}.{name}")


def _list_in_scalar(value: Any, schema: Object, place: str) -> Iterator[str]:
    if isinstance(value, str):
        yield from _exceed(place, len(value), schema, "Length")
        if (pattern := schema.get("pattern")) and not re.search(pattern, value):
            yield f"{place}: {value!r:.100} does not match {pattern}"
    elif not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{place}: {value} is out of range"
    if value not in schema.get("enum", (value,)):
        yield f"{place}: {value!r:.100} is none of {schema['enum']}"


def _exceed(place: str, count: int, schema: Object, what: str) -> Iterator[str]:
    if not schema.get(f"min{what}", 0) <= count <= schema.get(f"max{what}", count):
        yield f"{place}: {count} {what.lower()}"


def list_odd_counts(status: Any, place: str) -> Iterator[str]:
    """Name what the API server does not take in the status of its own kinds: counts and host names."""
    for name, each in status.items() if isinstance(status, dict) else enumerate(status or ()):
        if isinstance(each, dict | list):
            yield from list_odd_counts(each, f"{place}.{name}")
        elif name == "hostname" and not _HOST.fullmatch(each):
            yield f"{place}.{name}: {each!r:.100} is no host name"
        elif name != "observedGeneration" and isinstance(each, int | float) and abs(each) >= 2**31:
            yield f"{place}.{name}: {each} is no 32-bit number"
