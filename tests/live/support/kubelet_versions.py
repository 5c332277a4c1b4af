"""What two versions of the kubelet write differently, from recordings of the same cases.

When a state is written, and whether two changes share one write, depends on the load. So what is compared is
not the sequence: it is every value that a field of a pod ever has, and which fields there are.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.live.support.pod_lives import describe_states

Line = Mapping[str, Any]
"""One case of a recording."""


class Difference(NamedTuple):
    """What one version alone writes; without a value, it is the field that the other one does not have."""

    version: str
    field: str
    value: str


def read_lines(file: Path) -> dict[str, Line]:
    lines = map(json.loads, file.read_text().splitlines())
    return {line["case"]: line for line in lines}


def compare(one: Mapping[str, Line], other: Mapping[str, Line]) -> dict[Difference, list[str]]:
    """Each difference with the cases that show it."""
    found: dict[Difference, list[str]] = {}
    for case in sorted(one.keys() & other.keys()):
        pairs = ((one[case], other[case]), (other[case], one[case]))
        for difference in (each for pair in pairs for each in list_own(*pair)):
            found.setdefault(difference, []).append(case)
    return found


def list_own(line: Line, other: Line) -> Iterator[Difference]:
    """What the first has and the second has not."""
    for field, value in sorted(_list_values(line) - _list_values(other)):
        yield Difference(line["kubernetes"], field, value)


def _list_values(line: Line) -> set[tuple[str, str]]:
    values = {
        (field, _say(value)) for state in describe_states(line["states"]) for field, value in state.items()
    }
    return values | {(field, "") for field in line["fields"]}


def _say(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_say(each) for each in value if each not in {None, ()})
    return str(value)
