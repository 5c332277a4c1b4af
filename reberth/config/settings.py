"""Settings: a YAML file becomes one frozen Struct, or one error that lists everything wrong with it.

A daemon declares its settings as Structs that derive from `Section`; the name of the outermost one is the
`kind` that the file must state. Undeclared fields are refused, never ignored.
"""

from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from reberth.config.type_errors import find_faults
from reberth.config.yaml_document import YamlNode, read_document
from reberth.records import REBERTH_API_VERSION
from reberth.values.duration import convert
from reberth.values.errors import FieldFault, SettingsError

# The size limit of a ConfigMap.
_MOST_BYTES = 2**20


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping of settings. Its `__post_init__` checks constraints between fields by a ValueError."""


Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]

S = TypeVar("S", bound=msgspec.Struct)


def load(path: Path, kind: type[S], *, api_version: str = REBERTH_API_VERSION) -> S:
    """Read the settings in a file."""
    return parse(_content(path), kind, source=str(path), api_version=api_version)


def parse(
    content: bytes, kind: type[S], *, source: str = "settings", api_version: str = REBERTH_API_VERSION
) -> S:
    """Read settings from the content of a file; errors name its source."""
    document = read_document(content)
    if document.root is None:
        raise SettingsError(source, document.faults)
    body = _without_header(document.root)
    faults = [
        *document.faults,
        *(_faults_of_header(document.root, kind, api_version) or find_faults(body, kind)),
    ]
    if faults:
        raise SettingsError(source, sorted(faults, key=attrgetter("line")))
    settings: S = convert(body.value, kind)
    return settings


def kind_of(kind: type[msgspec.Struct]) -> str:
    """Give the `kind` that a file of these settings states."""
    # A class that reads only a part of another class's file names that file's kind as FILE_KIND.
    return str(getattr(kind, "FILE_KIND", kind.__name__))


def yaml_name(kind: type[msgspec.Struct], field: str) -> str:
    """Give the name that a field has in the file."""
    return kind.__struct_encode_fields__[kind.__struct_fields__.index(field)]


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SettingsError(str(path), [FieldFault(f"cannot be read: {error.strerror}")]) from None
    if len(content) > _MOST_BYTES:
        raise SettingsError(str(path), [FieldFault(f"is larger than {_MOST_BYTES} bytes")])
    return content


def _faults_of_header(root: YamlNode, kind: type[S], api_version: str) -> list[FieldFault]:
    """Check the kind that the file states; if it is wrong, nothing else in the file is checked."""
    header = [("apiVersion", Literal[api_version]), ("kind", Literal[kind_of(kind)])]
    return find_faults(root, msgspec.defstruct("Header", header))


def _without_header(root: YamlNode) -> YamlNode:
    if not isinstance(root.parts, dict):
        return root
    parts = {name: part for name, part in root.parts.items() if name not in ("apiVersion", "kind")}
    return msgspec.structs.replace(
        root, value={name: part.value for name, part in parts.items()}, parts=parts
    )
