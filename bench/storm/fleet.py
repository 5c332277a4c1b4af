"""Five thousand nodes of which a fifth is full and the others are new: the fewest pods with so many moves.

It is what a cluster looks like after it was scaled up. Each full node has to give away half of its pods, and
the workloads of its pods are drawn: moves that begin at the same time share neither nodes nor workloads.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS
from localcluster.nodes import node
from tests.live.support.case_clusters import are_open
from tests.support import builders
from tests.support.builders import Object

LOW, HIGH = 20, 50
"""The thresholds in per cent: a full node gives away half of its pods, an empty one takes two."""
_NODES = "/api/v1/nodes"
_PODS = "/api/v1/namespaces/default/pods"
_REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
_REPLICAS = 10
_ON_A_FULL_NODE = 8
_CPU, _MEMORY = "8", "32Gi"
_POD: Mapping[str, Any] = {"cpu": "1", "memory": "4Gi"}
_FULL = 0.2
_OPEN_WITHIN, _READY_WITHIN = 600.0, 600.0
_LOOK_EVERY = 2.0


@dataclass(frozen=True)
class Fleet:
    """So many nodes; equal numbers and seeds give equal fleets."""

    nodes: int
    seed: int

    @cached_property
    def names(self) -> list[str]:
        return [f"node-{number:05d}" for number in range(self.nodes)]

    @cached_property
    def places(self) -> list[str]:
        """Return the node of each pod."""
        dice = Random(self.seed)  # noqa: S311 - fleets are to be drawn again alike
        full = dice.sample(self.names, round(_FULL * self.nodes))
        found = [name for name in full for _ in range(_ON_A_FULL_NODE)]
        dice.shuffle(found)
        return found

    @property
    def moves(self) -> int:
        """How many moves there are until no node is above the threshold."""
        return len(self.places) // 2

    @property
    def workloads(self) -> range:
        return range(-(-len(self.places) // _REPLICAS))

    def list_owners(self) -> Iterator[Object]:
        for number in self.workloads:
            replicas = len(self.places[number * _REPLICAS : (number + 1) * _REPLICAS])
            yield builders.replica_set(_name_app(number), replicas=replicas, **_POD)

    def list_pods(self, uids: Mapping[str, str]) -> Iterator[Object]:
        """List the pods of owners with these uids."""
        for number, place in enumerate(self.places):
            app = _name_app(number // _REPLICAS)
            owner = builders.owner("ReplicaSet", app, uid=uids[app])
            pod = builders.pod(
                f"{app}-{number % _REPLICAS}", node=place, owned_by=owner, labels={"app": app}, **_POD
            )
            pod.pop("status")
            yield pod


async def bring_up(cluster: Cluster, client: Client, fleet: Fleet) -> None:
    """Create it, and wait until all pods are Ready.

    Meanwhile no controller runs: none creates pods of its own for owners that have none yet.
    """
    await client.create_all(_NODES, (node(name, cpu=_CPU, memory=_MEMORY) for name in fleet.names))
    await client.wait(_NODES, are_open, seconds=_OPEN_WITHIN, every=_LOOK_EVERY)
    await cluster.stop(CONTROLLERS)
    await client.create_all(_REPLICA_SETS, fleet.list_owners())
    created = await client.get(_REPLICA_SETS)
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in created["items"]}
    await client.create_all(_PODS, fleet.list_pods(uids))
    await cluster.start(CONTROLLERS)
    await client.wait(_REPLICA_SETS, _are_ready, seconds=_READY_WITHIN, every=_LOOK_EVERY)


def _are_ready(found: Object) -> bool:
    return all(
        owner["status"].get("readyReplicas", 0) == owner["spec"]["replicas"] for owner in found["items"]
    )


def _name_app(number: int) -> str:
    return f"app-{number:04d}"
