"""The texts that kubectl prints and people write, taken apart into documents of JSON.

JSON may hold one value, or several one after another; everything else is taken for YAML.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import yaml
from msgspec import Raw

_DEEPEST = 100
_MOST_VALUES = 10_000_000
_SPACE = re.compile(r"\s*")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


JsonDocument = bytes | Raw


class TextError(ValueError):
    """The text as a whole cannot be read."""


def list_documents(objects: bytes | Mapping[str, Any] | Iterable[Any]) -> Iterator[JsonDocument]:
    """Give each document as JSON: of texts, or of values that somebody has decoded from one."""
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
    """One value, which is the rule, goes on as it is; of an array each element."""
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
            raise TextError(f"stands for more than {_MOST_VALUES} values")
        if value is not None:
            yield from map(_write, value if isinstance(value, list) else [value])


def _refuse_depth(text: bytes) -> None:
    """The C loader does not survive what is nested too deeply; its parser does."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RecursionError


def _count(value: object, known: dict[int, int]) -> int:
    """Count what a value holds, and again where an alias stands for it: that is how much would be written."""
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        known[id(value)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(value)]


def _write(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except TypeError as error:
        raise TextError(f"holds what JSON cannot say: {error}") from error
