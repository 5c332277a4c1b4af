"""Finds every fault of a document that does not fit its type.

msgspec alone decides what is valid, and stops at the first fault. Only after a refusal are the document and
its type walked side by side, down to the smallest refused parts; each is reported with its path, its line,
the expected type and the value found.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from reberth.config.yaml_document import YamlNode, joined, quoted
from reberth.values.duration import TextValue, convert
from reberth.values.errors import FieldFault

# The annotation of a field, which may be anything.
Kind = Any

_FOUND_SHOWN = 60
_OLD_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_NAMES: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.NoneType: "nothing",
    inspect.StructType: "a mapping",
    inspect.DictType: "a mapping",
    inspect.ListType: "a list",
    inspect.VarTupleType: "a list",
    inspect.FrozenSetType: "a list",
}
_BOUNDS = {
    "gt": "above",
    "ge": "at least",
    "lt": "below",
    "le": "at most",
    "multiple_of": "divisible by",
    "min_length": "of length at least",
    "max_length": "of length at most",
    "pattern": "matching",
}


def find_faults(node: YamlNode, kind: Kind, path: str = "") -> list[FieldFault]:
    """List every fault of the node as this type of value; none if it fits."""
    try:
        convert(node.value, kind)
    except msgspec.ValidationError as refusal:
        return _faults_within(node, kind, path) or [FieldFault(_misfit(node, kind, refusal), path, node.line)]
    return []


def _faults_within(node: YamlNode, kind: Kind, path: str) -> list[FieldFault]:
    origin: Any = get_origin(kind)
    arguments = get_args(kind)
    if origin is Annotated:
        return _faults_within(node, arguments[0], path)
    if origin in (Union, UnionType):
        return _faults_of_variants(node, [one for one in arguments if one is not NoneType], path)
    if inspect.is_struct_type(kind) and isinstance(node.parts, dict):
        return list(_faults_of_fields(node, node.parts, kind, path))
    if origin is dict and isinstance(node.parts, dict):
        return _faults_of_parts(node.parts.items(), arguments[1], path)
    if origin in (list, tuple, frozenset) and isinstance(node.parts, list):
        return _faults_of_parts(enumerate(node.parts), arguments[0], path)
    return []


def _faults_of_parts(parts: Iterable[tuple[str | int, YamlNode]], kind: Kind, path: str) -> list[FieldFault]:
    return [fault for place, part in parts for fault in find_faults(part, kind, joined(path, place))]


def _faults_of_fields(
    node: YamlNode, parts: dict[str, YamlNode], struct: Kind, path: str
) -> Iterator[FieldFault]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    config = struct.__struct_config__
    for name, part in parts.items():
        if name in fields:
            yield from find_faults(part, fields[name].type, joined(path, name))
        elif config.forbid_unknown_fields and name != config.tag_field:
            yield FieldFault(f"unknown field{_suggested(_near(name, fields))}", joined(path, name), part.line)
    for name, field in fields.items():
        if field.required and name not in parts:
            yield _missing(field.type, joined(path, name), node.line)


def _faults_of_variants(node: YamlNode, kinds: list[Kind], path: str) -> list[FieldFault]:
    """Check the only variant there is, or the one of several structs that the tag names."""
    if len(kinds) == 1:
        return find_faults(node, kinds[0], path)
    if not isinstance(node.parts, dict) or not all(map(inspect.is_struct_type, kinds)):
        return []
    tag_field = kinds[0].__struct_config__.tag_field
    variants = {kind.__struct_config__.tag: kind for kind in kinds}
    tags, place = Literal[*variants], joined(path, tag_field)
    if tag_field not in node.parts:
        return [_missing(tags, place, node.line)]
    tag = node.parts[tag_field]
    return find_faults(tag, tags, place) or find_faults(node, variants[tag.value], path)


def _missing(kind: Kind, path: str, line: int) -> FieldFault:
    return FieldFault(f"is missing, expected {_expected(inspect.type_info(kind))}", path, line)


def _misfit(node: YamlNode, kind: Kind, refusal: msgspec.ValidationError) -> str:
    info = inspect.type_info(kind)
    if isinstance(node.parts, dict) and isinstance(info, inspect.StructType | inspect.DictType):
        # The parts fit and the whole does not: its own check has given the reason.
        return str(refusal).partition(" - at ")[0]
    return f"expected {_expected(info)}, found {_found(node)}{_suggested(_meant(node, info))}"


def _meant(node: YamlNode, info: inspect.Type) -> str | None:
    if isinstance(info, inspect.BoolType):
        return _OLD_BOOLEANS.get(str(node.value).lower())
    return _near(node.value, map(str, info.values)) if isinstance(info, inspect.LiteralType) else None


def _expected(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata():
            return _expected(info.type)
        case inspect.LiteralType():
            return ("one of " if len(info.values) > 1 else "") + ", ".join(map(str, info.values))
        case inspect.UnionType():
            return " or ".join(dict.fromkeys(map(_expected, info.types)))
        case inspect.CustomType() if issubclass(info.cls, TextValue):
            return info.cls.expected
        case _:
            return f"{_NAMES.get(type(info), 'another value')} {' and '.join(_bounds(info))}".rstrip()


def _bounds(info: inspect.Type) -> Iterator[str]:
    for name, words in _BOUNDS.items():
        bound = getattr(info, name, None)
        if bound is not None:
            yield f"{words} {bound}"


def _near(found: object, known: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(str(found), list(known), n=1)), None)


def _suggested(meant: str | None) -> str:
    return f", did you mean {meant}?" if meant else ""


def _found(node: YamlNode) -> str:
    if isinstance(node.parts, dict):
        return "a mapping"
    if isinstance(node.parts, list):
        return f"a list of length {len(node.parts)}"
    if node.value is None:
        return "nothing"
    text = quoted(node.value)
    return text if len(text) <= _FOUND_SHOWN else f"{text[:_FOUND_SHOWN]}…"
