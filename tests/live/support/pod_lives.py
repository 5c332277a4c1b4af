"""The life of a pod as states that can be compared: recorded from a kubelet, or played by kwok."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from localcluster.recorder import Change
from tests.support.repository import ROOT

RECORDINGS = ROOT / "tests/support/kubelet_recordings.jsonl"
"""Statuses that kubelet 1.36.3 with containerd 2.4.2 wrote, without what only that machine has."""

# What differs from one pod or one machine to another.
_POD = re.compile(r"pod=\S+\([^)]*\)")
_AMOUNTS = re.compile(r"\d+(Mi|Ki|Gi)?\b")
_EATER = re.compile(r"Container .* memory\. $")

State = dict[str, Any]


def read_recordings() -> dict[str, list[State]]:
    """The states of each recorded case."""
    lines = map(json.loads, RECORDINGS.read_text().splitlines())
    return {line["case"]: describe_states(line["states"]) for line in lines}


def describe_states(recorded: Iterable[Mapping[str, Any]]) -> list[State]:
    return [_describe(each) for each in recorded]


def describe_changes(changes: Iterable[Change]) -> list[State]:
    return [
        _describe(
            {
                "type": each.type,
                "deleting": "deletionTimestamp" in each.object["metadata"],
                "status": each.object["status"],
            }
        )
        for each in changes
    ]


def list_distinct(changes: Iterable[Change]) -> list[Change]:
    """The changes that say something new."""
    changes = list(changes)
    states = describe_changes(changes)
    return [each for number, each in enumerate(changes) if not number or states[number] != states[number - 1]]


def merge_repeats(states: Iterable[State], *, but_for: str = "") -> list[State]:
    """Leave out states that say no more than the one before, but for one field."""
    merged: list[State] = []
    for state in states:
        if not merged or merged[-1] | {but_for: None} != state | {but_for: None}:
            merged.append(state)
    return merged


def find_differences(expected: State, found: State) -> list[str]:
    """The fields that differ, with both values."""
    names = sorted(expected.keys() | found.keys())
    return [
        f"{name}: recorded {expected.get(name)!r}, played {found.get(name)!r}"
        for name in names
        if expected.get(name) != found.get(name)
    ]


def _describe(change: Mapping[str, Any]) -> State:
    status = change["status"]
    state = {
        "deleted": change["type"] == "DELETED",
        "deleting": change["deleting"],
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "message": _clean(status.get("message")),
        "observedGeneration": status.get("observedGeneration"),
        **{f"has {name}": name in status for name in ("startTime", "hostIP", "podIP")},
    }
    for each in status.get("conditions") or ():
        state[f"condition {each['type']}"] = _describe_condition(each)
    for which, title in (("containerStatuses", "container"), ("initContainerStatuses", "init container")):
        for each in status.get(which) or ():
            state |= {f"{title} {name}": value for name, value in _describe_container(each)}
    return state


def _describe_condition(condition: Mapping[str, Any]) -> tuple[Any, ...]:
    return condition["status"], condition.get("reason"), _clean(condition.get("message"))


def _describe_container(status: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    yield "restartCount", status["restartCount"]
    yield "ready", (status["ready"], status.get("started"))
    yield "has", tuple(name for name in ("containerID", "imageID") if status.get(name))
    for name in ("state", "lastState"):
        for kind, content in (status.get(name) or {}).items():
            fields = {key for key, value in content.items() if value} - {"reason", "message", "exitCode"}
            told = content.get("reason"), content.get("exitCode"), _clean(content.get("message"))
            yield name, (kind, *told, tuple(sorted(fields)))


def _clean(text: str | None) -> str | None:
    return text and _AMOUNTS.sub("N", _EATER.sub("", _POD.sub("pod=", text)))
