"""A fleet of ReplicaSets whose pods stand on nodes that were drawn, brought to life on a local cluster."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, ClassVar

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS
from localcluster.nodes import node
from tests.live.support.case_clusters import are_open
from tests.support import builders
from tests.support.builders import Object

PODS = "/api/v1/namespaces/default/pods"
_NODES = "/api/v1/nodes"
_REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
_REPLICAS = 10
_OPEN_WITHIN, _READY_WITHIN = 600.0, 600.0
_LOOK_EVERY = 2.0


@dataclass(frozen=True, kw_only=True)
class PlacedFleet:
    """So many nodes; equal numbers and seeds give equal fleets."""

    nodes: int
    seed: int

    cpu: ClassVar[str]
    memory: ClassVar[str]
    """What a node offers."""

    def draw(self, dice: Random) -> list[str]:
        """Draw the node of each pod."""
        raise NotImplementedError

    def ask(self, app: int) -> Mapping[str, Any]:
        """Return what each pod of this app requests."""
        raise NotImplementedError

    @cached_property
    def names(self) -> list[str]:
        return [f"node-{number:05d}" for number in range(self.nodes)]

    @cached_property
    def places(self) -> list[str]:
        """Return the node of each pod."""
        return self.draw(Random(self.seed))  # noqa: S311 - fleets are to be drawn again alike

    @property
    def workloads(self) -> range:
        return range(-(-len(self.places) // _REPLICAS))

    def list_owners(self) -> Iterator[Object]:
        for number in self.workloads:
            replicas = len(self.places[number * _REPLICAS : (number + 1) * _REPLICAS])
            yield builders.replica_set(_name_app(number), replicas=replicas, **self.ask(number))

    def list_pods(self, uids: Mapping[str, str]) -> Iterator[Object]:
        """List the pods of owners with these uids."""
        for number, place in enumerate(self.places):
            app = _name_app(number // _REPLICAS)
            pod = builders.pod(
                f"{app}-{number % _REPLICAS}",
                node=place,
                owned_by=builders.owner("ReplicaSet", app, uid=uids[app]),
                labels={"app": app},
                **self.ask(number // _REPLICAS),
            )
            pod.pop("status")
            yield pod


async def bring_up(cluster: Cluster, client: Client, fleet: PlacedFleet) -> None:
    """Create it, and wait until all pods are Ready.

    Meanwhile no controller runs: none creates pods of its own for owners that have none yet.
    """
    await client.create_all(_NODES, (node(name, cpu=fleet.cpu, memory=fleet.memory) for name in fleet.names))
    await client.wait(_NODES, are_open, seconds=_OPEN_WITHIN, every=_LOOK_EVERY)
    await cluster.stop(CONTROLLERS)
    await client.create_all(_REPLICA_SETS, fleet.list_owners())
    created = await client.get(_REPLICA_SETS)
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in created["items"]}
    await client.create_all(PODS, fleet.list_pods(uids))
    await cluster.start(CONTROLLERS)
    await client.wait(_REPLICA_SETS, _are_ready, seconds=_READY_WITHIN, every=_LOOK_EVERY)


def _are_ready(found: Object) -> bool:
    return all(
        owner["status"].get("readyReplicas", 0) == owner["spec"]["replicas"] for owner in found["items"]
    )


def _name_app(number: int) -> str:
    return f"app-{number:04d}"
