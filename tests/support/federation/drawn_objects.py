"""The objects of drawn hubs, and the dice by which clusters and placements are drawn."""

import random
from typing import Any, NamedTuple

import msgspec

from federation.api import APPLIED_PLACEMENT, NOT_READY, Placement
from federation.api.labels import LABELS
from reberth.values.timestamp import write_time
from tests.support.builders import Object
from tests.support.federation.clusters import AGGREGATED, DEPLOYMENT, DUPLICATED, DYNAMIC, weighted

FINALIZER = "reberth.dev/test"
ROOMS = (410_000, 170_000, 90_000, 43_000, 21_000)
LONG_AGO, LATELY, LATER = -7_200, -300, 7_200
CALM = ("well", "well", "well", "lost", "shunned")
DRIVING = ("tainted", "gone", "leaving")
NO_EXECUTE = "NoExecute"


class DrawnHub(NamedTuple):
    """The objects to create; those with a status get it afterwards, and some clusters are then deleted."""

    clusters: list[Object]
    bindings: list[Object]
    templates: list[Object]
    policies: list[Object]
    works: list[Object]
    rebalancers: list[Object]
    leaving: list[str]
    describes: list[str]


class Draft:
    """One hub while it is drawn."""

    def __init__(self, seed: int, now: float) -> None:
        self.dice = random.Random(seed)
        self.now = now
        self.is_tight = seed % 4 == 3
        self.names = [f"m{number}" for number in range(1, self.dice.randint(3, 5) + 1)]
        states = CALM if self.is_tight else (*CALM, *DRIVING)
        drawn = [*self.dice.choices(states, k=len(self.names) - 2), "well", "well"]
        self.states = dict(zip(self.names, self.dice.sample(drawn, len(drawn)), strict=True))
        self.hub = DrawnHub([], [], [], [], [], [], [], [])
        self.movable: list[str] = []

    @property
    def calm(self) -> list[str]:
        """The clusters that no workload has to leave."""
        return [name for name in self.names if self.states[name] not in DRIVING]

    @property
    def driving(self) -> list[str]:
        return [name for name in self.names if self.states[name] in DRIVING]

    def at(self, seconds: float) -> str:
        return write_time(self.now + seconds)

    def pick(self, *, least: int = 1, most: int = 3) -> list[str]:
        """Pick calm clusters."""
        count = self.dice.randint(least, min(most, len(self.calm)))
        return sorted(self.dice.sample(self.calm, count))

    def pick_any(self) -> list[str]:
        return sorted(self.dice.sample(self.names, self.dice.randint(2, len(self.names))))

    def draw_placement(self) -> Object:
        among = {"clusterAffinity": {"clusterNames": self.pick_any()}}
        weights = {name: self.dice.randint(1, 3) for name in self.pick_any()}
        kind = self.dice.choice([DUPLICATED, DYNAMIC, AGGREGATED, weighted(**weights)])
        return {**kind, **self.dice.choice([among, {}])}


def draw_cluster(draft: Draft, name: str, place: int) -> Object:
    state = draft.states[name]
    room = draft.dice.randint(4, 14) if draft.is_tight else ROOMS[place]
    taints = []
    if state == "tainted":
        taints = [{"key": "lost", "effect": NO_EXECUTE, "timeAdded": draft.at(LONG_AGO)}]
    if state in {"lost", "gone"}:
        taints = [{"key": NOT_READY, "effect": "NoSchedule"}]
    if state == "gone":
        taints.append({"key": NOT_READY, "effect": NO_EXECUTE, "timeAdded": draft.at(LATELY)})
    if state == "shunned":
        taints = [{"key": "shunned", "effect": "NoSchedule"}]
    is_lost = state in {"lost", "gone"}
    ready, reason = ("False", "ClusterNotReachable") if is_lost else ("True", "ClusterReady")
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": "drawn"}
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, **({"finalizers": [FINALIZER]} if state == "leaving" else {})},
        "spec": {"syncMode": "Push", **({"taints": taints} if taints else {})},
        "status": {
            "conditions": [{**condition, "lastTransitionTime": draft.at(LATELY)}],
            "apiEnablements": [DEPLOYMENT],
            "resourceSummary": {"allocatable": {"pods": str(room)}},
        },
    }


def bind(
    draft: Draft,
    name: str,
    placement: Object,
    at: dict[str, int],
    *,
    replicas: int = 0,
    applied: Object | None = None,
    ready: dict[str, int] | None = None,
    status: Object | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> None:
    """Add a binding that was scheduled long ago; `ready` are the copies that report so many replicas."""
    text = msgspec.json.encode(msgspec.convert(applied or placement, Placement)).decode()
    copies = [copy_in(cluster, count) for cluster, count in (at if ready is None else ready).items()]
    last = {"lastScheduledTime": draft.at(LONG_AGO), "schedulerObservedGeneration": 1} if at else {}
    draft.hub.bindings.append(
        {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {
                "name": f"{name}-deployment",
                "labels": {"binding.karmada.io/managed-by": "test"} if labels is None else labels,
                "annotations": {APPLIED_PLACEMENT: text} if at else {},
            },
            "spec": {
                "resource": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "namespace": "default",
                    "name": name,
                },
                "replicas": replicas or max(1, sum(at.values())),
                "placement": placement,
                "clusters": [{"name": each, "replicas": count} for each, count in at.items()],
                **spec,
            },
            "status": {**last, "aggregatedStatus": copies, **(status or {})},
        }
    )


def copy_in(cluster: str, replicas: int) -> Object:
    health = {"applied": True, "health": "Healthy" if replicas else "Unhealthy"}
    return {"clusterName": cluster, **health, "status": {"availableReplicas": replicas}}


def share(draft: Draft, clusters: list[str]) -> dict[str, int]:
    return {name: draft.dice.randint(1, 5) for name in clusters}


def draw_work(name: str, cluster: str, replicas: int) -> Object:
    """The Work of a copy, in the namespace of its cluster; evictions end by what it says."""
    identifier = {
        "ordinal": 0,
        "version": "v1",
        "kind": "Deployment",
        "resource": "deployments",
        "name": name,
    }
    copy = copy_in(cluster, replicas)
    told = {"identifier": identifier, "health": copy["health"], "status": copy["status"]}
    binding = "resourcebinding.karmada.io"
    ties = {f"{binding}/name": f"{name}-deployment", f"{binding}/namespace": "default"}
    return {
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "Work",
        "metadata": {"name": name, "namespace": f"karmada-es-{cluster}", "annotations": ties},
        "spec": {"workload": {"manifests": []}},
        "status": {"manifestStatuses": [told]},
    }


def deployment(name: str, replicas: int, *, labels: dict[str, str] | None = None) -> Object:
    matched = {"app": name}
    pod = {"metadata": {"labels": matched}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {**matched, **(labels or {})}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": matched}, "template": pod},
    }


def policy_for(name: str, placement: Object, *, uid: str = "") -> Object:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": "default"}
    labels = {LABELS["PropagationPolicy"]: uid or f"id-{name}"}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "labels": labels},
        "spec": {"resourceSelectors": [selector], "placement": placement},
    }


def reference(name: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}
