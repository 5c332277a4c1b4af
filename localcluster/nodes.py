"""Nodes that kwok simulates."""

from collections.abc import Mapping, Sequence
from typing import Any

from localcluster.build.products import KUBERNETES, KWOK
from localcluster.client import Client
from localcluster.components import LOST_NODE_LABEL

_READY = "Ready"
_NODE_INFO = {
    "kubeletVersion": f"v{KUBERNETES}",
    "containerRuntimeVersion": f"kwok://{KWOK.version}",
    "operatingSystem": "linux",
    "architecture": "amd64",
    **dict.fromkeys(
        ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion"), ""
    ),
}


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    images: Mapping[str, int] | None = None,
    unschedulable: bool = False,
    extended: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A Ready node; images map a name to its size in bytes."""
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi", **(extended or {})}
    well_known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if zone is not None:
        well_known |= {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "local"}
    spec: dict[str, Any] = {"providerID": f"kwok://{name}"}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**well_known, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": spec,
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": _READY, "status": "True", "reason": "KwokReady"}],
            "nodeInfo": _NODE_INFO,
            "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
        },
    }


async def add_nodes(client: Client, count: int, *, first: int = 0, zones: int = 3, **shape: Any) -> list[str]:
    """Create nodes spread over zones and wait until each is schedulable."""
    names = [f"node-{number:05d}" for number in range(first, first + count)]
    made = (node(name, zone=f"zone-{index % zones}", **shape) for index, name in enumerate(names))
    await client.create_all("/api/v1/nodes", made)
    own_taints = {taint["key"] for taint in shape.get("taints", ())}
    await client.wait(
        "/api/v1/nodes",
        lambda found: _usable(found["items"], own_taints) >= set(names),
        seconds=30 + count / 20,
        every=0.1 + count / 2000,
    )
    return names


async def lose(client: Client, name: str) -> None:
    """Take a node away from kwok: nobody renews its lease, or plays its pods, until it is found again."""
    await _mark_lost(client, name, "")


async def find_again(client: Client, name: str) -> None:
    await _mark_lost(client, name, None)


async def _mark_lost(client: Client, name: str, mark: str | None) -> None:
    await client.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {LOST_NODE_LABEL: mark}}})


def _usable(nodes: Sequence[Any], own_taints: set[str]) -> set[str]:
    return {
        found["metadata"]["name"]
        for found in nodes
        if is_ready(found) and {taint["key"] for taint in found["spec"].get("taints", ())} <= own_taints
    }


def is_ready(found: Any) -> bool:
    conditions = found["status"].get("conditions", ())
    return any(condition["type"] == _READY and condition["status"] == "True" for condition in conditions)
