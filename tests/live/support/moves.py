"""Run one move on a real cluster: a workload to move, quick settings, the command as a process."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from localcluster import credentials
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.faults import WRITES, FaultProxy, Match
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.lease import Leadership
from reberth.cluster.kinds import LEDGERS
from reberth.config.settings import parse
from reberth.memory.notes import ANNOTATION, read_notes
from reberth.values.refusal import Refused
from rescheduler.commands.move import lead_by_hand, open_execution_context, perform_move
from rescheduler.execution.executor import Executor
from rescheduler.execution.orders import compose_order
from rescheduler.moves.outcome import MoveReport
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from tests.live.support.fault_client import standing_before
from tests.live.support.memory_objects import tidy_client
from tests.support.builders import Object, pdb, replicated
from tests.support.repository import ROOT

# The next leader waits for as long as a killed one held it; a loaded machine needs time to renew it.
BRIEF_LEASE = {"duration": "4s", "renewDeadline": "3500ms", "retryEvery": "300ms", "stuckAfter": "10m"}
QUICK = {
    "apiVersion": "reberth.dev/v1alpha1",
    "kind": "ReschedulerSettings",
    "extender": "none",
    "minReady": "300ms",  # kwok's pods stay Ready
    "lease": {"namespace": "kube-system", **BRIEF_LEASE},
    "api": {"deadline": 5, "tries": 2, "requestsPerSecond": 1000, "burst": 1000},
}
POLICY = {
    "apiVersion": "reberth.dev/v1alpha1",
    "kind": "ReschedulerPolicy",
    "limits": {"rates": {"cluster": ["1000 per 1h"]}},
}
# What a move writes: its history, the ledger, the note, the eviction; not the lease, not the Events.
MOVES_WRITES = Match(
    verb=WRITES, path=re.compile(r"/(evictionhistories|moveledgers|nodes/|pods/[^/]+/eviction)")
)
NODES = [f"node-{number:05d}" for number in range(50)]
_PODS = "/api/v1/namespaces/default/pods"


def settings(**changes: Any) -> ReschedulerSettings:
    return parse(yaml.safe_dump({**QUICK, **changes}).encode(), ReschedulerSettings)


def policy(**changes: Any) -> ReschedulerPolicy:
    return parse(yaml.safe_dump({**POLICY, **changes}).encode(), ReschedulerPolicy)


@asynccontextmanager
async def proxied(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    """A fault proxy before the cluster's API server, with one client: `mover`."""
    async with standing_before(cluster) as proxy:
        server = await proxy.open("mover")
        token = {"token": credentials.read_token(cluster.design)}
        credentials.write_kubeconfig(cluster.design, "admin", token, server=server, name="mover")
        yield proxy


@dataclass
class Workload:
    """A Deployment of a few pods, all of them Ready."""

    client: Client
    cluster: Cluster
    name: str
    uids: frozenset[str]

    async def pods(self) -> list[Object]:
        """The living ones."""
        found = await self.client.get(f"{_PODS}?labelSelector=app%3D{self.name}")
        return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]

    async def pick(self) -> Object:
        """The first of them by name."""
        return min(await self.pods(), key=lambda pod: str(pod["metadata"]["name"]))

    async def lost(self) -> int:
        """How many of the first pods are gone or going."""
        return len(self.uids - {pod["metadata"]["uid"] for pod in await self.pods()})

    async def history(self) -> Object:
        found = await self.client.get("/apis/reberth.dev/v1alpha1/namespaces/default/evictionhistories")
        theirs = [one for one in found["items"] if one["spec"]["workload"]["name"] == self.name]
        return dict(theirs[0].get("status", {})) if theirs else {}

    async def debits(self) -> dict[str, str]:
        """The states of the debits by move."""
        found = await self.client.get(LEDGERS.path())
        debits = [debit for one in found["items"] for debit in one.get("status", {}).get("debits", ())]
        return {debit["move"]: debit["state"] for debit in debits}

    async def noted(self) -> dict[str, str]:
        """The node of each move that has left a note."""
        found = await self.client.get("/api/v1/nodes")
        nodes = [(node["metadata"]["name"], read_notes(_annotation(node))) for node in found["items"]]
        return {
            note.mark.id: name
            for name, notes in nodes
            if not isinstance(notes, Refused)
            for note in notes.ours
            if note.mark
        }


@asynccontextmanager
async def workload(
    cluster: Cluster,
    name: str,
    *,
    kind: str = "Deployment",
    replicas: int = 2,
    budget: int | None = None,
    annotations: Mapping[str, str] | None = None,
) -> AsyncIterator[Workload]:
    """A Deployment or StatefulSet, with a budget of so many that may be missing; nothing is left of it."""
    apps = f"/apis/apps/v1/namespaces/default/{kind.lower()}s"
    budgets = "/apis/policy/v1/namespaces/default"
    async with tidy_client(cluster) as client:
        body = replicated(kind, name, replicas=replicas, annotations=annotations, cpu="100m")
        made = await client.create(apps, body)
        if budget is not None:
            await client.create(f"{budgets}/poddisruptionbudgets", pdb(name, max_unavailable=budget))
        found = await client.wait(f"{_PODS}?labelSelector=app%3D{name}", lambda f: all_ready(f, replicas))
        if budget is not None:
            path = f"{budgets}/poddisruptionbudgets/{name}"
            await client.wait(path, lambda f: f["status"].get("currentHealthy") == replicas)
        uids = frozenset(pod["metadata"]["uid"] for pod in found["items"])
        try:
            yield Workload(client, cluster, name, uids)
        finally:
            await client.delete(f"{apps}/{made['metadata']['name']}", {"propagationPolicy": "Foreground"})
            if budget is not None:
                await client.delete(f"{budgets}/poddisruptionbudgets/{name}")
            await _forget_notes(client)
            await client.wait(f"{_PODS}?labelSelector=app%3D{name}", lambda f: not f["items"])
            await client.wait(apps, lambda f: name not in [one["metadata"]["name"] for one in f["items"]])


async def move(
    cluster: Cluster,
    pod: Object,
    to: Sequence[str],
    *,
    user: str = "admin",
    asked: ReschedulerPolicy | None = None,
    **changes: Any,
) -> tuple[MoveReport | Refused, list[str]]:
    """Move in this process; what it came to, and what it said."""
    said: list[str] = []
    kubeconfig = Access(str(cluster.design.kubeconfig(user)))
    where = (pod["metadata"]["namespace"], pod["metadata"]["name"])
    came = await perform_move(
        kubeconfig, settings(**changes), where, policy=asked or policy(), to=tuple(to), tell=said.append
    )
    return came, said


@asynccontextmanager
async def mover(
    cluster: Cluster, user: str, **changes: Any
) -> AsyncIterator[Callable[[Object, Sequence[str]], Awaitable[tuple[MoveReport | Refused, list[str]]]]]:
    """One leader for many moves: gives what moves a pod; what it came to, and what it said."""
    said: list[str] = []
    chosen = settings(**changes)
    async with (
        Api(Access(str(cluster.design.kubeconfig(user))), chosen.api) as api,
        lead_by_hand(api, chosen) as leadership,
    ):
        assert isinstance(leadership, Leadership)
        async with open_execution_context(
            api, chosen, leadership, policy=policy(), tell=said.append, make_forecast=None
        ) as context:

            async def move_one(pod: Object, to: Sequence[str]) -> tuple[MoveReport | Refused, list[str]]:
                said.clear()
                meta = pod["metadata"]
                order = await compose_order(
                    context, meta["namespace"], meta["name"], to=tuple(to), reason="why not"
                )
                if isinstance(order, Refused):
                    return order, list(said)
                return await Executor(context).move(order), list(said)

            yield move_one


async def start_command(
    cluster: Cluster, folder: Path, *arguments: str, user: str = "admin"
) -> asyncio.subprocess.Process:
    """`python -m rescheduler` with these arguments, as a process of its own."""
    given = ["--kubeconfig", str(cluster.design.kubeconfig(user))]
    file = folder / "settings.yaml"
    file.write_text(yaml.safe_dump(QUICK))
    given += ["--settings", str(file)]
    if arguments[0] == "move":
        file = folder / "policy.yaml"
        file.write_text(yaml.safe_dump(POLICY))
        given += ["--policy", str(file)]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "rescheduler", *arguments, *given),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


def _annotation(node: Object) -> str | None:
    found: str | None = node["metadata"].get("annotations", {}).get(ANNOTATION)
    return found


def all_ready(found: Object, count: int) -> bool:
    ready = [
        pod
        for pod in found["items"]
        for one in pod["status"].get("conditions", ())
        if one["type"] == "Ready" and one["status"] == "True"
    ]
    return len(ready) == count == len(found["items"])


async def _forget_notes(client: Client) -> None:
    for node in (await client.get("/api/v1/nodes"))["items"]:
        if _annotation(node):
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            await client.patch(path, {"metadata": {"annotations": {ANNOTATION: None}}})


async def consistent(moved: Workload) -> int:
    """History, ledger and notes say the same of each move; how many pods were evicted by them, each once."""
    status, debits, noted = await moved.history(), await moved.debits(), await moved.noted()
    assert not status.get("open"), status
    evicted = 0
    for past in status.get("past", ()):
        if "evictedAt" in past:
            evicted += 1
            assert past["outcome"] != "Refused", past
            assert debits.get(past["id"]) == "Spent", (past, debits)
            assert noted.get(past["id"]) == past["from"], (past, noted)
        else:
            assert past["outcome"] == "Refused", past
            assert past["id"] not in debits, past
            assert past["id"] not in noted, past
    assert "Tentative" not in debits.values(), debits
    assert await moved.lost() == evicted, status
    return evicted
