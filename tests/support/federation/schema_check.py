"""What the API server would refuse of an object, by the schema of its definition."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.builders import Object

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_HOST = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
LARGEST_OBJECT = 3 * 2**19
"""Bytes that etcd takes in one object."""


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
        for index, each in enumerate(value):
            yield from list_violations(each, schema["items"], f"{place}[{index}]")
    else:
        yield from _list_in_scalar(value, schema, place)


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
