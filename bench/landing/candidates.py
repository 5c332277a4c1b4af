"""Pods that fit on no node but their own: a check where they could go must look at all nodes.

Some request more cores than any node has left, which is known once the requests of its pods are summed. Some
select a label that no node has, which is known at the first look.
"""

from typing import Any

from bench.reading.populating import REPLICAS
from localcluster.cluster import Cluster
from tests.support.cluster import large_cluster

LARGE, CHOOSY = "large", "choosy"
"""The kinds of candidates, each in a namespace of that name."""
_NEEDS = {LARGE: {}, CHOOSY: {"nodeSelector": {"kept-for": "nobody"}}}
_CORES = {LARGE: "16", CHOOSY: "100m"}
"""A node has 15.89 allocatable."""


async def add(cluster: Cluster, sort: str, count: int, *, nodes: int) -> None:
    """Create them with their status, each on a node."""
    path = f"/api/v1/namespaces/{sort}/pods"
    async with cluster.client() as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": sort}})
        await client.create_all(path, (write(sort, number, nodes=nodes) for number in range(count)))
        for number in range(count):
            await client.patch(f"{path}/{_name(number)}/status", {"status": {"phase": "Running"}})


def write(sort: str, number: int, *, nodes: int) -> dict[str, Any]:
    """Write a pod of an owner with the usual number of replicas; nothing checks that it fits on its node."""
    app = number // REPLICAS
    container = large_cluster.container("main", app, cpu=_CORES[sort], memory="64Mi")
    del container["volumeMounts"]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{sort}-{app}",
        "uid": large_cluster.uid_of(sort, app),
        "controller": True,
    }
    return {
        "metadata": {
            "name": _name(number),
            "namespace": sort,
            "labels": {"app": f"{sort}-{app}"},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [container],
            "nodeName": f"node-{number * 7 % nodes:04d}",
            "tolerations": large_cluster.TOLERATIONS,
            **_NEEDS[sort],
        },
    }


def _name(number: int) -> str:
    return f"misfit-{number:04d}"
