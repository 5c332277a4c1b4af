"""Karpenter's kinds in a cluster without Karpenter, and the part that Karpenter would play."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from localcluster.client import Client, all_of
from tests.live.support.definitions import DEFINITIONS, remove_definitions
from tests.support.builders import Object
from tests.support.rescheduler.karpenter import POOL_LABEL, node_claim, node_pool

CLAIMS, POOLS = "/apis/karpenter.sh/v1/nodeclaims", "/apis/karpenter.sh/v1/nodepools"
POOL = f"{POOLS}/default"
_INITIALIZED = "karpenter.sh/initialized"


@asynccontextmanager
async def pooled(client: Client, nodes: list[str], *, consolidatable: list[str]) -> AsyncIterator[None]:
    """Put nodes into a NodePool whose disruption budget is 0; nothing of it is left afterwards."""
    kinds = {"NodeClaim": CLAIMS, "NodePool": POOLS}
    await all_of(client.create(DEFINITIONS, _define(kind)) for kind in kinds)
    for path in kinds.values():
        await client.wait(path, lambda found: "items" in found)
    pool = await client.create(POOLS, node_pool(budgets=[{"nodes": "0"}]))
    now, uid = time.time(), pool["metadata"]["uid"]
    claims = [
        node_claim(name, consolidatable=name in consolidatable, changed=now, pool_uid=uid) for name in nodes
    ]
    await client.create_all(CLAIMS, claims)
    await _label(client, nodes, {POOL_LABEL: "default", _INITIALIZED: "true"})
    try:
        yield
    finally:
        await _label(client, nodes, {POOL_LABEL: None, _INITIALIZED: None})
        await remove_definitions(client, [f"{kind.lower()}s.karpenter.sh" for kind in kinds])


async def _label(client: Client, nodes: list[str], labels: dict[str, str | None]) -> None:
    await all_of(client.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}}) for name in nodes)


def _define(kind: str) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    plural = f"{kind.lower()}s"
    return {
        "metadata": {"name": f"{plural}.karpenter.sh"},
        "spec": {
            "group": "karpenter.sh",
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
