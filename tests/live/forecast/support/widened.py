"""Extend a case by what an extender depends on: owners of pods, and nodes that come and go.

A ReplicaSet has a Deployment above it, or none, or is not there itself; a Job has a CronJob. Each probe has
an owner where its namespace has any, so that something can be remembered of it.
"""

import copy
from collections.abc import Iterable
from dataclasses import replace

from reberth.memory.addon_scores import ANNOTATION
from tests.support.forecast.cases.cases import Case
from tests.support.forecast.cases.dice import Dice, Object

_ABOVE = {"ReplicaSet": ("apps/v1", "Deployment"), "Job": ("batch/v1", "CronJob")}
_TAINTS_OF_LEAVING = (
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "status-taint.cluster-autoscaler.kubernetes.io/any",
)
_TAINTS_OF_YOUTH = (
    "karpenter.sh/unregistered",
    "startup-taint.cluster-autoscaler.kubernetes.io/any",
    "ignore-taint.cluster-autoscaler.kubernetes.io/any",
)
_WEIGHTS = (
    "load/cpu=9",
    "load/cpu=-9, power/green=2",
    "load/cpu=0, power/green=0",
    "power/green=8",  # not allowed
    "nobody/knows=1",
    "load/cpu",  # not read
)


def widen(case: Case) -> Case:
    """Give the case that is asked with an extender; the same case gives the same one."""
    dice = Dice(-1 - case.seed)
    objects, probes = copy.deepcopy(case.objects), copy.deepcopy(case.probes)
    pods = [*(one for one in objects if one["kind"] == "Pod"), *probes]
    owners = [one for one in objects if "template" in one.get("spec", {})]
    _name_by_hash(owners, pods)
    jobs = [_make_job(dice, case.seed, number, pods) for number in range(2) if dice.chance(0.4)]
    for owner in [*owners, *jobs]:
        _own(dice, owner)
    absent = [one for one in owners if one["kind"] == "ReplicaSet" and dice.chance(0.15)]
    for probe in probes:
        _adopt(dice, probe, owners)
        _choose_weights(dice, probe)
    for node in objects:
        if node["kind"] == "Node":
            _age(dice, node)
    there = [one for one in objects if not any(one is owner for owner in absent)]
    return replace(case, objects=(*there, *jobs), probes=probes)


def _name_by_hash(owners: Iterable[Object], pods: Iterable[Object]) -> None:
    """Name ReplicaSets as a Deployment does: its own name, and the hash that their pods carry."""
    for owner in owners:
        if owner["kind"] == "ReplicaSet":
            owner["metadata"]["name"] = _hashed(owner["metadata"]["name"])
    for pod in pods:
        for reference in pod["metadata"].get("ownerReferences", ()):
            if reference["kind"] == "ReplicaSet":
                reference["name"], reference["uid"] = _hashed(reference["name"]), _hashed(reference["uid"])


def _hashed(name: str) -> str:
    stem, _, number = name.rpartition("-")
    return f"{stem}-h{number}"


def _own(dice: Dice, owner: Object) -> None:
    """Put an owner above an owner; two ReplicaSets of an app are two generations of one Deployment."""
    if owner["kind"] not in _ABOVE or dice.chance(0.3):
        return
    version, kind = _ABOVE[owner["kind"]]
    name = owner["metadata"]["name"].rpartition("-")[0]
    uid = f"{kind}-{owner['metadata']['namespace']}-{name}"
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
    owner["metadata"]["ownerReferences"] = [reference]


def _make_job(dice: Dice, seed: int, number: int, pods: list[Object]) -> Object:
    """Make a Job that waits, and give it some pods that nobody owns."""
    namespace, name = dice.choice(pods)["metadata"]["namespace"], f"k{seed}-job-{number}"
    reference = _refer("batch/v1", "Job", namespace, name)
    for pod in pods:
        meta = pod["metadata"]
        if meta["namespace"] == namespace and "ownerReferences" not in meta and dice.chance(0.5):
            meta["ownerReferences"] = [reference]
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "tools:3"}]}}
    metadata = {"name": name, "namespace": namespace}
    spec = {"suspend": True, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _adopt(dice: Dice, probe: Object, owners: Iterable[Object]) -> None:
    meta = probe["metadata"]
    near = [one for one in owners if one["metadata"]["namespace"] == meta["namespace"]]
    if "ownerReferences" in meta or not near:
        return
    owner = dice.choice(near)
    meta["labels"] |= owner["spec"]["template"]["metadata"]["labels"]
    name = owner["metadata"]["name"]
    meta["ownerReferences"] = [_refer(owner["apiVersion"], owner["kind"], meta["namespace"], name)]


def _refer(version: str, kind: str, namespace: str, name: str) -> Object:
    uid = f"{kind}/{namespace}/{name}"
    return {"apiVersion": version, "kind": kind, "name": name, "controller": True, "uid": uid}


def _choose_weights(dice: Dice, probe: Object) -> None:
    if dice.often("chosen weights", 0.3):
        probe["metadata"]["annotations"] = {ANNOTATION: dice.choice(_WEIGHTS)}


def _age(dice: Dice, node: Object) -> None:
    """Let a node be leaving or young, mostly so that kube-scheduler would still take it."""
    key = None
    if dice.often("leaving nodes", 0.1):
        key = dice.choice(_TAINTS_OF_LEAVING)
    elif dice.often("young nodes", 0.1):
        key = dice.choice(_TAINTS_OF_YOUTH)
    if key:
        effect = dice.weighed({"PreferNoSchedule": 4, "NoSchedule": 1})
        node["spec"].setdefault("taints", []).append({"key": key, "effect": effect})
    if dice.often("karpenter", 0.1):
        node["metadata"]["labels"]["karpenter.sh/nodepool"] = "any"
        if dice.chance(0.4):
            node["metadata"]["labels"]["karpenter.sh/initialized"] = "true"
    if dice.often("conditions", 0.15):
        kind, status = dice.choice([("Ready", "False"), ("Ready", "True"), ("MaintenancePlanned", "True")])
        node["status"]["conditions"] = [{"type": kind, "status": status}]
