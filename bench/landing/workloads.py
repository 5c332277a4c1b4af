"""A large cluster for forecasts: realistic nodes and pods; of ten workloads five are plain.

kube-scheduler spreads plain ones by its defaults, through their Service and their ReplicaSet. Of the others,
the pods of two prefer not to share a node, those of one must not, those of one are spread over zones and
nodes. Those of the last are spread, must be near their own kind, must not share a node with it, and prefer
their team.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.reading.decoding import fill
from bench.reading.populating import REPLICAS
from reberth.cluster import kinds, snapshot
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES, NODES, PODS, Resource
from reberth.cluster.pods.requests import Version
from reberth.cluster.snapshot import Snapshot
from tests.support.cluster import large_cluster

VERSION: Version = (1, 36)
SORTS = 10
PLAIN, RICH = 4, 3
"""An application's number modulo SORTS tells its constraints."""
_APART, _SPREAD = 2, 1

_HOSTNAME, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


@dataclass(frozen=True)
class Crowd:
    """A cluster, and the places of each application's pods in it."""

    snapshot: Snapshot
    apps: tuple[tuple[int, ...], ...]


def gather(nodes: int, pods: int) -> Crowd:
    cache = Cache(version=VERSION)
    apps = range(-(-pods // REPLICAS))
    fill(cache, NODES, large_cluster.node_pages(nodes))
    fill(cache, PODS, large_cluster.as_pages("Pod", _write_pods(pods, nodes=nodes)))
    fill(cache, _resource(kinds.SERVICE), large_cluster.as_pages("Service", map(_write_service, apps)))
    fill(
        cache,
        _resource(kinds.REPLICA_SET),
        large_cluster.as_pages("ReplicaSet", map(_write_replica_set, apps)),
    )
    taken = snapshot.take(cache, now=0.0)
    places: list[list[int]] = [[] for _ in apps]
    for place, row in enumerate(taken.pods.rows):
        places[int(row.template.labels["app"].removeprefix("service-"))].append(place)
    return Crowd(taken, tuple(map(tuple, places)))


def _resource(kind: kinds.Kind[Any, Any]) -> Resource[Any]:
    return next(each for each in ALL_RESOURCES if each.kind is kind)


def _write_pods(count: int, *, nodes: int) -> Iterator[str]:
    for app in range(-(-count // REPLICAS)):
        text = json.dumps(_write_workload(app), separators=(",", ":"))
        for number in range(app * REPLICAS, min((app + 1) * REPLICAS, count)):
            yield large_cluster.fill_in(text, number, nodes=nodes)


def _write_workload(app: int) -> dict[str, Any]:
    """Write what a forecast reads of a pod: without managedFields, which no cache keeps."""
    pod = large_cluster.workload(app)
    del pod["metadata"]["managedFields"]
    spec, sort = pod["spec"], app % SORTS
    if sort in {_SPREAD, RICH}:
        spec["topologySpreadConstraints"] = _spread(app)
    if sort in {_APART, RICH}:
        spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [_near(_HOSTNAME, {"app": f"service-{app}"})]}}
    if sort == RICH:
        spec["affinity"]["podAffinity"] = _company(app, pod["metadata"]["namespace"])
    return pod


def _spread(app: int) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": f"service-{app}"}}
    zones = {"topologyKey": _ZONE, "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    hosts = {"topologyKey": _HOSTNAME, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    return [{**zones, "labelSelector": selector}, {**hosts, "labelSelector": selector}]


def _company(app: int, team: str) -> dict[str, Any]:
    liked = {"weight": 50, "podAffinityTerm": _near(_ZONE, {"team": team})}
    return {_REQUIRED: [_near(_ZONE, {"app": f"service-{app}"})], _PREFERRED: [liked]}


def _near(topology_key: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}


def _write_service(app: int) -> str:
    return _write(app, f"service-{app}", {"selector": {"app": f"service-{app}"}})


def _write_replica_set(app: int) -> str:
    """Write the owner that the pods name."""
    labels = {"app": f"service-{app}", "pod-template-hash": "7d9c6b5f8"}
    spec = {"selector": {"matchLabels": labels}, "template": large_cluster.template_of(_write_workload(app))}
    return _write(app, f"service-{app}-7d9c6b5f8", spec, uid=large_cluster.uid_of("rs", app), labels=labels)


def _write(app: int, name: str, spec: Mapping[str, Any], **fields: object) -> str:
    meta = {
        "name": name,
        "namespace": f"team-{app % 300}",
        "uid": large_cluster.uid_of(name),
        "resourceVersion": str(app + 1),
        **fields,
    }
    return json.dumps({"metadata": meta, "spec": spec})
