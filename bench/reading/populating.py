"""Fill a real API server with a large cluster, as its own controllers and kubelets would have written it.

One pod of each workload is created and given its status through the API server, under two names, so that it
keeps `managedFields` of two writers; that takes the server some 10 ms. Its siblings are put into etcd as
copies of what the server stored, byte by byte but for name, uid and node, which have equal lengths in all
replicas. Pods are bound by their spec: no scheduler is needed.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from tests.support.cluster import large_cluster

REPLICAS = 10
_OF_THE_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


async def populate(cluster: Cluster, *, pods: int, nodes: int) -> None:
    """Create namespaces, nodes, and pods with their status."""
    names = {str(large_cluster.workload(app)["metadata"]["namespace"]) for app in range(-(-pods // REPLICAS))}
    written = Pods(
        pods,
        lambda app: json.dumps(large_cluster.workload(app)),
        lambda text, number: large_cluster.fill_in(text, number, nodes=nodes),
    )
    await fill(cluster, names, map(large_cluster.node, range(nodes)), written)


@dataclass(frozen=True)
class Pods:
    """Pods as text: one per workload with placeholders, and the values of each replica."""

    count: int
    write: Callable[[int], str]
    fill_in: Callable[[str, int], str]

    def list_workloads(self) -> Iterator[range]:
        """Return the numbers of each workload's pods."""
        for first in range(0, self.count, REPLICAS):
            yield range(first, min(first + REPLICAS, self.count))

    def list_marks(self, number: int) -> list[str]:
        """Return what distinguishes a pod from its siblings; the uid is last."""
        return self.fill_in("-@TAIL@ @NODE@ @UID@", number).split()


async def fill(
    cluster: Cluster, namespaces: Iterable[str], nodes: Iterable[dict[str, Any]], pods: Pods
) -> None:
    """Create the pods of these texts."""
    async with cluster.client() as client, aiohttp.ClientSession(cluster.design.etcd_url) as etcd:
        await client.create_all("/api/v1/namespaces", ({"metadata": {"name": name}} for name in namespaces))
        await client.create_all("/api/v1/nodes", map(_own, nodes))
        await all_of(_add_workload(client, etcd, numbers, pods) for numbers in pods.list_workloads())


async def read_stored(etcd: aiohttp.ClientSession, key: bytes) -> bytes:
    """Return an object as the API server has stored it."""
    found = await _call(etcd, "range", key=key)
    return base64.b64decode(found["kvs"][0]["value"])


async def store(etcd: aiohttp.ClientSession, key: bytes, value: bytes) -> None:
    """Write an object to etcd directly; the API server notifies its watches."""
    await _call(etcd, "put", key=key, value=value)


async def measure_pods(cluster: Cluster) -> float:
    """The mean size of a pod's JSON, as a page of the API server brings it."""
    async with cluster.client() as client:
        page = await client.get("/api/v1/pods?limit=500")
    sizes = [len(json.dumps(pod, separators=(",", ":"))) for pod in page["items"]]
    return sum(sizes) / len(sizes)


async def _add_workload(client: Client, etcd: aiohttp.ClientSession, numbers: range, pods: Pods) -> None:
    first, *others = numbers
    created = (await _create(client, first, pods))["metadata"]
    key = f"/registry/pods/{created['namespace']}/{created['name']}".encode()
    stored = await read_stored(etcd, key)
    old = (created["uid"], *pods.list_marks(first))
    for number in others:
        marks = pods.list_marks(number)
        new = (marks[-1], *marks)
        await store(etcd, _exchange(key, old, new), _exchange(stored, old, new))


async def _create(client: Client, number: int, pods: Pods) -> dict[str, Any]:
    body = json.loads(pods.fill_in(pods.write(number // REPLICAS), number))
    status = {"status": body.pop("status")}
    path = f"/api/v1/namespaces/{body['metadata']['namespace']}/pods"
    await client.create(f"{path}?fieldManager=kube-controller-manager", _own(body))
    path = f"{path}/{body['metadata']['name']}/status"
    return await client.patch(f"{path}?fieldManager=kubelet", status)


def _own(body: dict[str, Any]) -> dict[str, Any]:
    """Return the object without the fields that the server sets."""
    kept = {key: value for key, value in body["metadata"].items() if key not in _OF_THE_SERVER}
    return {**body, "metadata": kept}


def _exchange(content: bytes, old: Sequence[str], new: Sequence[str]) -> bytes:
    for before, after in zip(old, new, strict=True):
        content = content.replace(before.encode(), after.encode())
    return content


async def _call(etcd: aiohttp.ClientSession, method: str, **parts: bytes) -> dict[str, Any]:
    body = {name: base64.b64encode(part).decode() for name, part in parts.items()}
    async with etcd.post(f"/v3/kv/{method}", json=body) as answer:
        answer.raise_for_status()
        said: dict[str, Any] = await answer.json()
        return said
