"""One YAML document, read to plain values that keep their line numbers.

The reader only knows the core types of YAML 1.2: `off`, `no`, `12:30` and `2026-01-01` are text, `0o17` is a
number, and infinite numbers and NaN stay text. Duplicate keys, other tags and a second document are faults.
Aliases are allowed, up to a number of values that only a malicious file exceeds.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import yaml

from reberth.values.errors import FieldFault
from reberth.values.text_limits import LONGEST_VALUE, cut

_MOST_VALUES = 100_000
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")


class YamlNode(msgspec.Struct, frozen=True):
    """A plain value, its line (for a field, the line of its key), and its parts, each a node."""

    value: Any
    line: int
    parts: dict[str, "YamlNode"] | list["YamlNode"] | None = None
    size: int = 1


class YamlDocument(msgspec.Struct, frozen=True):
    """The root of a file, and faults that do not depend on its type; without a root it is unreadable."""

    root: YamlNode | None
    faults: list[FieldFault]


def read_document(content: bytes) -> YamlDocument:
    """Read one document of UTF-8 text."""
    try:
        root = _compose(content.decode())
        return _Builder().document(root) if root else _unreadable("is empty")
    except UnicodeDecodeError as error:
        return _unreadable("is not UTF-8 text", content.count(b"\n", 0, error.start) + 1)
    except yaml.MarkedYAMLError as error:
        return _unreadable(_complaint(error), error.problem_mark.line + 1 if error.problem_mark else 0)
    except yaml.reader.ReaderError as error:
        return _unreadable(f"holds the control character U+{error.character:04X}")
    except RecursionError:
        return _unreadable("is nested too deeply")


def joined(path: str, key: str | int) -> str:
    """Give the path of a part: `policies[2].threshold`, `labels["a.b/c"]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_NAME.fullmatch(key):
        return f"{path}[{quoted(key)}]"
    return f"{path}.{key}" if path else key


def quoted(value: object) -> str:
    """Give a value as JSON, so that any value stays on one line, and short."""
    return cut(msgspec.json.encode(value).decode())


def _unreadable(message: str, line: int = 0) -> YamlDocument:
    return YamlDocument(None, [FieldFault(message, line=line)])


def _complaint(error: yaml.MarkedYAMLError) -> str:
    if "'\\t'" in (error.problem or ""):
        return "is indented with a tab; YAML requires spaces"
    return ", ".join(part for part in (error.context, error.problem) if part)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own way


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), [*first, ""])


_resolve("null", r"~|null|Null|NULL|", "~nN")
_resolve("bool", r"true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789")


def _compose(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _whole_number(text: str) -> int:
    if len(text) > LONGEST_VALUE:
        raise ValueError(text)
    return int(text, 0 if text[:2] in ("0o", "0x") else 10)


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_SCALARS: dict[str, Callable[[str], object]] = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: {"true": True, "false": False}[text.lower()],
    "tag:yaml.org,2002:int": _whole_number,
    "tag:yaml.org,2002:float": _finite_number,
    "tag:yaml.org,2002:str": str,
}
_TAGS = _SCALARS.keys() | {"tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"}


class _Builder:
    """Builds every node once, so that an alias costs nothing and its size is still counted."""

    def __init__(self) -> None:
        self._faults: list[FieldFault] = []
        self._built: dict[yaml.Node, YamlNode] = {}

    def document(self, root: yaml.Node) -> YamlDocument:
        built = self._node(root, "")
        if built.size > _MOST_VALUES:
            return _unreadable(f"holds more than {_MOST_VALUES} values")
        return YamlDocument(built, self._faults)

    def _node(self, node: yaml.Node, path: str) -> YamlNode:
        if node not in self._built:
            self._built[node] = self._build(node, path)
        return self._built[node]

    def _build(self, node: yaml.Node, path: str) -> YamlNode:
        line = _line(node)
        if node.tag not in _TAGS:
            self._faults.append(FieldFault(f"has the unknown tag {quoted(node.tag)}", path, line))
        if isinstance(node, yaml.MappingNode):
            entries = self._entries(node, path)
            return YamlNode(
                {key: part.value for key, part in entries.items()}, line, entries, _size(entries.values())
            )
        if isinstance(node, yaml.SequenceNode):
            parts = [self._node(part, joined(path, place)) for place, part in enumerate(node.value)]
            return YamlNode([part.value for part in parts], line, parts, _size(parts))
        return YamlNode(_scalar(node, self._text(node, path)), line)

    def _entries(self, node: yaml.MappingNode, path: str) -> dict[str, YamlNode]:
        entries: dict[str, YamlNode] = {}
        for key, part in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._faults.append(FieldFault("has a key that is not a string", path, _line(key)))
                continue
            name = self._text(key, path)
            place = joined(path, name)
            if name in entries:
                first = entries[name].line
                self._faults.append(FieldFault(f"is a duplicate, first in line {first}", place, _line(key)))
            entries[name] = msgspec.structs.replace(self._node(part, place), line=_line(key))
        return entries

    def _text(self, node: yaml.Node, path: str) -> str:
        """Give the text of a scalar; half of a surrogate pair, as an escape may write it, is a fault."""
        text = str(node.value)
        if not text.isascii() and text != (whole := text.encode(errors="replace").decode()):
            self._faults.append(FieldFault(f"is not text: {quoted(whole)}", path, _line(node)))
            return whole
        return text


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _size(parts: Iterable[YamlNode]) -> int:
    return 1 + sum(part.size for part in parts)


def _scalar(node: yaml.Node, text: str) -> object:
    try:
        return _SCALARS[node.tag](text)
    except (ValueError, KeyError):
        return text
