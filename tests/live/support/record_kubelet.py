"""Record the lives of pods under a kubelet.

python -m tests.live.support.record_kubelet VERSION FILE [CASE ...]

Without cases all are recorded; with some, the others stay in the file as they are.
"""

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from localcluster.recorder import Change
from localcluster.state_dir import running
from tests.live.support.kubelet_cases import CASES, record_cases
from tests.live.support.kubelet_versions import read_lines
from tests.live.support.real_pods import NOTICE_SOON, QUICK

# What is recorded with its value; of all else only the name of the field is.
_STATUS = ("observedGeneration", "phase", "conditions", "message", "reason", "hostIP", "podIP", "startTime")
_CONTAINER = ("name", "state", "lastState", "ready", "started", "restartCount", "imageID", "containerID")
_CONTAINERS = ("initContainerStatuses", "containerStatuses")
_ID = "containerID"


def describe_case(name: str, version: str, changes: list[Change]) -> dict[str, Any]:
    """One line of a recording."""
    statuses = [each.object["status"] for each in changes]
    ids = {each: f"containerd://{number}" for number, each in enumerate(_find_ids(statuses), 1)}
    states = [_describe_state(each, changes[0].seconds, ids) for each in changes]
    return {
        "case": name,
        "kubernetes": f"v{version}",
        "cgroups": "v1",
        "fields": sorted({path for each in statuses for path in list_fields(each)}),
        "states": states,
    }


def _describe_state(change: Change, began: float, ids: Mapping[str, str]) -> dict[str, Any]:
    found = change.object["status"]
    status = {key: found[key] for key in _STATUS if key in found}
    if "conditions" in found:
        status["conditions"] = [_without(each, "lastProbeTime") for each in found["conditions"]]  # it is null
    for which in _CONTAINERS:
        if which in found:
            status[which] = [_describe_container(each, ids) for each in found[which]]
    return {
        "seconds": round(change.seconds - began, 3),
        "type": change.type,
        "deleting": "deletionTimestamp" in change.object["metadata"],
        "status": status,
    }


def _without(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != name}


def _describe_container(status: Mapping[str, Any], ids: Mapping[str, str]) -> Any:
    kept = {key: status[key] for key in _CONTAINER if key in status}
    if kept.get("imageID"):
        kept["imageID"] = "sha256:1"
    return _replace_ids(kept, ids)


def _replace_ids(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replace_ids(each, ids) for key, each in value.items()}
    return ids.get(value, value) if isinstance(value, str) else value


def _find_ids(statuses: Iterable[Any]) -> list[str]:
    """The IDs of containers in the order in which they appear."""
    return list(dict.fromkeys(found for status in statuses for found in _walk_ids(status)))


def _walk_ids(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from [each] if key == _ID and each else _walk_ids(each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk_ids(each)


def list_fields(value: Any, path: str = "") -> Iterator[str]:
    """The names of all fields; those of one list stand for all its items."""
    if isinstance(value, list):
        for each in value:
            yield from list_fields(each, f"{path}[]")
    elif isinstance(value, dict) and value:
        for key, each in value.items():
            yield from list_fields(each, f"{path}.{key}" if path else key)
    else:
        yield path


async def record(version: str, file: Path, names: Iterable[str]) -> None:
    async with running(kubernetes=version, real=2, real_shape=QUICK, flags=NOTICE_SOON) as cluster:
        cases = await record_cases(cluster, names)
    known = read_lines(file) if file.exists() else {}
    new = {name: describe_case(name, version, changes) for name, changes in cases.items()}
    lines = [line for _, line in sorted({**known, **new}.items())]
    file.write_text("".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in lines))


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], Path(sys.argv[2]), sys.argv[3:] or CASES))
