"""Hubs drawn at random: clusters in every state, and bindings about which each controller has to decide.

A few seconds and a few replicas more or less decide nothing: times are far from every threshold, and rooms
very different in size. A tight hub has little room instead, and nobody but the scheduler acts. At first only
one controller has a reason to act on a binding: which of two would write first is chance.
"""

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from federation.api import APPLIED_PLACEMENT, NOT_READY, Placement
from federation.api.labels import LABELS
from reberth.values.timestamp import write_time
from tests.support.builders import Object
from tests.support.federation.clusters import AGGREGATED, DEPLOYMENT, DUPLICATED, DYNAMIC, groups, weighted

FINALIZER = "reberth.dev/test"
ROOMS = (410_000, 170_000, 90_000, 43_000, 21_000)
LONG_AGO, LATELY, LATER = -7_200, -300, 7_200
_CALM = ("well", "well", "well", "lost", "shunned")
_DRIVING = ("tainted", "gone", "leaving")
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


class _Draft:
    """One hub while it is drawn."""

    def __init__(self, seed: int, now: float) -> None:
        self.dice = random.Random(seed)
        self.now = now
        self.is_tight = seed % 4 == 3
        self.names = [f"m{number}" for number in range(1, self.dice.randint(3, 5) + 1)]
        states = _CALM if self.is_tight else (*_CALM, *_DRIVING)
        drawn = [*self.dice.choices(states, k=len(self.names) - 2), "well", "well"]
        self.states = dict(zip(self.names, self.dice.sample(drawn, len(drawn)), strict=True))
        self.hub = DrawnHub([], [], [], [], [], [], [], [])
        self.movable: list[str] = []

    @property
    def calm(self) -> list[str]:
        """The clusters that no workload has to leave."""
        return [name for name in self.names if self.states[name] not in _DRIVING]

    @property
    def driving(self) -> list[str]:
        return [name for name in self.names if self.states[name] in _DRIVING]

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


def draw_hub(seed: int, *, now: float) -> DrawnHub:
    draft = _Draft(seed, now)
    for place, name in enumerate(draft.names):
        draft.hub.clusters.append(_draw_cluster(draft, name, place))
        if draft.states[name] == "leaving":
            draft.hub.leaving.append(name)
    stories = _TIGHT if draft.is_tight else _STORIES
    for number in range(draft.dice.randint(5, 12)):
        story = draft.dice.choice(stories)
        draft.hub.describes.append(f"w{number:02} {story.__name__.removeprefix('_')}")
        story(draft, f"w{number:02}")
    if not draft.is_tight:
        _draw_rebalancers(draft)
    return draft.hub


def _draw_cluster(draft: _Draft, name: str, place: int) -> Object:
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


def _bind(
    draft: _Draft,
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
    copies = [_copy(cluster, count) for cluster, count in (at if ready is None else ready).items()]
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


def _copy(cluster: str, replicas: int) -> Object:
    health = {"applied": True, "health": "Healthy" if replicas else "Unhealthy"}
    return {"clusterName": cluster, **health, "status": {"availableReplicas": replicas}}


def _share(draft: _Draft, clusters: list[str]) -> dict[str, int]:
    return {name: draft.dice.randint(1, 5) for name in clusters}


def _new(draft: _Draft, name: str) -> None:
    priority: Object = {"schedulePriority": {"priority": draft.dice.choice([0, 0, 10])}}
    _bind(draft, name, draft.draw_placement(), {}, replicas=draft.dice.randint(1, 9), **priority)


def _settled(draft: _Draft, name: str) -> None:
    at = _share(draft, draft.pick())
    _bind(draft, name, {**weighted(**at), "clusterAffinity": {"clusterNames": sorted(at)}}, at)
    draft.movable.append(name)


def _movable(draft: _Draft, name: str) -> None:
    """In order where it is, and elsewhere after a fresh scheduling."""
    at = _share(draft, draft.pick(most=2))
    _bind(draft, name, draft.dice.choice([DYNAMIC, AGGREGATED]), at)
    draft.movable.append(name)


def _driven(draft: _Draft, name: str) -> None:
    """In one cluster that it has to leave, if it does not tolerate the taint, and in calm ones."""
    leaves = draft.dice.sample(draft.driving, min(1, len(draft.driving)))
    at = _share(draft, [*leaves, *draft.pick(most=2)[: draft.dice.randint(0, 2)]])
    tolerating = draft.dice.choice([{}, {}, {"tolerationSeconds": 100}, {"tolerationSeconds": 36_000}])
    more: Object = {}
    if draft.dice.random() < 0.3:
        more["clusterTolerations"] = [{"key": "lost", "operator": "Exists", **tolerating}]
    purge: Object = draft.dice.choice([{}, {}, {"failover": {"cluster": {"purgeMode": "Directly"}}}])
    _bind(draft, name, {**draft.dice.choice([DYNAMIC, AGGREGATED]), **more}, at or {"m1": 1}, **purge)


def _resized(draft: _Draft, name: str) -> None:
    _bind(draft, name, DYNAMIC, _share(draft, draft.pick()), replicas=draft.dice.randint(1, 12))


def _edited(draft: _Draft, name: str) -> None:
    _bind(draft, name, draft.draw_placement(), _share(draft, draft.pick()), applied=DUPLICATED)


def _vanished(draft: _Draft, name: str) -> None:
    _bind(draft, name, draft.dice.choice([DYNAMIC, AGGREGATED]), _share(draft, [*draft.pick(most=2), "mx"]))


def _suspended(draft: _Draft, name: str) -> None:
    suspension: Object = {"suspension": {"scheduling": True}}
    at = _share(draft, draft.pick())
    _bind(draft, name, draft.draw_placement(), at, applied=DUPLICATED, **suspension)


def _foreign(draft: _Draft, name: str) -> None:
    _bind(draft, name, DYNAMIC, _share(draft, draft.pick()), replicas=20, schedulerName="other")


def _unclaimed(draft: _Draft, name: str) -> None:
    _bind(draft, name, DYNAMIC, _share(draft, draft.pick()), replicas=20, labels={"any": "label"})


def _triggered(draft: _Draft, name: str) -> None:
    more: Object = {"rescheduleTriggeredAt": draft.at(LATELY)}
    if draft.dice.random() < 0.7:
        more["handover"] = {"timeoutSeconds": 600}
    _bind(draft, name, DYNAMIC, _share(draft, draft.pick(most=1)), **more)


def _evicting(draft: _Draft, name: str) -> None:
    """An eviction that has moved: kept, replaced, at its end, of another producer, or of a lost member."""
    new = draft.dice.choice(draft.calm)
    old = draft.dice.choice([each for each in draft.names if each != new])
    since = draft.dice.choice([LATELY, LONG_AGO])
    task = {
        "fromCluster": old,
        "purgeMode": draft.dice.choice(["Gracefully", "Gracefully", "Directly"]),
        "replicas": 3,
        "reason": "TaintUntolerated",
        "producer": draft.dice.choice(["taint-manager", "somebody"]),
        "creationTimestamp": draft.at(since),
    }
    ready = {old: 3, new: draft.dice.choice([0, 3])}
    _bind(draft, name, AGGREGATED, {new: 3}, ready=ready, gracefulEvictionTasks=[task])
    draft.hub.works.extend(_draw_work(name, cluster, count) for cluster, count in ready.items())


def _draw_work(name: str, cluster: str, replicas: int) -> Object:
    """The Work of a copy, in the namespace of its cluster; evictions end by what it says."""
    identifier = {
        "ordinal": 0,
        "version": "v1",
        "kind": "Deployment",
        "resource": "deployments",
        "name": name,
    }
    copy = _copy(cluster, replicas)
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


def _handing_over(draft: _Draft, name: str) -> None:
    """A handover in time or not, with new and old copies that are ready or not."""
    old, new = draft.dice.sample(draft.calm, 2)
    until = draft.dice.choice([LATER, LATELY])
    policy: Object = draft.dice.choice([{}, {"failover": {"handover": {"onTimeout": "LetGo"}}}])
    handover = {
        "timeoutSeconds": 600,
        "clusters": [{"name": old, "replicas": 3}],
        "until": draft.at(until),
        "origin": [{"name": old, "replicas": 3}],
    }
    ready = {old: draft.dice.choice([0, 3, 3]), new: draft.dice.choice([0, 3])}
    placement = draft.dice.choice([AGGREGATED, {**AGGREGATED, "clusterAffinity": {"clusterNames": [new]}}])
    _bind(draft, name, placement, {new: 3}, ready=ready, handover=handover, **policy)


def _away(draft: _Draft, name: str) -> None:
    """A workload that could return to its first group: now, later, or after a return that failed."""
    home, other = draft.dice.sample(draft.calm, 2)
    since = draft.dice.choice([LONG_AGO, LATELY, None])
    noted = {"failback": {"affinityName": "primary", "since": draft.at(since)}} if since else {}
    more: Object = {"failover": {"failback": {"stabilizationSeconds": 3_600}}}
    if draft.dice.random() < 0.3:
        more["handover"] = {"returns": 1, "returnedAt": draft.at(LATELY)}
    placement = {**groups(primary=[home], backup=[other]), **draft.dice.choice([DUPLICATED, DYNAMIC])}
    status = {"schedulerObservingAffinityName": "backup", **noted}
    _bind(draft, name, placement, {other: 3}, status=status, **more)


def _selected(draft: _Draft, name: str) -> None:
    """A Deployment that a policy selects, without a binding."""
    draft.hub.templates.append(_deployment(name, draft.dice.randint(1, 9)))
    draft.hub.policies.append(_policy(name, draft.draw_placement()))


def _changed(draft: _Draft, name: str) -> None:
    """A binding whose policy or template says something else by now."""
    at = _share(draft, draft.pick(most=2))
    claim = {LABELS["PropagationPolicy"]: f"id-{name}"}
    count = draft.dice.choice([sum(at.values()), draft.dice.randint(1, 9)])
    draft.hub.templates.append(_deployment(name, count, labels=claim))
    draft.hub.policies.append(_policy(name, draft.draw_placement(), uid=f"id-{name}"))
    _bind(draft, name, DYNAMIC, at, labels=claim)


def _deployment(name: str, replicas: int, *, labels: dict[str, str] | None = None) -> Object:
    matched = {"app": name}
    pod = {"metadata": {"labels": matched}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {**matched, **(labels or {})}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": matched}, "template": pod},
    }


def _policy(name: str, placement: Object, *, uid: str = "") -> Object:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": "default"}
    labels = {LABELS["PropagationPolicy"]: uid or f"id-{name}"}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "labels": labels},
        "spec": {"resourceSelectors": [selector], "placement": placement},
    }


def _draw_rebalancers(draft: _Draft) -> None:
    """At most two, which name different workloads: who of two asks first is chance."""
    names = draft.dice.sample(draft.movable, len(draft.movable))
    for number in range(draft.dice.choice([0, 1, 1, 2])):
        mine, names = names[:3], names[3:]
        workloads = [_reference(name) for name in [*mine, *draft.dice.choice([[], ["nobody"]])]]
        if not workloads:
            return
        spec: Object = {"workloads": workloads}
        spec |= draft.dice.choice(
            [{}, {"maxMovingReplicas": 4}, {"makeBeforeBreak": False}, {"dryRun": True}]
        )
        draft.hub.rebalancers.append(
            {
                "apiVersion": "apps.karmada.io/v1alpha1",
                "kind": "WorkloadRebalancer",
                "metadata": {"name": f"r{number}"},
                "spec": spec,
            }
        )


def _reference(name: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name}


Story = Callable[[_Draft, str], None]
_TIGHT: tuple[Story, ...] = (_new, _new, _resized, _settled, _edited, _suspended)
_STORIES: tuple[Story, ...] = (
    _new,
    _settled,
    _movable,
    _movable,
    _driven,
    _driven,
    _resized,
    _edited,
    _vanished,
    _suspended,
    _foreign,
    _unclaimed,
    _triggered,
    _evicting,
    _evicting,
    _handing_over,
    _handing_over,
    _away,
    _away,
    _selected,
    _changed,
)


def describe(hub: DrawnHub) -> str:
    """For a failed test: what was drawn."""
    return json.dumps({"stories": hub.describes, "clusters": hub.clusters}, indent=1)
