"""Bring up the cases of tests/cases in one real cluster, each with nodes and namespaces of its own.

A node label and a node selector keep the pods of a case on its nodes. Pods are created on their nodes first
and then adopted by their ReplicaSet, so they can run where kube-scheduler would not have placed them.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml

from localcluster.client import Client, all_of
from localcluster.nodes import node
from tests.live.support.controllers import controllers_see
from tests.support.builders import Object
from tests.support.repository import ROOT

CASES = ROOT / "tests" / "cases"
LABEL = "example.com/case"
_PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
}


class Case(NamedTuple):
    """What a case consists of, under names that no other case has."""

    name: str
    nodes: list[Object]
    pods: list[Object]
    replica_sets: list[Object]
    budgets: list[Object]

    @property
    def namespaces(self) -> set[str]:
        return {pod["metadata"]["namespace"] for pod in self.pods}


def read_cases() -> dict[str, Case]:
    """All cases by the names of their folders."""
    return {folder.name: _read(folder) for folder in sorted(CASES.iterdir())}


def are_open(found: Object) -> bool:
    """Tell whether every node has lost the taints that it was born with."""
    taints = [taint["key"] for node in found["items"] for taint in node["spec"].get("taints", ())]
    return not any(key.startswith("node.kubernetes.io/") for key in taints)


def within(case: str, name: str) -> str:
    """The name that a node or namespace of a case has in the cluster."""
    return f"{case.partition('-')[0]}-{case.rpartition('-')[2]}-{name}"


def path_of(kind: str, namespace: str) -> str:
    return _PATHS[kind].format(namespace)


async def bring_up(client: Client, cases: list[Case]) -> None:
    """Create everything, and wait until all pods are Ready and all budgets are observed."""
    namespaces = sorted(name for case in cases for name in case.namespaces)
    await all_of(client.create("/api/v1/nodes", each) for case in cases for each in case.nodes)
    await all_of(client.create("/api/v1/namespaces", {"metadata": {"name": name}}) for name in namespaces)
    for name in namespaces:
        await client.wait(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    await all_of(_create(client, each) for case in cases for each in case.pods)
    counts = Counter(pod["metadata"]["namespace"] for case in cases for pod in case.pods)
    await all_of(controllers_see(client, namespace, count) for namespace, count in counts.items())
    for part in ("replica_sets", "budgets"):
        await all_of(_create(client, each) for case in cases for each in getattr(case, part))
    await client.wait("/api/v1/nodes", are_open)
    for case in cases:
        for each in case.replica_sets:
            await client.wait(_path(each), _is_ready)
        for each in case.budgets:
            await client.wait(_path(each), _is_observed)


def _read(folder: Path) -> Case:
    case = folder.name
    found = list(yaml.safe_load_all((folder / "objects.yaml").read_text()))
    pods = [_make_pod(case, each) for each in _only("Pod", found)]
    return Case(
        case,
        [_make_node(case, each) for each in _only("Node", found)],
        pods,
        [_make_replica_set(case, each, pods) for each in _only("ReplicaSet", found)],
        [_make_budget(case, each) for each in _only("PodDisruptionBudget", found)],
    )


def _only(kind: str, objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def _make_node(case: str, each: Object) -> Object:
    name, room = within(case, each["metadata"]["name"]), each["status"]["allocatable"]
    labels = {**each["metadata"]["labels"], LABEL: case, "kubernetes.io/hostname": name}
    taints = each["spec"].get("taints", ())
    return node(name, cpu=room["cpu"], memory=room["memory"], labels=labels, taints=taints)


def _make_pod(case: str, each: Object) -> Object:
    """Its age and its health are what the cluster makes of them, and nobody has begun to delete it."""
    meta, spec = each["metadata"], each["spec"]
    for term in _list_required_terms(spec):
        term["namespaces"] = [within(case, name) for name in term["namespaces"]]
    return {
        "kind": "Pod",
        "metadata": {
            "name": meta["name"],
            "namespace": within(case, meta["namespace"]),
            "labels": meta["labels"],
            "annotations": meta.get("annotations", {}),
        },
        "spec": {
            **spec,
            "nodeName": within(case, spec["nodeName"]),
            "nodeSelector": {LABEL: case},
            "containers": [{"image": "img", **one} for one in spec["containers"]],
        },
    }


def _list_required_terms(spec: Object) -> list[Object]:
    against = spec.get("affinity", {}).get("podAntiAffinity", {})
    terms: list[Object] = against.get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return terms


def _make_replica_set(case: str, each: Object, pods: list[Object]) -> Object:
    """It makes pods like the first of those that it adopts."""
    meta = {"name": each["metadata"]["name"], "namespace": within(case, each["metadata"]["namespace"])}
    labels = each["spec"]["selector"]["matchLabels"]
    (first, *_) = (
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == meta["namespace"] and pod["metadata"]["labels"] == labels
    )
    spec = {key: value for key, value in first["spec"].items() if key != "nodeName"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {"kind": "ReplicaSet", "metadata": meta, "spec": {**each["spec"], "template": template}}


def _make_budget(case: str, each: Object) -> Object:
    meta = {"name": each["metadata"]["name"], "namespace": within(case, each["metadata"]["namespace"])}
    return {"kind": "PodDisruptionBudget", "metadata": meta, "spec": each["spec"]}


async def _create(client: Client, each: Object) -> None:
    await client.create(path_of(each["kind"], each["metadata"]["namespace"]), each)


def _path(each: Object) -> str:
    return f"{path_of(each['kind'], each['metadata']['namespace'])}/{each['metadata']['name']}"


def _is_ready(found: Object) -> bool:
    status = found["status"]
    whole: bool = status.get("readyReplicas", 0) == found["spec"]["replicas"] == status["replicas"]
    return whole


def _is_observed(found: Object) -> bool:
    status = found.get("status", {})
    seen: bool = "currentHealthy" in status and status["currentHealthy"] == status["expectedPods"]
    return seen
