"""A fleet to plan in, drawn whole from one number: uneven nodes, and pods that would rather be elsewhere.

Of ten nodes one holds so many pods that it is over-utilised and one so few that it is under-utilised. Half of
the nodes have an SSD; of five workloads one prefers these and was placed without regard to that. Every
workload has ten replicas, a ReplicaSet and a Service; of five one has a PodDisruptionBudget.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from bench.reading.decoding import fill
from bench.reading.populating import REPLICAS, Pods
from reberth.cluster import kinds, snapshot
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES, Resource
from reberth.cluster.pods.requests import Version
from reberth.cluster.snapshot import Snapshot
from tests.support.cluster import large_cluster

VERSION: Version = (1, 36)
NOW = 1_795_003_200.0  # 2026-11-18T12:00:00Z
PODS_PER_NODE = 27.5

Json = dict[str, Any]

_LONG_AGO = "2026-11-01T00:00:00Z"
_NAMESPACES = 300
# How many pods a node holds, by the last digit of its number; on all others 27 and 28 take turns.
_UNEVEN = {3: 45, 7: 10}
_BUDGETED = _WISHING = 5
_SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
_WISH = {
    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": _SSD}]}
}
_OWNED = {"managedFields", "generateName"}


@dataclass(frozen=True)
class Fleet:
    """So many nodes; equal numbers and seeds give equal bytes."""

    nodes: int
    seed: int = 1
    share: float = 1.0
    """How many of the usual pods each node has."""

    @cached_property
    def places(self) -> list[int]:
        """Return the number of each pod's node."""
        found = [node for node in range(self.nodes) for _ in range(round(self.share * _count_on(node)))]
        Random(self.seed).shuffle(found)  # noqa: S311 - fleets are to be drawn again alike
        return found

    @property
    def apps(self) -> range:
        return range(-(-len(self.places) // REPLICAS))

    @property
    def written(self) -> Pods:
        """Return a pod of each workload, with placeholders where its replicas differ."""
        return Pods(
            len(self.places),
            lambda app: json.dumps(_write_pod(app, self.seed), separators=(",", ":")),
            self._fill_in,
        )

    def list_namespaces(self) -> Iterator[str]:
        return map(_name_namespace, range(_NAMESPACES))

    def list_nodes(self) -> Iterator[Json]:
        return map(_write_node, range(self.nodes))

    def list_owners(self) -> Iterator[Json]:
        return (_write_replica_set(app, self.seed) for app in self.apps)

    def list_services(self) -> Iterator[Json]:
        return map(_write_service, self.apps)

    def list_budgets(self) -> Iterator[Json]:
        return map(_write_budget, self.apps[::_BUDGETED])

    def take(self) -> Snapshot:
        return snapshot.take(self.fill_cache(), now=NOW)

    def fill_cache(self) -> Cache:
        """Read the fleet as a mirror does."""
        cache = Cache(version=VERSION)
        for resource, pages in self.list_pages():
            fill(cache, resource, pages)
        return cache

    def list_pages(self) -> Iterator[tuple[Resource[Any], Iterable[bytes]]]:
        """Write the lists of each kind, as an API server sends them."""
        written: dict[kinds.Kind[Any, Any], Iterable[str]] = {
            kinds.NODE: map(json.dumps, self.list_nodes()),
            kinds.POD: self._list_pods(),
            kinds.REPLICA_SET: map(json.dumps, self.list_owners()),
            kinds.SERVICE: map(json.dumps, self.list_services()),
            kinds.BUDGET: map(json.dumps, self.list_budgets()),
        }
        resources = {each.kind: each for each in ALL_RESOURCES}
        for kind, texts in written.items():
            yield resources[kind], large_cluster.as_pages(kind.name, texts)

    def _list_pods(self) -> Iterator[str]:
        written = self.written
        for app, numbers in enumerate(written.list_workloads()):
            text = written.write(app)
            for number in numbers:
                yield written.fill_in(text, number)

    def _fill_in(self, text: str, number: int) -> str:
        marks = {
            "@TAIL@": f"{number:06x}",
            "@NODE@": _name_node(self.places[number]),
            "@VERSION@": str(1_000_000 + number),
            "@UID@": large_cluster.uid_of("pod", number),
        }
        for mark, value in marks.items():
            text = text.replace(mark, value)
        return text


def _count_on(node: int) -> int:
    return _UNEVEN.get(node % 10, int(PODS_PER_NODE) + node // 10 % 2)


def _write_node(number: int) -> Json:
    node = large_cluster.node(number)
    node["metadata"] |= {"name": _name_node(number), "creationTimestamp": _LONG_AGO}
    node["metadata"]["labels"] |= {
        "disk": "ssd" if number % 4 < 2 else "hdd",  # as many among the crowded ones as among the others
        "kubernetes.io/hostname": _name_node(number),
    }
    return node


def _write_pod(app: int, seed: int) -> Json:
    """Write the fields of a pod that are read, without managedFields and without what would protect it."""
    dice = Random(f"{seed} {app}")  # noqa: S311 - likewise
    pod = large_cluster.workload(app)
    meta, spec = pod["metadata"], pod["spec"]
    for name in _OWNED:
        del meta[name]
    meta |= {"name": f"{_name_owner(app)}-@TAIL@", "creationTimestamp": _LONG_AGO}
    spec |= {"affinity": _WISH if app % _WISHING == 0 else {}, "volumes": []}
    requests = {"cpu": f"{dice.randint(1, 5)}00m", "memory": f"{dice.randint(1, 8) * 256}Mi"}
    (container, *_) = spec["containers"]
    del container["volumeMounts"]
    spec["containers"] = [container | {"resources": {"requests": requests}}]
    pod["status"]["containerStatuses"] = pod["status"]["containerStatuses"][:1]
    return pod


def _write_replica_set(app: int, seed: int) -> Json:
    labels = {"app": f"service-{app}", "pod-template-hash": "7d9c6b5f8"}
    template = large_cluster.template_of(_write_pod(app, seed))
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    made = _write(_name_owner(app), app, spec)
    return {**made, "metadata": {**made["metadata"], "labels": labels}}


def _write_service(app: int) -> Json:
    return _write(f"service-{app}", app, {"selector": {"app": f"service-{app}"}})


def _write_budget(app: int) -> Json:
    status = {
        "disruptionsAllowed": 2,
        "currentHealthy": REPLICAS,
        "desiredHealthy": REPLICAS - 2,
        "expectedPods": REPLICAS,
    }
    spec = {"maxUnavailable": 2, "selector": {"matchLabels": {"app": f"service-{app}"}}}
    return _write(f"service-{app}", app, spec) | {"status": status}


def _write(name: str, app: int, spec: Json) -> Json:
    meta = {
        "name": name,
        "namespace": _name_namespace(app),
        "uid": large_cluster.uid_of("rs", app),
        "resourceVersion": str(app + 1),
    }
    return {"metadata": meta, "spec": spec}


def _name_namespace(app: int) -> str:
    return f"team-{app % _NAMESPACES}"


def _name_node(number: int) -> str:
    return f"node-{number:05d}"


def _name_owner(app: int) -> str:
    return f"service-{app}-7d9c6b5f8"
