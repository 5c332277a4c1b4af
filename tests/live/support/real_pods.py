"""Pods and Deployments for real nodes, their settings, and paths that their tests share."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, REAL_NODE_LABEL
from localcluster.realnodes.images import BUSYBOX
from localcluster.realnodes.node_files import NodeShape
from tests.live.support.memory_objects import tidy_client
from tests.live.support.moves import Workload, all_ready
from tests.support.builders import Object

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
QUICK = NodeShape(
    kubelet={
        "nodeLeaseDurationSeconds": 4,
        "nodeStatusUpdateFrequency": "1s",
        "nodeStatusReportFrequency": "2s",
    }
)
NOTICE_SOON = {CONTROLLERS: ["--node-monitor-grace-period=6s", "--node-monitor-period=1s"]}


def real_pod(name: str, command: str, *, node: str | None = None, grace: int = 2, **spec: Any) -> Object:
    """A pod of one container that runs a shell command; with a node it is bound without the scheduler."""
    container = {"name": "main", "image": BUSYBOX, "args": [command], **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": grace,
            "enableServiceLinks": False,
            "containers": [container],
            **({"nodeName": node} if node else {}),
            **spec,
        },
    }


def is_gone(name: str) -> Callable[[Any], bool]:
    return lambda found: all(each["metadata"]["name"] != name for each in found["items"])


def real_deployment(name: str, command: str, *, replicas: int = 1, **pod: Any) -> Object:
    """A Deployment for real nodes alone; `pod` takes fields as `real_pod` does."""
    made = real_pod(name, command, nodeSelector={REAL_NODE_LABEL: ""}, **pod)
    template = {"metadata": {"labels": {"app": name}}, "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


@asynccontextmanager
async def real_workload(cluster: Cluster, name: str, command: str, **fields: Any) -> AsyncIterator[Workload]:
    """A Deployment that is Ready on real nodes; nothing is left of it."""
    async with tidy_client(cluster) as client:
        made = await client.create(DEPLOYMENTS, real_deployment(name, command, **fields))
        path, replicas = f"{PODS}?labelSelector=app%3D{name}", made["spec"]["replicas"]
        found = await client.wait(path, lambda f: all_ready(f, replicas))
        uids = frozenset(pod["metadata"]["uid"] for pod in found["items"])
        try:
            yield Workload(client, cluster, name, uids)
        finally:
            await client.delete(f"{DEPLOYMENTS}/{name}", {"propagationPolicy": "Foreground"})
            await client.wait(path, lambda f: not f["items"], seconds=60)
