"""Sixty nodes out of balance, drawn from one number and brought to life: a tenth is hot, a fifth cold.

Pods are put on their nodes and then adopted by their ReplicaSets, so that the imbalance is the one drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from localcluster.client import Client
from localcluster.nodes import node
from tests.live.support.case_clusters import are_open
from tests.support import builders
from tests.support.builders import Object

PODS = "/api/v1/namespaces/default/pods"
_NODES = "/api/v1/nodes"
_REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
_REPLICAS = 10
_CPU = 16
_SIZES = (100, 200, 300, 400)  # thousandths of a cpu; each takes its share of memory too
_MEMORY_OF_A_THOUSANDTH = 4  # Mi: a node offers 64 Gi beside its 16 cpu
_HOT, _COLD = 0.1, 0.2
# Pods on a hot and on a cold node, relative to all other nodes.
_MORE, _LESS = 2.2, 0.25
_CREATED_WITHIN = 180.0


@dataclass(frozen=True)
class Fleet:
    """So many nodes and pods; equal numbers and seeds give equal fleets."""

    nodes: int
    pods: int
    seed: int

    @cached_property
    def names(self) -> list[str]:
        return [f"node-{number:03d}" for number in range(self.nodes)]

    @cached_property
    def places(self) -> list[str]:
        """Return the node of each pod."""
        dice = Random(self.seed)  # noqa: S311 - fleets are to be drawn again alike
        names = dice.sample(self.names, len(self.names))
        hot, cold = round(_HOT * self.nodes), round(_COLD * self.nodes)
        weights = [_MORE] * hot + [_LESS] * cold + [1.0] * (self.nodes - hot - cold)
        whole = sum(weights)
        found = [
            name
            for name, part in zip(names, weights, strict=True)
            for _ in range(round(self.pods * part / whole))
        ]
        found += dice.choices(names[hot + cold :], k=max(0, self.pods - len(found)))
        dice.shuffle(found)
        return found[: self.pods]

    def list_owners(self) -> Iterator[Object]:
        for number in range(-(-self.pods // _REPLICAS)):
            yield builders.replica_set(_name_app(number), replicas=_REPLICAS, **_ask(number))

    def list_pods(self) -> Iterator[Object]:
        for number, place in enumerate(self.places):
            app = number // _REPLICAS
            name = f"{_name_app(app)}-{number % _REPLICAS}"
            yield builders.pod(name, node=place, labels={"app": _name_app(app)}, **_ask(app))


async def bring_up(client: Client, fleet: Fleet) -> None:
    """Create it, and wait until all pods are Ready."""
    await client.create_all(_NODES, (node(name, cpu=str(_CPU), memory="64Gi") for name in fleet.names))
    await client.create_all(PODS, fleet.list_pods())
    await client.create_all(_REPLICA_SETS, fleet.list_owners())
    await client.wait(_NODES, are_open, seconds=_CREATED_WITHIN)
    for owner in fleet.list_owners():
        path = f"{_REPLICA_SETS}/{owner['metadata']['name']}"
        await client.wait(path, _is_ready, seconds=_CREATED_WITHIN)


def _is_ready(found: Object) -> bool:
    ready: bool = found["status"].get("readyReplicas", 0) == found["spec"]["replicas"]
    return ready


def _name_app(number: int) -> str:
    return f"app-{number:03d}"


def _ask(app: int) -> dict[str, Any]:
    size = _SIZES[app % len(_SIZES)]
    return {"cpu": f"{size}m", "memory": f"{size * _MEMORY_OF_A_THOUSANDTH}Mi"}
