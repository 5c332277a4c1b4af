"""The federation's CRDs and documented examples, read from the manifests and the docs."""

import base64
import copy
import json
from typing import Any

import yaml

from federation import api
from reberth.records import Record
from tests.support.builders import Object
from tests.support.repository import ROOT

FOLDER = ROOT / "manifests" / "crds" / "federation"
CRDS: dict[str, Object] = {
    crd["spec"]["names"]["kind"]: crd
    for crd in (yaml.safe_load(file.read_text()) for file in sorted(FOLDER.glob("*.yaml")))
}
DOCUMENT = (ROOT / "docs" / "federation-api.md").read_text()
EXAMPLES: list[Object] = [
    yaml.safe_load(part.partition("\n```")[0]) for part in DOCUMENT.split("\n```yaml\n")[1:]
]

RECORDS: dict[str, type[Record]] = {
    "Cluster": api.Cluster,
    "PropagationPolicy": api.PropagationPolicy,
    "ClusterPropagationPolicy": api.PropagationPolicy,
    "ResourceBinding": api.ResourceBinding,
    "ClusterResourceBinding": api.ResourceBinding,
    "Work": api.Work,
    "WorkloadRebalancer": api.WorkloadRebalancer,
    "ResourceInterpreterCustomization": api.ResourceInterpreterCustomization,
}


def name_of(example: Object) -> str:
    return f"{example['kind']}-{example['metadata']['name']}"


def example(kind: str) -> Object:
    """The first documented object of the kind, to be changed at will."""
    return copy.deepcopy(next(one for one in EXAMPLES if one["kind"] == kind))


def failing_over(purge_mode: str) -> Object:
    """A documented policy that has its workloads leave where they fail, without a time for that."""
    policy = example("PropagationPolicy")
    policy["spec"]["failover"] = {"application": {"decisionConditions": {}, "purgeMode": purge_mode}}
    return policy


def schema_of(kind: str) -> Object:
    (version,) = CRDS[kind]["spec"]["versions"]
    schema: Object = version["schema"]["openAPIV3Schema"]
    return schema


def apply_json_patch(wanted: Object, patch: bytes | str) -> Object:
    """The object after a JSON Patch, of which only `add` and `remove` are known; text is in base64."""
    made = copy.deepcopy(wanted)
    for change in json.loads(base64.b64decode(patch) if isinstance(patch, str) else patch):
        *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in change["path"][1:].split("/")]
        holder: Any = made
        for step in steps:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        if change["op"] == "remove":
            del holder[last]
        else:
            assert change["op"] == "add"
            assert isinstance(holder, dict)
            holder[last] = change["value"]
    return made


def values(value: Any, place: str = "") -> dict[str, Any]:
    """What stands where in an object: `.spec.clusters.0.name`."""
    if not isinstance(value, dict | list):
        return {place: value}
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    return {at: leaf for step, part in parts for at, leaf in values(part, f"{place}.{step}").items()}
