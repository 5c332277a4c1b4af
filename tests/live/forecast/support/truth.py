"""The scheduler's decision about a pod with the objects that it could see: a file that can be replayed."""

import json
from pathlib import Path
from typing import Any

import msgspec

Object = dict[str, Any]


class Truth(msgspec.Struct, frozen=True):
    """The answer; no scores where at most one node was left.

    Of a probe a twin was refused everywhere, so that its refusals are known even if it has a place; they are
    not where it could have no twin.
    """

    feasible: list[str]
    plugins: dict[str, dict[str, int]]
    extenders: dict[str, dict[str, int]]
    total: dict[str, int]
    bound: str | None
    message: str | None
    refusals: dict[str, int] | None
    rejected: str | None


class Recorded(msgspec.Struct, frozen=True):
    """A question and its true answer, which was given between two instants."""

    objects: Object
    pod: str
    kubernetes: str
    configuration: str | None
    truth: Truth
    settings: str | None = None
    """Those of Reberth's extender, where the scheduler asks it."""
    between: tuple[float, float] = (0.0, 0.0)


def write(folder: Path, name: str, recorded: Recorded) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_bytes(msgspec.json.encode(recorded))
    return path


def read(path: Path) -> Recorded:
    return msgspec.json.decode(path.read_bytes(), type=Recorded)


def objects_of(recorded: Recorded) -> bytes:
    return json.dumps(recorded.objects).encode()
