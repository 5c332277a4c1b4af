"""Pods for real nodes, and paths that their tests share."""

from collections.abc import Callable
from typing import Any

from localcluster.realnodes.images import BUSYBOX
from tests.support.builders import Object

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


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
