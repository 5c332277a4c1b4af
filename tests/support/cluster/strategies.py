"""Hypothesis strategies for pods and nodes: small, and as unusual as the API server allows."""

from typing import Any

from hypothesis import strategies as st

from reberth.records import Node, Pod
from tests.support.builders import Object, as_record, container, node, owner, pod

NAMES = ["web-0", "web-1", "web-2", "db-0"]
NAMESPACES = ["default", "shop"]
NODE_NAMES = ["n1", "n2", "n3"]
TIMES = ["2026-11-18T09:15:31Z", "2026-11-18T09:15:32Z", "2026-11-19T00:00:00.5Z"]

cpus = st.sampled_from(["0", "1m", "100m", "1", "1.5", "2k"])
memories = st.sampled_from(["0", "1", "64Mi", "1Gi", "1500M"])
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"]),
    st.sampled_from(["0", "1", "2", "1Ki", "3"]),
)
owners = st.sampled_from(
    [None, owner("ReplicaSet", "web"), owner("StatefulSet", "db"), owner("DaemonSet", "agent")]
)
labels = st.dictionaries(
    st.sampled_from(
        [
            *("app", "tier", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"),
            *("topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
        ]
    ),
    st.sampled_from(["a", "b"]),
    max_size=3,
)
annotations = st.dictionaries(
    st.sampled_from(
        [
            "reberth.dev/automation",
            "unknown.example.com/y",
            "controller.kubernetes.io/pod-deletion-cost",
            "karpenter.sh/do-not-disrupt",
        ]
    ),
    st.sampled_from(["1", "2"]),
    max_size=2,
)
volumes = st.lists(
    st.sampled_from(
        [
            {"name": "kube-api-access-abcde", "projected": {"sources": []}},
            {"name": "kube-api-access-fghij", "projected": {"sources": []}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1", "readOnly": True}},
            {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}},
        ]
    ),
    max_size=3,
)


def pinned_to(name: str) -> Object:
    """Write the affinity that the DaemonSet controller gives its pods."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    terms = [{"matchFields": fields, "matchExpressions": [{"key": "os", "operator": "Exists"}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


affinities = st.sampled_from([None, {}, *map(pinned_to, NODE_NAMES)])
states = st.sampled_from(
    [
        {"running": {}},
        {"waiting": {"reason": "CrashLoopBackOff"}},
        {"terminated": {"reason": "Completed", "exitCode": 0, "finishedAt": TIMES[0]}},
        {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": TIMES[1]}},
    ]
)
conditions = st.lists(
    st.builds(
        lambda kind, status, reason, time: {
            "type": kind, "status": status, "reason": reason, "lastTransitionTime": time,
        },
        st.sampled_from(["Ready", "PodScheduled", "DisruptionTarget", "PodResizePending"]),
        st.sampled_from(["True", "False"]),
        st.sampled_from(["Unschedulable", "Infeasible", "Deferred"]),
        st.sampled_from(TIMES),
    ),
    unique_by=lambda condition: condition["type"],
)  # fmt: skip


@st.composite
def container_statuses(draw: st.DrawFn, containers: list[Object]) -> list[Object]:
    """Draw statuses that mostly repeat what the containers ask for, as a kubelet writes them."""
    statuses: list[Object] = []
    for each in containers:
        asked = each["resources"]["requests"]
        actual = draw(st.one_of(st.just(asked), st.none(), amounts))
        status: Object = {
            "name": each["name"],
            "restartCount": draw(st.integers(0, 2)),
            "state": draw(states),
        }
        if actual is not None:
            status |= {
                "resources": {"requests": actual},
                "allocatedResources": draw(st.sampled_from([asked, actual])),
            }
        statuses.append(status)
    return statuses


@st.composite
def pods(draw: st.DrawFn, *, names: list[str] = NAMES) -> Object:
    containers = [
        container(name, resources={"requests": draw(amounts)})
        for name in draw(st.sampled_from([["a"], ["a", "b"]]))
    ]
    init_containers = [
        container(
            "init",
            resources={"requests": draw(amounts)},
            restartPolicy=draw(st.sampled_from([None, "Always"])),
        )
        for _ in range(draw(st.integers(0, 1)))
    ]
    spec: dict[str, Any] = {
        "volumes": draw(volumes),
        "affinity": draw(affinities),
        "initContainers": init_containers,
    }
    if draw(st.booleans()):
        spec["priority"] = draw(st.integers(-10, 10))
    if draw(st.integers(0, 5)) == 0:
        spec["resources"] = {"requests": {"cpu": draw(cpus), "memory": draw(memories)}}
    status = {
        "startTime": draw(st.sampled_from([None, *TIMES])),
        "conditions": draw(conditions),
        "containerStatuses": draw(container_statuses(containers)),
        "initContainerStatuses": draw(container_statuses(init_containers)),
        **draw(
            st.sampled_from(
                [{}, {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}]
            )
        ),
        "nominatedNodeName": draw(st.sampled_from([None, "n1"])),
    }
    return pod(
        draw(st.sampled_from(names)),
        namespace=draw(st.sampled_from(NAMESPACES)),
        node=draw(st.sampled_from([None, *NODE_NAMES, "gone"])),
        phase=draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"])),
        owned_by=draw(owners),
        labels=draw(labels),
        annotations=draw(annotations),
        created=draw(st.sampled_from(TIMES)),
        deleted=draw(st.sampled_from([None, TIMES[1]])),
        containers=containers,
        status=status,
        **spec,
    )


@st.composite
def nodes(draw: st.DrawFn) -> Object:
    return node(
        draw(st.sampled_from(NODE_NAMES)),
        cpu=draw(cpus),
        memory=draw(memories),
        zone=draw(st.sampled_from([None, "a"])),
        extended=draw(st.dictionaries(st.sampled_from(["example.com/gpu", "hugepages-1Gi"]), st.just("4"))),
        unschedulable=draw(st.booleans()),
    )


def at_version(built: Object, version: int, *, uid: str | None = None) -> Object:
    """Give the object as it would stand at this version."""
    name = f"{built['metadata'].get('namespace', '')}/{built['metadata']['name']}"
    return {**built, "metadata": {**built["metadata"], "uid": uid or name, "resourceVersion": str(version)}}


def pod_record(built: Object, version: int = 1, *, uid: str | None = None) -> Pod:
    return as_record(Pod, at_version(built, version, uid=uid))


def node_record(built: Object, version: int = 1) -> Node:
    return as_record(Node, at_version(built, version))
