"""Every cause for which the federation moves workloads, each for many of them at once.

All workloads are in one member and go to another one; ready replicas are counted by watches in the members.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from localproduct.ready_pods import hearing
from tests.live.support.hub_and_members import Place, deployment, eventually
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, REBALANCERS
from tests.live.support.ready_fleet import ReadyFleet, Shortage
from tests.live.support.rebalancing_members import cordon, entries, rebalancer, scheduled, status
from tests.support.builders import Object

REPLICAS = 2
_LABEL = {"fleet": "many"}
_WITHIN = 400.0
_FULL = {"key": "full", "effect": "NoSchedule"}
_DRAINED = {"key": "drained", "effect": "NoExecute"}
_SELECTOR = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": _LABEL}}
_POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "many"},
    "spec": {
        "resourceSelectors": [_SELECTOR],
        "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
    },
}
_ONE_OF_TIER = {
    "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "a"}}},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}
_GROUPS = {
    "clusterAffinities": [
        {"affinityName": "primary", "clusterNames": ["member2"]},
        {"affinityName": "backup", "clusterNames": ["member1"]},
    ]
}
_FAILBACK = {"failback": {"stabilizationSeconds": 2}}
_NO_LONGER = ("clusterAffinity", "clusterAffinities", "spreadConstraints")


class Moved(NamedTuple):
    """What a move of all workloads was like."""

    cause: str
    workloads: int
    seconds: float
    shortage: Shortage

    def describe(self) -> str:
        return (
            f"{self.cause}: {self.workloads} workloads in {self.seconds:.1f} s; {self.shortage.workloads} "
            f"below desired, {self.shortage.missing} replicas at the worst, {self.shortage.seconds:.2f} s "
            "together"
        )


class ManyMoves:
    """Workloads that move together, as people or failures have them move."""

    def __init__(self, place: Place, names: Sequence[str], fleet: ReadyFleet) -> None:
        self._place = place
        self._hub = place.hub
        self._names = names
        self._fleet = fleet
        self._number = 0
        self._wanted: Object = {}

    async def make(self, cause: "Cause") -> Moved:
        """Have all workloads in the origin, then move them. The workloads end in the destination."""
        return await self._place.follow(self._make(cause))

    async def _make(self, cause: "Cause") -> Moved:
        await self._stand(cause)
        self._fleet.begin()
        began = time.monotonic()
        await cause.act(self)
        await self._settle(cause.destination)
        seconds = time.monotonic() - began
        moved = Moved(cause.name, len(self._names), seconds, self._fleet.shortage)
        await self.clear_members()
        return moved

    async def _stand(self, cause: "Cause") -> None:
        if not self._fleet.is_in(cause.origin):
            await self.edit(clusterAffinity={"clusterNames": [cause.origin]})
            await self._settle(cause.origin)
        await cause.prepare(self)
        await self._settle(cause.origin)

    async def _settle(self, member: str) -> None:
        """Wait until all replicas are ready there, none is elsewhere, and nothing holds or evicts any."""
        await self._fleet.gather(member, within=_WITHIN)
        names = {f"{name}-deployment" for name in self._names}

        def is_settled(found: Any) -> bool:
            ours = [each for each in found["items"] if each["metadata"]["name"] in names]
            return len(ours) == len(names) and all(_rests(each, member, self._wanted) for each in ours)

        await self._hub.wait(BINDINGS, is_settled, seconds=_WITHIN, every=0.1 + len(names) / 300)

    async def edit(self, *, failover: Object | None = None, **placement: Any) -> None:
        """Change the placement of all, and nothing else of it stays."""
        self._wanted = dict(placement)
        if affinity := placement.get("clusterAffinity"):
            placement["clusterAffinity"] = {"clusterNames": None, "labelSelector": None, **affinity}
        wanted = {**dict.fromkeys(_NO_LONGER), **placement}
        await self._hub.patch(f"{POLICIES}/many", {"spec": {"placement": wanted, "failover": failover}})

    async def label(self, **tiers: str | None) -> None:
        for member, tier in tiers.items():
            await self._hub.patch(f"{CLUSTERS}/{member}", {"metadata": {"labels": {"tier": tier}}})

    async def taint(self, member: str, *taints: Object) -> None:
        await self._hub.patch(f"{CLUSTERS}/{member}", {"spec": {"taints": list(taints)}})

    async def drop(self, member: str) -> None:
        """Delete a Cluster, and make it known again once it is gone."""
        path = f"{CLUSTERS}/{member}"
        found = await self._hub.get(path)
        await self._hub.delete(path)
        await eventually(self._hub, path, _is_gone, within=_WITHIN)
        await self._end_namespace(f"/api/v1/namespaces/karmada-es-{member}")
        spec = {name: found["spec"][name] for name in ("syncMode", "apiEndpoint", "secretRef")}
        await self._hub.create(CLUSTERS, {**found, "metadata": {"name": member}, "spec": spec, "status": {}})

    async def _end_namespace(self, path: str) -> None:
        """Stand in for the controller of namespaces, which the hub does not have."""
        found = await eventually(self._hub, path, lambda one: one["metadata"].get("deletionTimestamp"))
        await self._hub.request("PUT", f"{path}/finalize", {**found, "spec": {"finalizers": []}})

    async def rebalance(self, **spec: Any) -> str:
        self._number += 1
        name = f"many-{self._number}"
        await self._hub.create(REBALANCERS, rebalancer(name, workloadSelectors=[_SELECTOR], **spec))
        return name

    async def fail_to_rebalance(self) -> None:
        """Rebalance into a member that has no room for any pod, until all of them have returned."""
        await cordon(self._place, "member2", unschedulable=True)
        name = await self.rebalance(handoverTimeoutSeconds=5)
        count = len(self._names)
        await self._hub.wait(
            f"{REBALANCERS}/{name}",
            lambda found: len(_unready(found)) == count,
            seconds=_WITHIN,
            every=0.1 + count / 300,
        )

    async def clear_members(self) -> None:
        """Take away what a move has set on the members: those that stay behind move nothing by that."""
        for member in self._place.members:
            await eventually(self._hub, f"{CLUSTERS}/{member}", _is_ready, within=60)
            await self.taint(member)
        await cordon(self._place, "member2", unschedulable=None)


Step = Callable[[ManyMoves], Awaitable[object]]


class Cause(NamedTuple):
    """Why workloads move: what is so before, and what happens then."""

    name: str
    origin: str
    destination: str
    act: Step
    prepare: Step


async def _be_labelled(moves: ManyMoves) -> None:
    await moves.label(member1=None, member2="a", member3="a")
    await moves.edit(**_ONE_OF_TIER)


async def _be_in_backup(moves: ManyMoves, failover: Object | None = None) -> None:
    """The primary group takes nothing new; those that are in the backup group stay."""
    await moves.taint("member2", _FULL)
    await moves.edit(failover=failover, **_GROUPS)


async def _be_in_backup_for_now(moves: ManyMoves) -> None:
    await _be_in_backup(moves, _FAILBACK)


async def _fail(moves: ManyMoves) -> None:
    await moves.taint("member2")
    await moves.fail_to_rebalance()


async def _rebalance(moves: ManyMoves) -> None:
    await moves.taint("member2")
    await moves.rebalance()


def _edit(failover: Object | None = None, **placement: Any) -> Step:
    return lambda moves: moves.edit(failover=failover, **placement)


_NOTHING: Step = lambda moves: moves.label()  # noqa: E731 - nothing is to be so before
CAUSES = (
    Cause(
        "policy edit", "member1", "member2", _edit(clusterAffinity={"clusterNames": ["member2"]}), _NOTHING
    ),
    Cause("label change", "member2", "member3", lambda moves: moves.label(member2="b"), _be_labelled),
    Cause("cluster deleted", "member3", "member2", lambda moves: moves.drop("member3"), _be_labelled),
    Cause(
        "drain by taint",
        "member2",
        "member1",
        lambda moves: moves.taint("member2", _DRAINED),
        _edit(**_GROUPS),
    ),
    Cause("rebalancer, the new copies never get ready", "member1", "member1", _fail, _be_in_backup),
    Cause("rebalancer", "member1", "member2", _rebalance, _be_in_backup),
    Cause("failback", "member1", "member2", lambda moves: moves.taint("member2"), _be_in_backup_for_now),
)
BREAK_FIRST = Cause(
    "policy edit with `mode: BreakFirst`, to compare",
    "member2",
    "member1",
    _edit({"handover": {"mode": "BreakFirst"}}, clusterAffinity={"clusterNames": ["member1"]}),
    _NOTHING,
)


@asynccontextmanager
async def many_moves(place: Place, count: int) -> AsyncIterator[ManyMoves]:
    """So many Deployments, and whoever follows their pods."""
    names = [f"many-{number:03d}" for number in range(count)]
    await place.hub.create(POLICIES, _POLICY)
    await place.hub.create_all(DEPLOYMENTS, map(_make, names))
    fleet = ReadyFleet(dict.fromkeys(names, REPLICAS))
    async with hearing(place.clusters, fleet.hear):
        await fleet.gather("member1", within=_WITHIN)
        yield ManyMoves(place, names, fleet)


def _make(name: str) -> Object:
    made = deployment(name, REPLICAS)
    made["metadata"]["labels"] |= _LABEL
    return made


def _rests(binding: Object, member: str, wanted: Object) -> bool:
    """The scheduler has seen what was wanted last, and has nothing under way."""
    spec, observed = binding["spec"], status(binding).get("schedulerObservedGeneration")
    is_asked = all(spec["placement"].get(name) == value for name, value in wanted.items())
    if not is_asked or observed != binding["metadata"]["generation"]:
        return False
    holds = spec.get("gracefulEvictionTasks") or spec.get("handover", {}).get("clusters")
    return scheduled(binding) == {member: REPLICAS} and not holds


def _unready(found: Any) -> list[Object]:
    return [each for each in entries(found).values() if each.get("reason") == "NotReadyInTime"]


def _is_gone(found: Any) -> bool:
    return found is None


def _is_ready(cluster: Any) -> bool:
    conditions = {each["type"]: each["status"] for each in status(cluster).get("conditions", ())}
    return conditions.get("Ready") == "True" and bool(status(cluster).get("apiEnablements"))
