"""A case for each protection: the pod, the rule, and the refusal."""

from typing import Any

import numpy as np
import pytest

from reberth.values.refusal import Refused
from rescheduler.protections import (
    RULES,
    ProtectionSettings,
    explain,
    find_protected,
    ownership,
    refuse_protected,
)
from tests.support.builders import owner
from tests.support.rescheduler.guardrails import (
    NOW,
    Object,
    claim,
    context_of,
    namespace,
    peer,
    place_of,
    quota,
    replica,
    workload,
)

DEPLOYMENT = owner("Deployment", "web")
EVICTABLE = {"descheduler.alpha.kubernetes.io/evict": ""}
SAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
LOCAL_SAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "cache, tmp"}
CLAIMED = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]
STATEFUL = {"owned_by": owner("StatefulSet", "web")}


def ask(*objects: Object, name: str = "web-1", namespace: str = "default", **settings: Any) -> Refused | None:
    context = context_of(peer(), *objects, protections=ProtectionSettings(**settings))
    return refuse_protected(place_of(context, name, namespace), context)


def empty(name: str = "cache") -> Object:
    return {"name": name, "emptyDir": {}}


def rolled(kind: str, status: Object | None = None, spec: Object | None = None) -> tuple[Object, ...]:
    """A pod whose Deployment, or StatefulSet, is in this state."""
    above = workload(kind, "web", spec={"replicas": 3, **(spec or {})}, status=status)
    if kind == "StatefulSet":
        return replica(**STATEFUL), replica("web-9", **STATEFUL), above
    return replica(), workload("ReplicaSet", ownerReferences=[DEPLOYMENT]), above


ROWS: list[tuple[str, str, list[Object], dict[str, Any]]] = [
    ("Terminating", "is being deleted", [replica(deleted="2027-01-15T08:10:00Z")], {}),
    ("Finished", "has failed", [replica(phase="Failed")], {}),
    ("NotBound", "is not bound to a node", [replica(node=None)], {}),
    ("NotBound", "node n9 is not in the cache", [replica(node="n9")], {}),
    ("MirrorPod", "managed by the kubelet", [replica(annotations={"kubernetes.io/config.mirror": "x"})], {}),
    ("MirrorPod", "managed by the kubelet", [replica(owned_by=owner("Node", "n1", api_version="v1"))], {}),
    ("DaemonSetPod", "bound to its node", [replica(owned_by=owner("DaemonSet", "log"))], {}),
    (
        "DaemonSetPod",
        "annotation cluster-autoscaler.kubernetes.io/daemonset-pod=true",
        [replica(annotations={"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"})],
        {},
    ),
    ("BarePod", "no controller would replace", [replica(owned_by=None)], {}),
    ("CriticalPod", "system-node-critical", [replica(priorityClassName="system-node-critical")], {}),
    ("CriticalPod", "priority 2000000000", [replica(priority=2_000_000_000)], {}),
    ("JobPod", "Job sum", [replica(owned_by=owner("Job", "sum", api_version="batch/v1"))], {}),
    ("RestartPolicy", "restartPolicy OnFailure", [replica(restartPolicy="OnFailure")], {}),
    (
        "UnknownController",
        "add argoproj.io/Workflow to replacingKinds",
        [replica(owned_by=owner("Workflow", "etl", api_version="argoproj.io/v1alpha1"))],
        {},
    ),
    ("Namespace", "default is in excludedNamespaces", [replica()], {"excluded_namespaces": ("default",)}),
    ("Namespace", "default is not in namespaces", [replica()], {"namespaces": ("shop",)}),
    ("Namespace", "namespaceSelector team=a", [replica(), namespace()], {"namespace_selector": "team=a"}),
    ("Namespace", "is being deleted", [replica(), namespace(phase="Terminating")], {}),
    ("Labels", "podSelector app=web", [replica(labels={"app": "db"})], {"pod_selector": "app=web"}),
    ("LocalStorage", "volume cache is an emptyDir", [replica(volumes=[empty()])], {}),
    ("LocalStorage", "is a hostPath", [replica(volumes=[{"name": "h", "hostPath": {"path": "/"}}])], {}),
    ("LocalStorage", "is ephemeral", [replica(volumes=[{"name": "e", "ephemeral": {}}])], {}),
    (
        "Claims",
        "data-0 has the access modes ReadWriteOnce",
        [replica(volumes=CLAIMED), claim("data-0", "ReadWriteOnce")],
        {},
    ),
    ("Claims", "data-0 is not in the cache", [replica(volumes=CLAIMED)], {}),
    ("Claims", "data-0 has no access modes", [replica(volumes=CLAIMED), claim("data-0")], {}),
    ("ResourceClaims", "resourceClaims: gpu", [replica(resourceClaims=[{"name": "gpu"}])], {}),
    (
        "Gang",
        "schedulingGroup train, its PodGroup is not in the cache",
        [replica(schedulingGroup={"podGroupName": "train"})],
        {},
    ),
    ("Gang", "workloadRef train", [replica(workloadRef={"name": "train", "podGroup": "a"})], {}),
    (
        "Gang",
        "label scheduling.x-k8s.io/pod-group",
        [replica(labels={"scheduling.x-k8s.io/pod-group": "g"})],
        {},
    ),
    (
        "Gang",
        "annotation scheduling.k8s.io/group-name",
        [replica(annotations={"scheduling.k8s.io/group-name": "g"})],
        {},
    ),
    ("EvictionResponders", "a.example/x", [replica(evictionResponders=[{"name": "a.example/x"}])], {}),
    ("CannotForecast", "schedulerName volcano", [replica(schedulerName="volcano")], {}),
    (
        "CannotForecast",
        "so large that only a part of it is read",
        [replica(labels={f"l{number}": "x" * 63 for number in range(2_000)})],
        {},
    ),
    ("MinReplicas", "2 replicas, fewer than minReplicas 3", [replica()], {"min_replicas": 3}),
    ("MinAge", "younger than minAge 300s", [replica(created="2027-01-15T07:59:00Z")], {}),
    ("LastReady", "no other replica is Ready", [replica(owned_by=owner("ReplicaSet", "db"))], {}),
    (
        "Surge",
        "annotation evictionSurgeReplicas",
        [replica(), workload("ReplicaSet", annotations={"evictionSurgeReplicas": "2"})],
        {},
    ),
    (
        "Surge",
        "annotation eviction-autoscaler.azure.com/original-min-replicas",
        [
            replica(),
            workload("ReplicaSet", annotations={"eviction-autoscaler.azure.com/original-min-replicas": "2"}),
        ],
        {},
    ),
    ("RolloutPaused", "Deployment web is paused", [*rolled("Deployment", spec={"paused": True})], {}),
    ("Rollout", "Deployment web", [*rolled("Deployment", {"observedGeneration": 0})], {}),
    ("Rollout", "Deployment web", [*rolled("Deployment", {"replicas": 3, "updatedReplicas": 2})], {}),
    ("Rollout", "Deployment web", [*rolled("Deployment", {"replicas": 4, "updatedReplicas": 3})], {}),
    (
        "Rollout",
        "StatefulSet web",
        [*rolled("StatefulSet", {"currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1})],
        {},
    ),
    (
        "Quota",
        "cap has no room for a replacement: pods",
        [replica(), quota({"pods": "2"}, {"pods": "2"})],
        {},
    ),
    (
        "Quota",
        "requests.cpu",
        [replica(cpu="600m"), quota({"requests.cpu": "2"}, {"requests.cpu": "1500m"})],
        {},
    ),
    ("Quota", "limits.memory", [replica(), quota({"limits.memory": "1Gi"}, {"limits.memory": "1Gi"})], {}),
    (
        "Quota",
        "requests.example.com/gpu",
        [
            replica(containers=[{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}]),
            quota({"requests.example.com/gpu": "1"}, {"requests.example.com/gpu": "1"}),
        ],
        {},
    ),
    ("Quota", "cannot be read", [replica(), quota({"pods": "many"}, {})], {}),
]


@pytest.mark.parametrize(("rule", "said", "objects", "settings"), ROWS)
def test_a_protected_pod_is_refused_by_its_rule(
    rule: str, said: str, objects: list[Object], settings: dict[str, Any]
) -> None:
    refused = ask(*objects, **settings)
    assert refused is not None
    assert refused.rule == rule
    assert said in refused.reason


def test_a_system_namespace_is_protected() -> None:
    mine = [replica(name, namespace="kube-system") for name in ("web-1", "web-2")]
    refused = ask(*mine, namespace="kube-system")
    assert refused == Refused("SystemNamespace", "namespace kube-system is in systemNamespaces")


FREE: list[tuple[str, list[Object], dict[str, Any]]] = [
    ("plain", [replica()], {}),
    ("critical", [replica(priority=2_000_000_000)], {"critical": False}),
    ("below the system's priorities", [replica(priority=1_999_999_999)], {}),
    (
        "job",
        [replica(name, owned_by=owner("Job", "sum", api_version="batch/v1")) for name in ("web-1", "w")],
        {"job_pods": False},
    ),
    ("bare, but evictable", [replica(owned_by=None, annotations=EVICTABLE)], {"last_ready": False}),
    ("bare, but safe", [replica(owned_by=None, annotations=SAFE)], {"last_ready": False}),
    ("local, but not minded", [replica(volumes=[empty()])], {"local_storage": False}),
    ("local, but evictable", [replica(volumes=[empty()], annotations=EVICTABLE)], {}),
    ("local, each volume safe", [replica(volumes=[empty(), empty("tmp")], annotations=LOCAL_SAFE)], {}),
    ("a claim of many", [replica(volumes=CLAIMED), claim("data-0", "ReadWriteOnce", "ReadWriteMany")], {}),
    (
        "a claim of one, allowed",
        [replica(volumes=CLAIMED), claim("data-0", "ReadWriteOnce")],
        {"movable_access_modes": ("ReadWriteOnce",)},
    ),
    ("devices, not minded", [replica(resourceClaims=[{"name": "gpu"}])], {"resource_claims": False}),
    ("gang, not minded", [replica(labels={"scheduling.x-k8s.io/pod-group": "g"})], {"gangs": False}),
    (
        "the default responder",
        [replica(evictionResponders=[{"name": "imperative-eviction.k8s.io/evictor"}])],
        {},
    ),
    (
        "responders, not minded",
        [replica(evictionResponders=[{"name": "a/b"}])],
        {"eviction_responders": False},
    ),
    ("old enough", [replica(created="2027-01-15T07:54:59Z")], {}),
    ("the last one, not minded", [replica(owned_by=owner("ReplicaSet", "db"))], {"last_ready": False}),
    ("the last one, not Ready itself", [replica(owned_by=owner("ReplicaSet", "db"), status={})], {}),
    ("enough replicas", [replica()], {"min_replicas": 2}),
    (
        "enough replicas, says the owner",
        [replica(), workload("ReplicaSet", spec={"replicas": 9})],
        {"min_replicas": 9},
    ),
    ("named namespace", [replica(), namespace(labels={"team": "a"})], {"namespace_selector": "team=a"}),
    ("named labels", [replica(labels={"app": "web"})], {"pod_selector": "app=web"}),
    ("no system namespaces", [replica()], {"system_namespaces": ()}),
    ("settled Deployment", [*rolled("Deployment", {"replicas": 3, "updatedReplicas": 3})], {}),
    ("a Deployment in mid-rollout, not minded", [*rolled("Deployment")], {"rollouts": False}),
    (
        "settled StatefulSet",
        [*rolled("StatefulSet", {"currentRevision": "a", "updateRevision": "a"})],
        {},
    ),
    ("an owner written by hand", [replica(), workload("ReplicaSet") | {"metadata": {"name": "web"}}], {}),
    ("room in the quota", [replica(cpu="500m"), quota({"cpu": "2"}, {"cpu": "1500m"})], {}),
    ("another quota", [replica(), quota({"services": "1"}, {"services": "1"})], {}),
    ("full quota, not minded", [replica(), quota({"pods": "1"}, {"pods": "1"})], {"quotas": False}),
    (
        "full quota, but the pod goes first",
        [replica(**STATEFUL), replica("web-9", **STATEFUL), quota({"pods": "1"}, {"pods": "1"})],
        {},
    ),
]


@pytest.mark.parametrize(("objects", "settings"), [row[1:] for row in FREE], ids=[row[0] for row in FREE])
def test_an_unprotected_pod_may_move(objects: list[Object], settings: dict[str, Any]) -> None:
    assert ask(*objects, **settings) is None


def test_a_deployment_written_without_a_state_is_not_in_the_middle_of_a_rollout() -> None:
    unborn = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 3},
    }
    labels = {"pod-template-hash": "6d5"}
    pods = [
        replica(name, labels=labels, owned_by=owner("ReplicaSet", "web-6d5")) for name in ("web-1", "web-2")
    ]
    assert ask(*pods, unborn) is None


@pytest.mark.parametrize("where", ["labels", "annotations"])
@pytest.mark.parametrize("key", ownership.GANG_KEYS)
def test_every_gang_key_is_recognised_as_label_and_as_annotation(key: str, where: str) -> None:
    refused = ask(replica(**{where: {key: "g"}}))
    said = f"{where.removesuffix('s')} {key}: the pod is scheduled together with others"
    assert refused == Refused("Gang", said)


@pytest.mark.parametrize("field", ["namespace_selector", "pod_selector"])
def test_a_malformed_selector_is_refused_with_the_settings(field: str) -> None:
    with pytest.raises(ValueError, match="invalid label selector"):
        ProtectionSettings(**{field: "a in"})


def test_the_first_rule_of_the_table_is_the_one_that_refuses() -> None:
    young = "2027-01-15T07:59:00Z"
    both = replica(created=young, priority=2_000_000_000, deleted="2027-01-15T08:10:00Z")
    context = context_of(
        both, replica("web-2", created=young), replica("web-3", created=young, volumes=[empty()])
    )
    refusals = [refuse_protected(place_of(context, name), context) for name in ("web-1", "web-2", "web-3")]
    assert [refused and refused.rule for refused in refusals] == ["Terminating", "MinAge", "LocalStorage"]


def test_a_time_limited_protection_names_its_end() -> None:
    refused = ask(replica(created="2027-01-15T07:59:00Z"))
    assert refused is not None
    assert refused.until == NOW - 60 + 300


def test_an_explanation_has_every_rule_once_and_agrees_with_the_protection() -> None:
    context = context_of(peer(), replica(volumes=[empty()], created="2027-01-15T07:59:00Z"))
    place = place_of(context)
    words = explain(place, context)
    assert [name for name, _ in words] == [rule.name for rule in RULES]
    assert len({name for name, _ in words}) == len(words)
    refusals = [refused for _, refused in words if refused]
    assert [refused.rule for refused in refusals] == ["LocalStorage", "MinAge"]
    assert refuse_protected(place, context) == refusals[0]


def test_the_column_of_protected_pods_agrees_with_the_protection_of_each() -> None:
    objects = [each for row in ROWS for each in row[2] if each["kind"] == "Pod"]
    renamed = [each | {"metadata": each["metadata"] | {"name": f"p{n}"}} for n, each in enumerate(objects)]
    context = context_of(peer(), *renamed)
    column = find_protected(context)
    asked = [refuse_protected(place, context) is not None for place in range(len(column))]
    assert column.tolist() == asked
    assert True in asked
    assert False in asked


def test_the_column_of_an_empty_cluster_is_empty() -> None:
    assert find_protected(context_of()).shape == np.zeros(0).shape


def test_a_peer_that_is_leaving_or_not_ready_is_no_peer() -> None:
    leaving = replica("web-2", deleted="2027-01-15T08:10:00Z")
    context = context_of(replica(), leaving, replica("web-3", status={}))
    assert refuse_protected(place_of(context), context) == Refused("LastReady", "no other replica is Ready")


@pytest.mark.parametrize(("objects", "settings"), [row[2:] for row in ROWS])
def test_every_refusal_bears_the_name_of_its_row(objects: list[Object], settings: dict[str, Any]) -> None:
    context = context_of(*objects, protections=ProtectionSettings(**settings))
    words = explain(place_of(context), context)
    assert [name for name, refused in words if refused] == [refused.rule for _, refused in words if refused]
