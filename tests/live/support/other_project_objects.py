"""Objects of other projects on a real control plane: their definitions, owners with pods, and rollouts.

Every owner has a node of its own. The node lacks the label that its pods select, as if somebody had removed
it, so each pod must move off it, unless a protection keeps it.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from localcluster.client import Client, all_of
from localcluster.nodes import node
from tests.live.support.case_clusters import are_open
from tests.live.support.controllers import controllers_see
from tests.live.support.definitions import DEFINITIONS, remove_definitions
from tests.support.builders import Object, pod_spec
from tests.support.rescheduler.other_projects import OtherProject

NAMESPACE = "default"
HOME = "example.com/other-projects"
SETS_NODE = "other-sets"
TARGETS = ("other-target-1", "other-target-2")
CANARY, STABLE = {"currentPodHash": "new", "stableRS": "old"}, {"currentPodHash": "old", "stableRS": "old"}
ROLLOUT = OtherProject("argoproj.io/v1alpha1/Rollout", "Always", "", {})
FLEET = OtherProject("example.com/v1/Fleet", "Always", "", {})

_READY_WITHIN = 90.0  # beside other live tests on a small machine
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
_REVISION = "controller-revision-hash"


class Fleet(NamedTuple):
    """An owner of two ReplicaSets that have so many pods, and its status."""

    project: OtherProject
    name: str
    new: int
    status: Object


class Rolled(NamedTuple):
    """A StatefulSet of four pods whose rollout came to the partition `begun`, which then became `partition`.

    Without a partition its strategy is OnDelete, and the first `deleted` pods were deleted after the change.
    """

    name: str
    begun: int | None = None
    partition: int | None = None
    deleted: int = 0


async def define(client: Client, projects: Iterable[OtherProject]) -> None:
    """Apply a definition for each kind that is not Kubernetes' own."""
    known = {each.controller: each for each in projects if "." in each.api_version}
    await all_of(client.create(DEFINITIONS, _define(each)) for each in known.values())
    for each in known.values():
        await client.wait(_path(each), lambda found: "items" in found)


async def add_owned_pods(client: Client, project: OtherProject, number: int) -> None:
    """Create an owner, and two pods of it on a node of its own."""
    name = f"other-{number}"
    await client.create("/api/v1/nodes", node(name))
    kind, spec = project.kind, pod_spec(nodeName=name) if project.kind == "Pod" else {}
    status = {} if project.kind == "Pod" else {"observedGeneration": 1}
    whole = {**_head(project), "metadata": {"name": "one"}, "spec": spec, "status": status}
    made = await client.create(_path(project), whole)
    own = [project.own("one", made["metadata"]["uid"])]
    for turn in range(2):
        labels, pod = {"app": name}, f"{kind.lower()}-{turn}"
        await client.create(_PODS, _make_pod(pod, name, labels, own, restartPolicy=project.restart_policy))


async def add_fleet(client: Client, fleet: Fleet) -> None:
    """Create the owner, its pods, and the ReplicaSets that adopt them."""
    place, name = f"other-{fleet.name}", fleet.name
    await client.create("/api/v1/nodes", node(place))
    project = fleet.project
    made = await client.create(
        _path(project), {**_head(project), "metadata": {"name": name}, "spec": {}, "status": fleet.status}
    )
    own, revisions = project.own(name, made["metadata"]["uid"]), {"old": 2, "new": fleet.new}
    for revision, count in revisions.items():
        for number in range(count):
            labels = {"app": name, "hash": revision}
            await client.create(_PODS, _make_pod(f"{name}-{revision}-{number}", place, labels))
    await controllers_see(client, NAMESPACE, sum(revisions.values()), {"app": name})
    for revision, count in revisions.items():
        labels = {"app": name, "hash": revision}
        meta = {"name": f"{name}-{revision}", "ownerReferences": [own]}
        spec = {"replicas": count, **_template(labels)}
        await client.create(_REPLICA_SETS, {"metadata": meta, "spec": spec})


async def roll_out(client: Client, rolled: Rolled) -> None:
    """Create the StatefulSet, change its pods, and let the rollout come to where it stops."""
    path = f"{_SETS}/{rolled.name}"
    spec = {
        "replicas": 4,
        "podManagementPolicy": "Parallel",
        "updateStrategy": _strategy(rolled.begun),
        **_template({"app": rolled.name}),
    }
    await client.create(_SETS, {"metadata": {"name": rolled.name}, "spec": {"serviceName": "x", **spec}})
    await client.wait(path, lambda found: found.get("status", {}).get("readyReplicas") == 4)
    change = {"template": {"metadata": {"annotations": {"example.com/change": "1"}}}}
    await client.patch(path, {"spec": change})
    await client.wait(
        path, lambda found: found["status"]["updateRevision"] != found["status"]["currentRevision"]
    )
    for ordinal in range(rolled.deleted):
        await client.delete(f"{_PODS}/{rolled.name}-{ordinal}")
    updated = rolled.deleted if rolled.begun is None else 4 - rolled.begun
    await client.wait(path, lambda found: _has_come_to(found, updated))
    if rolled.partition is not None:
        await client.patch(path, {"spec": {"updateStrategy": _strategy(rolled.partition)}})
    await client.wait(
        path, lambda found: found["status"]["observedGeneration"] == found["metadata"]["generation"]
    )


async def settle(client: Client, pods: int) -> None:
    """Wait until so many pods are Ready, then let them leave their nodes."""
    await client.wait(
        _PODS, lambda found: _count_ready(found) == pods == len(found["items"]), seconds=_READY_WITHIN
    )
    await client.patch(f"/api/v1/nodes/{SETS_NODE}", {"metadata": {"labels": {HOME: None}}})
    for name in TARGETS:
        await client.create("/api/v1/nodes", node(name, labels={HOME: ""}))
    await client.wait("/api/v1/nodes", are_open)


async def read_revision(client: Client, pod: str) -> str:
    revision: str = (await client.get(f"{_PODS}/{pod}"))["metadata"]["labels"][_REVISION]
    return revision


async def evict(client: Client, pod: str) -> str:
    """Evict a pod; the revision in which it comes back."""
    path = f"{_PODS}/{pod}"
    before = (await client.get(path))["metadata"]["uid"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
    await client.create(f"{path}/eviction", body)
    found = await client.wait(_PODS, lambda found: _find_replacements(found, pod, before), seconds=60)
    revision: str = _find_replacements(found, pod, before)[0]["metadata"]["labels"][_REVISION]
    return revision


async def take_down(client: Client, projects: Iterable[OtherProject]) -> None:
    """Delete the owners before their pods, so that none of these comes back."""
    for path in (_SETS, _REPLICA_SETS):
        await client.delete(path, {"propagationPolicy": "Background"})
        await client.wait(path, lambda found: not found["items"])
    await client.delete(_PODS, {"gracePeriodSeconds": 0})
    await client.wait(_PODS, lambda found: not found["items"])
    own = (each.controller.rpartition("/") for each in projects if "." in each.api_version)
    kinds = {f"{kind.lower()}s.{api_version.partition('/')[0]}" for api_version, _, kind in own}
    await remove_definitions(client, kinds)
    for name in _names(await client.get("/api/v1/nodes")):
        if name.startswith("other-"):
            await client.delete(f"/api/v1/nodes/{name}")


def _define(project: OtherProject) -> Object:
    group, _, version = project.api_version.partition("/")
    plural = f"{project.kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": project.kind, "plural": plural},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def _path(project: OtherProject) -> str:
    root = "/apis" if "/" in project.api_version else "/api"
    return f"{root}/{project.api_version}/namespaces/{NAMESPACE}/{project.kind.lower()}s"


def _head(project: OtherProject) -> Object:
    return {"apiVersion": project.api_version, "kind": project.kind}


def _make_pod(
    name: str, place: str, labels: dict[str, str], owners: Iterable[Object] = (), **spec: Any
) -> Object:
    bound = pod_spec(nodeName=place, nodeSelector={HOME: ""}, **spec)
    return {"metadata": {"name": name, "labels": labels, "ownerReferences": list(owners)}, "spec": bound}


def _template(labels: dict[str, str]) -> Object:
    spec = pod_spec(nodeSelector={HOME: ""})
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}


def _strategy(partition: int | None) -> Object:
    if partition is None:
        return {"type": "OnDelete", "rollingUpdate": None}
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


def _has_come_to(found: Object, updated: int) -> bool:
    status = found["status"]
    came: bool = status.get("updatedReplicas", 0) == updated and status.get("readyReplicas") == 4
    return came


def _count_ready(found: Object) -> int:
    conditions = [one for pod in found["items"] for one in pod["status"].get("conditions", ())]
    return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _find_replacements(found: Object, name: str, before: str) -> list[Object]:
    return [
        pod for pod in found["items"] if pod["metadata"]["name"] == name and pod["metadata"]["uid"] != before
    ]


def _names(found: Object) -> list[str]:
    return [each["metadata"]["name"] for each in found["items"]]
