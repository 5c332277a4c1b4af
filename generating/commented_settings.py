"""Writes settings as YAML: every field with its default, below the docstring of the field as a comment."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import yaml

from reberth.memory.rates import Rate
from reberth.values.duration import Duration, Percentage
from reberth.values.pod_limit import PodLimit

_WIDTH = 104
_UNITS = ((3600, "h"), (60, "m"), (1, "s"))


class Undocumented(Exception):
    """A settings field without a docstring."""


def write_settings(settings: msgspec.Struct, examples: Mapping[str, str]) -> str:
    """Write all fields, those of nested sections indented, each example in the comment of its field.

    The key of an example is the field's path, such as `limits.quietHours`.
    """
    return "".join(f"{line}\n" for line in _write(settings, "", examples))


def read_comments(section: type[msgspec.Struct]) -> dict[str, str]:
    """Read the docstring of each field from the source of a section's class and of its base classes."""
    found: dict[str, str] = {}
    for part in reversed(section.__mro__):
        if issubclass(part, msgspec.Struct) and "__annotations__" in vars(part):
            found.update(_read_class(part))
    return found


def _read_class(part: type) -> Iterator[tuple[str, str]]:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
    body = node.body if isinstance(node, ast.ClassDef) else []
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, " ".join(said.split())


def _write(section: msgspec.Struct, path: str, examples: Mapping[str, str]) -> Iterator[str]:
    comments = read_comments(type(section))
    for field in msgspec.structs.fields(section):
        place = f"{path}{field.encode_name}"
        if field.name not in comments:
            raise Undocumented(f"{type(section).__name__}.{field.name}")
        yield from _comment(comments[field.name])
        if place in examples:
            yield f"# For example: {examples[place]}"
        value = getattr(section, field.name)
        if isinstance(value, msgspec.Struct):
            yield f"{field.encode_name}:"
            yield from (f"  {line}" for line in _write(value, f"{place}.", examples))
        else:
            yield f"{field.encode_name}: {write_value(value)}"


def write_value(value: Any) -> str:  # noqa: ANN401 - any type that a field may have
    """Write a value on one line: durations as 10m, shares as 5%."""
    if isinstance(value, Rate):  # which is a tuple, too
        return json.dumps(f"{value.text} per {_write_duration(value.period)}")
    if isinstance(value, PodLimit):  # likewise
        return value.text
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(write_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {write_value(one)}' for key, one in value.items())}}}"
    return _write_one(value)


def _write_one(value: object) -> str:
    if isinstance(value, Duration):
        return _write_duration(value)
    if isinstance(value, Percentage):
        return f"{100 * value:g}%"
    is_plain = isinstance(value, str) and yaml.safe_load(value) == value
    return str(value) if is_plain else json.dumps(value)


def _write_duration(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:g}{unit}"
    return f"{1000 * seconds:g}ms"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]
