"""The demonstration: a zone that was down while everything rolled out, and has just come back.

Some hundred pods of several Deployments run on the nodes of two zones, and the nodes of the third are empty:
Kubernetes alone does not change that.
"""

import asyncio
from typing import Any

from localcluster.client import Client, Object, Refused, all_of
from localcluster.errors import LocalClusterError

NAMESPACE = "shop"
ZONE = "zone-2"
REPLICAS = 25
SERVICES = (
    *("cart", "catalogue", "checkout", "images", "login", "mail"),
    *("orders", "prices", "reviews", "search", "stock", "web"),
)
BUDGET = 5
_NODES = "/api/v1/nodes"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
_PATIENCE = 300.0


async def settle(client: Client) -> int:
    """Roll everything out while the zone is down; returns the number of running pods."""
    try:
        await client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    except Refused as refused:
        raise LocalClusterError(
            f"the namespace {NAMESPACE} already exists: take the cluster down first"
        ) from refused
    await _close(client, away=True)
    await client.create_all(_DEPLOYMENTS, (_deployment(place, name) for place, name in enumerate(SERVICES)))
    await client.create_all(_BUDGETS, map(_budget, SERVICES))
    waiting = (client.wait(f"{_DEPLOYMENTS}/{name}", _is_ready, seconds=_PATIENCE) for name in SERVICES)
    await asyncio.gather(*waiting)
    return REPLICAS * len(SERVICES)


async def come_back(client: Client) -> None:
    """Bring the zone back."""
    await _close(client, away=False)


async def _close(client: Client, *, away: bool) -> None:
    found = await client.get(f"{_NODES}?labelSelector=topology.kubernetes.io/zone%3D{ZONE}")
    names = [node["metadata"]["name"] for node in found["items"]]
    await all_of(
        client.patch(f"{_NODES}/{name}", {"spec": {"unschedulable": away or None}}) for name in names
    )


def _deployment(place: int, name: str) -> Object:
    labels = {"app": name}
    requests = {"cpu": f"{240 + 38 * place}m", "memory": f"{256 + 64 * place}Mi"}
    container = {"name": name, "image": f"shop/{name}:1", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _budget(name: str) -> Object:
    spec = {"maxUnavailable": BUDGET, "selector": {"matchLabels": {"app": name}}}
    return {"metadata": {"name": name}, "spec": spec}


def _is_ready(deployment: Any) -> bool:  # noqa: ANN401 - an object of the API
    return bool(deployment["status"].get("readyReplicas") == REPLICAS)
