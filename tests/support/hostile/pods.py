"""Pods of a tenant: each is changed in a few of its fields."""

from collections.abc import Callable

from tests.support import builders
from tests.support.builders import Object
from tests.support.hostile.dice import HostileDice
from tests.support.hostile.values import (
    FORBIDDEN_NODE,
    INT32,
    KEYS,
    LABELS,
    NODE_OF_TENANT,
    OWNERS,
    QUANTITIES,
    REPLICA_SET,
    TIMES,
)
from tests.support.large_objects import LARGE_PODS, TENANT

Change = Callable[[HostileDice, Object], None]


def _requests(dice: HostileDice) -> Object:
    names = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "pods")
    return {name: dice.one(QUANTITIES) for name in dice.some(names)}


def _set_requests(dice: HostileDice, pod: Object) -> None:
    pod["spec"]["containers"] = [{"name": "c", "resources": {"requests": _requests(dice)}}]
    pod["spec"]["initContainers"] = [
        {
            "name": "i",
            "restartPolicy": dice.one((None, "Always")),
            "resources": {"requests": _requests(dice)},
        }
    ]
    pod["spec"]["overhead"] = dice.one((None, {"cpu": dice.one(QUANTITIES)}))


def _set_priority(dice: HostileDice, pod: Object) -> None:
    pod["spec"] |= {"priority": dice.one(INT32), "priorityClassName": dice.one(("", "x" * 253))}


def _set_spread(dice: HostileDice, pod: Object) -> None:
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": dice.one((1, 2**31 - 1)),
            "topologyKey": dice.one(KEYS),
            "whenUnsatisfiable": dice.one(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": dice.selector(),
            "minDomains": dice.one((None, 1, 2**31 - 1)),
            "matchLabelKeys": dice.one((None, ["pod-template-hash"], ["app"])),
            "nodeAffinityPolicy": dice.one((None, "Honor", "Ignore")),
        }
    ]


def _set_node_affinity(dice: HostileDice, pod: Object) -> None:
    term = dice.one(({}, {"matchExpressions": [dice.requirement(), dice.requirement()]}))
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}],
    }


def _set_pod_affinity(dice: HostileDice, pod: Object) -> None:
    preferred = [{"weight": dice.one((1, 100)), "podAffinityTerm": dice.pod_term()}]
    pod["spec"].setdefault("affinity", {})[dice.one(("podAffinity", "podAntiAffinity"))] = {
        "requiredDuringSchedulingIgnoredDuringExecution": dice.one((None, [dice.pod_term()])),
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }


def _set_tolerations(dice: HostileDice, pod: Object) -> None:
    operator = dice.one(("Exists", "Equal", "Lt", "Gt"))
    pod["spec"]["tolerations"] = [
        {"key": dice.one((None, "")), "operator": operator, "value": dice.one(LABELS)}
    ]


def _set_volumes(dice: HostileDice, pod: Object) -> None:
    template = {"accessModes": [], "resources": {"requests": {"storage": dice.one(QUANTITIES)}}}
    pod["spec"]["volumes"] = [
        {"name": "v", "persistentVolumeClaim": {"claimName": dice.one(("c1", "nope", "x" * 253))}},
        {"name": "e", **dice.one(({}, {}, {"emptyDir": {}}))},
        {"name": "d", "gcePersistentDisk": {"pdName": dice.text()[:500]}},
        {"name": "f", "ephemeral": {"volumeClaimTemplate": {"spec": template}}},
    ]


def _set_times(dice: HostileDice, pod: Object) -> None:
    pod["metadata"]["creationTimestamp"] = dice.one((None, *TIMES[:4]))
    pod["metadata"]["deletionTimestamp"] = dice.one((None, None, *TIMES[:4]))
    pod["status"]["startTime"] = dice.one((None, *TIMES[:4]))
    pod["spec"]["terminationGracePeriodSeconds"] = dice.one((0, 2**63 - 1, -1))


def _set_owner(dice: HostileDice, pod: Object) -> None:
    pod["metadata"]["ownerReferences"] = dice.one(OWNERS)


def _set_scheduler(dice: HostileDice, pod: Object) -> None:
    pod["spec"]["schedulerName"] = dice.one(("default-scheduler", "x", "", "s" * 100_000))
    pod["status"]["nominatedNodeName"] = dice.one((None, NODE_OF_TENANT, "nope"))


def _set_annotations(dice: HostileDice, pod: Object) -> None:
    pod["metadata"]["annotations"] = dice.annotations()


def _bind(dice: HostileDice, pod: Object) -> None:
    pod["spec"]["nodeName"] = dice.one((NODE_OF_TENANT, "nope", "x" * 253))


def _set_status(dice: HostileDice, pod: Object) -> None:
    """What the kubelet of the tenant's node may write."""
    reason = dice.text()[:5_000]
    pod["status"] |= {
        "phase": dice.one(("Pending", "Running", "Failed", "Unknown")),
        "reason": reason,
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": dice.one(("Unschedulable", reason))},
            {"type": "PodResizePending", "status": "True", "reason": dice.one(("Infeasible", "Deferred"))},
        ],
        "containerStatuses": [
            {
                "name": "c",
                "restartCount": dice.one((0, 2**31 - 1)),
                "state": {"waiting": {"reason": reason}},
                "lastState": {
                    "terminated": {"reason": reason, "exitCode": 2**31 - 1, "finishedAt": TIMES[0]}
                },
                "resources": {"requests": _requests(dice)},
                "allocatedResources": _requests(dice),
            }
        ],
    }


_POD_CHANGES: tuple[Change, ...] = (
    *(_set_requests, _set_priority, _set_spread, _set_node_affinity, _set_pod_affinity, _set_tolerations),
    *(_set_volumes, _set_times, _set_owner, _set_scheduler, _set_annotations, _bind, _set_status),
)


def make_pod(dice: HostileDice) -> Object:
    name, labels = dice.name("evil"), {"app": "evil"}
    made = builders.pod(name, namespace=TENANT, owned_by=REPLICA_SET, cpu="100m", labels=labels)
    made["metadata"]["uid"] = f"uid-{name}"
    made["spec"]["nodeName"] = dice.one((FORBIDDEN_NODE, FORBIDDEN_NODE, NODE_OF_TENANT, None))
    made["status"]["startTime"] = "2026-11-18T10:00:00Z"
    if dice.random.random() < 0.5:
        made["metadata"]["annotations"] = dice.annotations()
    for change in dice.some(_POD_CHANGES):
        change(dice, made)
    if "containerStatuses" in made["status"]:  # a kubelet writes only of the pods of its node
        made["spec"]["nodeName"] = NODE_OF_TENANT
    return made


def make_large_pod(dice: HostileDice) -> Object:
    made: Object = dice.one(tuple(LARGE_PODS.values()))(dice.next_number())
    made["spec"]["nodeName"] = dice.one((FORBIDDEN_NODE, NODE_OF_TENANT, None))
    return made
