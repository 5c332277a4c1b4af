"""A cluster on which pods move when a test says so: each has its own node, and leaves it once tainted.

async with standing(audit) as stage:
    await stage.add([builders.deployment("web", replicas=2, **APART)])
    victims = await stage.pick()
    await stage.drive_out(victims)

The API server's audit log has every call of the daemons, and every state that they wrote.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from localcluster import audit_log, manifests
from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.state_dir import running
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from reberth.cluster.kinds import HISTORIES as EVICTION_HISTORIES
from reberth.cluster.kinds import LEDGERS
from reberth.cluster.pods.identity import Signature
from reberth.memory.history import start_history
from reberth.memory.ledger import LEDGER_NAME
from reberth.records import HistoryStatus, Outcome, WorkloadIdentity
from tests.live.support.contending_daemons import RESTLESS
from tests.live.support.daemon_process import HISTORIES, PODS, install
from tests.live.support.extender_process import MANIFESTS
from tests.live.support.memory_objects import keep, sent
from tests.live.support.move_audit import MoveAudit
from tests.live.support.moves import all_ready
from tests.support.builders import Object, deployment
from tests.support.memory.objects import past

_HOST = "kubernetes.io/hostname"
_TERM = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "topologyKey": _HOST}
APART: Mapping[str, Any] = {
    "cpu": "100m",
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": _TERM}]
        }
    },
}
"""Fields of a pod that has its node to itself where there is room.

If it were required, moves would be refused because another pod came to their destination first.
"""
_RED = {"key": "team", "value": "red", "effect": "NoSchedule"}
_NODES = "/api/v1/nodes"
_PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
}
_HISTORIES = "/apis/reberth.dev/v1alpha1/namespaces/default/evictionhistories"
_LONGEST = 120.0


def drive_policy(*rates: str) -> Object:
    """A policy that moves every pod off a tainted node at once, as often as the rates allow."""
    limits = {**RESTLESS["limits"], "rates": {"cluster": [*rates], "clockSkew": "1s"}}
    return {**RESTLESS, "level": 5, "limits": limits}


def owner_of(pod: Object) -> str:
    name: str = pod["metadata"]["labels"]["app"]
    return name


class MoveStage:
    """The cluster and what stands on it."""

    def __init__(self, cluster: Cluster, client: Client, audit: Path) -> None:
        self.cluster = cluster
        self.client = client
        self.audit = audit

    def read_calls(self, *, since: float = 0.0) -> list[audit_log.Call]:
        return [call for call in audit_log.read_log(self.audit) if call.received >= since]

    async def add(self, owners: Sequence[Object]) -> None:
        """Create these owners, and wait until all of their pods are Ready."""
        for owner in owners:
            await self.client.create(_PATHS[owner["kind"]], owner)
        for owner in owners:
            where = f"{PODS}?labelSelector=app%3D{owner['metadata']['name']}"
            await self.client.wait(where, partial(all_ready, count=owner["spec"]["replicas"]))

    async def prove(self, names: Collection[str]) -> None:
        """Give these Deployments a history with a granted move: then many of them are tried at once."""
        for name in names:
            meta = (await self.client.get(f"{_PATHS['Deployment']}/{name}"))["metadata"]
            root = WorkloadIdentity("apps/v1", "Deployment", meta["name"], meta["uid"])
            history = start_history(Signature("default", root, root))
            moved = replace(history, status=HistoryStatus(past=(past(Outcome.SAME),)))
            await keep(self.client, EVICTION_HISTORIES, sent(EVICTION_HISTORIES, moved))

    async def list_pods(self) -> list[Object]:
        """List the living ones by name."""
        found = (await self.client.get(PODS))["items"]
        living = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(living, key=lambda pod: str(pod["metadata"]["name"]))

    async def pick(self, owners: Collection[str] = (), *, but: Collection[str] = ()) -> dict[str, Object]:
        """Choose a pod of each owner that stands alone on its node, and not on one of these."""
        pods = await self.list_pods()
        crowd = Counter(pod["spec"].get("nodeName") for pod in pods)
        found: dict[str, Object] = {}
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if crowd[node] == 1 and node not in but and (not owners or owner_of(pod) in owners):
                found.setdefault(owner_of(pod), pod)
        assert found.keys() >= set(owners)
        return found

    async def drive_out(self, pods: Iterable[Object]) -> None:
        """Taint the nodes of these pods."""
        await self._taint([pod["spec"]["nodeName"] for pod in pods], [_RED])

    async def calm(self, nodes: Collection[str] | None = None) -> None:
        """Take the taints off these nodes, or off all."""
        found = (await self.client.get(_NODES))["items"]
        tainted = [node["metadata"]["name"] for node in found if node["spec"].get("taints")]
        await self._taint([name for name in tainted if nodes is None or name in nodes], None)

    async def finish(self) -> None:
        """Wait until all moves have ended, then take all taints off and wait for what that changes."""
        async with asyncio.timeout(_LONGEST):
            while await self.list_unfinished():
                await asyncio.sleep(0.2)
        await self.calm()
        await self.settle()

    async def settle(self) -> None:
        """Wait until no move is open, no debit Tentative, every pod Ready, and none on a tainted node."""
        async with asyncio.timeout(_LONGEST):
            while await self.list_unfinished() or await self._count_displaced():
                await asyncio.sleep(0.3)

    async def list_unfinished(self) -> list[str]:
        """List the moves that are open, and those whose debit is Tentative."""
        tentative = [debit["move"] for debit in await self._list_debits() if debit["state"] == "Tentative"]
        return [*tentative, *(move["id"] for move in await self.list_opened())]

    async def forget_histories(self, owners: Collection[str]) -> None:
        for one in await self.list_histories():
            if one["spec"]["workload"]["name"] in owners:
                await self.client.delete(f"{_HISTORIES}/{one['metadata']['name']}")

    async def forget_ledger(self) -> None:
        await self.client.delete(f"{LEDGERS.path()}/{LEDGER_NAME}")

    async def forget_refusals(self) -> None:
        """Take out of the histories what forbids to try a move again soon."""
        for one in await self.list_histories():
            path = f"{_HISTORIES}/{one['metadata']['name']}/status"
            await self.client.patch(path, {"status": {"refused": None, "givenUpUntil": None}})

    async def list_disagreements(self, *, since: float) -> list[str]:
        """Tell of which moves that began since then audit log, histories and ledger do not say the same."""
        audit = MoveAudit(self.read_calls())
        begun = audit.list_begun(since=since)
        granted = {eviction.move for eviction in audit.evictions if eviction.is_granted} & begun
        histories = await self.list_histories()
        ended = {move["id"]: move for one in histories for move in one.get("status", {}).get("past", ())}
        evicted = {move for move, entry in ended.items() if "evictedAt" in entry} & begun
        debited = {debit["move"] for debit in await self._list_debits()} & begun
        return [
            *(f"{move} was granted, and its history does not say so" for move in granted - evicted),
            *(f"{move} was never granted, and its history says evicted" for move in evicted - granted),
            *(f"{move} was granted, and has no debit" for move in granted - debited),
            *(f"{move} was never granted, and has a debit" for move in debited - granted),
        ]

    async def list_histories(self) -> list[Object]:
        found: list[Object] = (await self.client.get(HISTORIES))["items"]
        return found

    async def list_opened(self) -> list[Object]:
        return [move for one in await self.list_histories() for move in one.get("status", {}).get("open", ())]

    async def _list_debits(self) -> list[Object]:
        found = (await self.client.get(LEDGERS.path()))["items"]
        return [debit for one in found for debit in one.get("status", {}).get("debits", ())]

    async def _count_displaced(self) -> int:
        nodes, pods = (await self.client.get(_NODES))["items"], await self.list_pods()
        red = {node["metadata"]["name"] for node in nodes if node["spec"].get("taints")}
        missing = not all_ready({"items": pods}, len(pods))
        return missing + sum(pod["spec"].get("nodeName") in red for pod in pods)

    async def _taint(self, nodes: Iterable[str], taints: list[Object] | None) -> None:
        await all_of(self.client.patch(f"{_NODES}/{name}", {"spec": {"taints": taints}}) for name in nodes)


@asynccontextmanager
async def standing(
    audit: Path, *, nodes: int, users: Sequence[str] = (RESCHEDULER_ACCOUNT,)
) -> AsyncIterator[MoveStage]:
    """A cluster with what the manifests define, and an audit log of these users."""
    flags = audit_log.write_audit_flags(audit, users, memory=True)
    async with running(nodes=nodes, flags=flags) as cluster, cluster.client() as client:
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
        yield MoveStage(cluster, client, audit)


@asynccontextmanager
async def populated(audit: Path, workloads: int, *, replicas: int) -> AsyncIterator[MoveStage]:
    """With Deployments that have been moved before, whose pods need a second to be Ready."""
    async with standing(audit, nodes=workloads * (replicas + 2)) as stage:
        slow = {"annotations": {"localcluster.reberth.dev/starts-after": "1s"}}
        names = [f"web-{number:02}" for number in range(workloads)]
        await stage.add([deployment(name, replicas=replicas, **slow, **APART) for name in names])
        await stage.prove(names)
        yield stage
