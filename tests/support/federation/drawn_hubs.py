"""Hubs drawn at random: clusters in every state, and bindings about which each controller has to decide.

A few seconds and a few replicas more or less decide nothing: times are far from every threshold, and rooms
very different in size. A tight hub has little room instead, and nobody but the scheduler acts. At first only
one controller has a reason to act on a binding: which of two would write first is chance.
"""

import json
from collections.abc import Callable

from federation.api.labels import LABELS
from tests.support.builders import Object
from tests.support.federation.clusters import AGGREGATED, DUPLICATED, DYNAMIC, groups, weighted
from tests.support.federation.drawn_objects import (
    LATELY,
    LATER,
    LONG_AGO,
    Draft,
    DrawnHub,
    bind,
    deployment,
    draw_cluster,
    draw_work,
    policy_for,
    reference,
    share,
)


def draw_hub(seed: int, *, now: float) -> DrawnHub:
    draft = Draft(seed, now)
    for place, name in enumerate(draft.names):
        draft.hub.clusters.append(draw_cluster(draft, name, place))
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


def _new(draft: Draft, name: str) -> None:
    priority: Object = {"schedulePriority": {"priority": draft.dice.choice([0, 0, 10])}}
    bind(draft, name, draft.draw_placement(), {}, replicas=draft.dice.randint(1, 9), **priority)


def _settled(draft: Draft, name: str) -> None:
    at = share(draft, draft.pick())
    bind(draft, name, {**weighted(**at), "clusterAffinity": {"clusterNames": sorted(at)}}, at)
    draft.movable.append(name)


def _movable(draft: Draft, name: str) -> None:
    """In order where it is, and elsewhere after a fresh scheduling."""
    at = share(draft, draft.pick(most=2))
    bind(draft, name, draft.dice.choice([DYNAMIC, AGGREGATED]), at)
    draft.movable.append(name)


def _driven(draft: Draft, name: str) -> None:
    """In one cluster that it has to leave, if it does not tolerate the taint, and in calm ones."""
    leaves = draft.dice.sample(draft.driving, min(1, len(draft.driving)))
    at = share(draft, [*leaves, *draft.pick(most=2)[: draft.dice.randint(0, 2)]])
    tolerating = draft.dice.choice([{}, {}, {"tolerationSeconds": 100}, {"tolerationSeconds": 36_000}])
    more: Object = {}
    if draft.dice.random() < 0.3:
        more["clusterTolerations"] = [{"key": "lost", "operator": "Exists", **tolerating}]
    purge: Object = draft.dice.choice([{}, {}, {"failover": {"cluster": {"purgeMode": "Directly"}}}])
    bind(draft, name, {**draft.dice.choice([DYNAMIC, AGGREGATED]), **more}, at or {"m1": 1}, **purge)


def _resized(draft: Draft, name: str) -> None:
    bind(draft, name, DYNAMIC, share(draft, draft.pick()), replicas=draft.dice.randint(1, 12))


def _edited(draft: Draft, name: str) -> None:
    bind(draft, name, draft.draw_placement(), share(draft, draft.pick()), applied=DUPLICATED)


def _vanished(draft: Draft, name: str) -> None:
    bind(draft, name, draft.dice.choice([DYNAMIC, AGGREGATED]), share(draft, [*draft.pick(most=2), "mx"]))


def _suspended(draft: Draft, name: str) -> None:
    suspension: Object = {"suspension": {"scheduling": True}}
    at = share(draft, draft.pick())
    bind(draft, name, draft.draw_placement(), at, applied=DUPLICATED, **suspension)


def _foreign(draft: Draft, name: str) -> None:
    bind(draft, name, DYNAMIC, share(draft, draft.pick()), replicas=20, schedulerName="other")


def _unclaimed(draft: Draft, name: str) -> None:
    bind(draft, name, DYNAMIC, share(draft, draft.pick()), replicas=20, labels={"any": "label"})


def _triggered(draft: Draft, name: str) -> None:
    more: Object = {"rescheduleTriggeredAt": draft.at(LATELY)}
    if draft.dice.random() < 0.7:
        more["handover"] = {"timeoutSeconds": 600}
    bind(draft, name, DYNAMIC, share(draft, draft.pick(most=1)), **more)


def _evicting(draft: Draft, name: str) -> None:
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
    bind(draft, name, AGGREGATED, {new: 3}, ready=ready, gracefulEvictionTasks=[task])
    draft.hub.works.extend(draw_work(name, cluster, count) for cluster, count in ready.items())


def _handing_over(draft: Draft, name: str) -> None:
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
    bind(draft, name, placement, {new: 3}, ready=ready, handover=handover, **policy)


def _away(draft: Draft, name: str) -> None:
    """A workload that could return to its first group: now, later, or after a return that failed."""
    home, other = draft.dice.sample(draft.calm, 2)
    since = draft.dice.choice([LONG_AGO, LATELY, None])
    noted = {"failback": {"affinityName": "primary", "since": draft.at(since)}} if since else {}
    more: Object = {"failover": {"failback": {"stabilizationSeconds": 3_600}}}
    if draft.dice.random() < 0.3:
        more["handover"] = {"returns": 1, "returnedAt": draft.at(LATELY)}
    placement = {**groups(primary=[home], backup=[other]), **draft.dice.choice([DUPLICATED, DYNAMIC])}
    status = {"schedulerObservingAffinityName": "backup", **noted}
    bind(draft, name, placement, {other: 3}, status=status, **more)


def _selected(draft: Draft, name: str) -> None:
    """A Deployment that a policy selects, without a binding."""
    draft.hub.templates.append(deployment(name, draft.dice.randint(1, 9)))
    draft.hub.policies.append(policy_for(name, draft.draw_placement()))


def _changed(draft: Draft, name: str) -> None:
    """A binding whose policy or template says something else by now."""
    at = share(draft, draft.pick(most=2))
    claim = {LABELS["PropagationPolicy"]: f"id-{name}"}
    count = draft.dice.choice([sum(at.values()), draft.dice.randint(1, 9)])
    draft.hub.templates.append(deployment(name, count, labels=claim))
    draft.hub.policies.append(policy_for(name, draft.draw_placement(), uid=f"id-{name}"))
    bind(draft, name, DYNAMIC, at, labels=claim)


def _draw_rebalancers(draft: Draft) -> None:
    """At most two, which name different workloads: who of two asks first is chance."""
    names = draft.dice.sample(draft.movable, len(draft.movable))
    for number in range(draft.dice.choice([0, 1, 1, 2])):
        mine, names = names[:3], names[3:]
        workloads = [reference(name) for name in [*mine, *draft.dice.choice([[], ["nobody"]])]]
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


Story = Callable[[Draft, str], None]
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
