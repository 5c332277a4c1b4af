"""Run the rescheduler's daemon as one or more processes on an unbalanced cluster.

async with imbalance(cluster) as crowd, daemon(cluster, folder, settings, EAGER) as one:
    await one.quiet()

The processes use the service account of the manifests, which `install` applies; none of their requests may
be forbidden.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from localcluster import credentials, manifests
from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.components import SCHEDULER_FILE
from localcluster.host import processes
from localproduct.processes import HOST, NO_CHANGES, start, write_settings
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from reberth.cluster.kinds import LEDGERS
from reberth.memory.notes import ANNOTATION
from tests.live.support.extender_process import MANIFESTS, Extending
from tests.live.support.fault_free import refuse_faults
from tests.live.support.memory_objects import tidy_client
from tests.live.support.moves import all_ready
from tests.support.builders import Object, deployment

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/reberth-system/leases/reberth-rescheduler"
HISTORIES = "/apis/reberth.dev/v1alpha1/evictionhistories"
OUR_DEPLOYMENTS = "/apis/apps/v1/namespaces/reberth-system/deployments"
_TOKEN = "/api/v1/namespaces/reberth-system/serviceaccounts/reberth-rescheduler/token"
FIRST_PORT = 3
LEASE_SECONDS = 6
LEASE_TIMES = {
    "duration": f"{LEASE_SECONDS}s",
    "renewDeadline": "4s",
    "retryEvery": "500ms",
    "stuckAfter": "10m",  # one that was frozen shows what it does when it goes on, and does not end
}
EAGER: Object = {
    "mode": "apply",
    "level": 5,
    "worth": 0,
    "prices": {"replicas": 0},
    "policies": {
        "underUtilisedNodes": {
            "hotFor": "0s",
            "low": {"cpu": "30%", "memory": "30%"},
            "high": {"cpu": "40%", "memory": "75%"},
        }
    },
    "protections": {"minAge": "0s"},
    "limits": {"rates": {"cluster": ["1000 per 1h"]}},
    "brakes": {"settling": "0s"},
}


async def install(cluster: Cluster) -> None:
    """Apply the rescheduler's manifests beside those of the extender; processes stand in for Deployments."""
    async with cluster.client() as client:
        await manifests.apply(client, MANIFESTS / "rescheduler")
        await client.delete(OUR_DEPLOYMENTS)


class Daemon:
    """One process, with its own files and its own port."""

    def __init__(
        self,
        cluster: Cluster,
        number: int,
        folder: Path,
        settings: Object,
        policy: Object,
        *,
        way: Path | None = None,
        env: Mapping[str, str] = NO_CHANGES,
    ) -> None:
        self._env = env
        self.port = cluster.spare_port(FIRST_PORT + number)
        self.name = f"rescheduler-{number}"
        self.cluster = cluster
        self.settings = folder / f"{self.name}-settings.yaml"
        self._policy = folder / f"{self.name}-policy.yaml"
        self._way = way or cluster.user(RESCHEDULER_ACCOUNT)
        self.set(settings)
        self.follow(policy)
        self.running = self._start()

    def set(self, settings: Object) -> None:
        write_settings(self.settings, "ReschedulerSettings", {"server": {"port": self.port}, **settings})

    def follow(self, policy: Object) -> None:
        write_settings(self._policy, "ReschedulerPolicy", policy)

    def spoil(self) -> None:
        self._policy.write_text("apiVersion: reberth.dev/v1alpha1\nkind: ReschedulerPolicy\nlevel: 9\n")

    def _start(self) -> processes.Running:
        files = ["--settings", str(self.settings), "--policy", str(self._policy)]
        way = ["--kubeconfig", str(self._way)]
        program = ("rescheduler", "run", *files, *way)
        return start(self.cluster, self.name, *program, dies_with_parent=True, env=self._env)

    def restart(self) -> None:
        self.running = self._start()

    @property
    def log(self) -> str:
        return self.cluster.log(self.name).read_text()

    def send(self, number: signal.Signals) -> None:
        processes.send(self.running, number)

    async def ask(self, path: str, *, port: int | None = None) -> tuple[int, str]:
        try:
            async with aiohttp.ClientSession() as session:
                url = f"http://{HOST}:{port or self.port}{path}"
                async with session.get(url) as answer:
                    return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""

    async def plan(self) -> Object | None:
        status, text = await self.ask("/plan")
        found: Object | None = yaml.safe_load(text) if status == 200 else None
        return found

    async def said(self, metric: str, **labels: str) -> float:
        """Sum of a metric's samples with these labels."""
        _, text = await self.ask("/metrics")
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == metric and labels.items() <= sample.labels.items()
        )

    async def until(self, metric: str, enough: Callable[[float], bool], **labels: str) -> float:
        """Wait until a metric is as it should be."""
        async with asyncio.timeout(60):
            while not enough(found := await self.said(metric, **labels)):
                await asyncio.sleep(0.1)
        return found

    async def remarks(self, text: str) -> str:
        """Wait until /readyz says it."""
        async with asyncio.timeout(30):
            while text not in (found := (await self.ask("/readyz"))[1]):
                await asyncio.sleep(0.1)
        return found

    async def quiet(self, *, cycles: int = 2) -> None:
        """Wait for so many cycles in a row that begin no move, while none is under way."""
        count, seen = 0, await self.said("reberth_rescheduler_cycles_total")
        async with asyncio.timeout(90):
            while count < cycles:
                await asyncio.sleep(0.1)
                now = await self.said("reberth_rescheduler_cycles_total")
                if now == seen:
                    continue
                seen = now
                busy = await self.said("reberth_rescheduler_plan_moves") + await self.said(
                    "reberth_rescheduler_moves_in_flight"
                )
                count = 0 if busy else count + 1


def settings_of(extender: Extending | None, cluster: Cluster, **changes: Any) -> Object:
    """Quick settings; the scheduler's file is the one that the running scheduler has."""
    found: Object = {
        "extender": "required" if extender else "none",
        "minReady": "300ms",  # kwok's pods stay Ready
        "cycle": {"interval": "2s", "settle": "200ms", "minInterval": "500ms", "pending": "5s"},
        "scheduler": {"configuration": str(cluster.design.path(SCHEDULER_FILE))},
        "lease": {"namespace": "reberth-system", **LEASE_TIMES},
        "api": {"requestsPerSecond": 500, "burst": 500},
        "log": {"style": "json", "level": "info"},
    }
    if extender:
        addresses = [f"{HOST}:{replica.port}" for replica in extender.replicas]
        found["extenderAccess"] = {"addresses": addresses, "tryEvery": "1s"}
    return {**found, **changes}


async def way_through(cluster: Cluster, client: Client, name: str, *, server: str) -> Path:
    """Kubeconfig of the manifests' account, with a token of its own, for what stands before the cluster."""
    made: Any = await client.create(_TOKEN, {"spec": {"expirationSeconds": 7200}})
    return credentials.write_kubeconfig(
        cluster.design, name, {"token": made["status"]["token"]}, server=server
    )


async def command(cluster: Cluster, *arguments: str) -> tuple[int | None, str]:
    """What `python -m rescheduler` says to the administrator, and its exit code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rescheduler", *arguments, "--kubeconfig", str(cluster.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, out.decode()


@asynccontextmanager
async def daemon(
    cluster: Cluster,
    folder: Path,
    settings: Object,
    policy: Mapping[str, Any],
    *,
    number: int = 0,
    way: Path | None = None,
    env: Mapping[str, str] = NO_CHANGES,
    may_be_forbidden: bool = False,
) -> AsyncIterator[Daemon]:
    """A daemon that runs until the end of the context; `way` is a kubeconfig of another account.

    An API server that has just begun forbids whatever it has not read the roles for yet.
    """
    one = Daemon(cluster, number, folder, settings, dict(policy), way=way, env=env)
    try:
        yield one
        assert may_be_forbidden or await one.said("reberth_api_requests_total", code="403") == 0
        refuse_faults(cluster.log(one.name))
    finally:
        await processes.stop(one.running)


class Crowd:
    """Many small workloads, on the nodes where they were put."""

    def __init__(self, client: Client, uids: frozenset[str]) -> None:
        self.client = client
        self.uids = uids

    async def pods(self) -> list[Object]:
        """The living ones."""
        found = await self.client.get(f"{PODS}?labelSelector=crowd")
        return [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]

    async def lost(self) -> int:
        """How many of the first pods are gone."""
        return len(self.uids - {pod["metadata"]["uid"] for pod in await self.pods()})

    async def past(self) -> list[Object]:
        """All moves that have ended."""
        found = (await self.client.get(HISTORIES))["items"]
        return [move for one in found for move in one.get("status", {}).get("past", ())]

    async def refused(self) -> list[Object]:
        """All remembered refusals."""
        found = (await self.client.get(HISTORIES))["items"]
        return [each for one in found for each in one.get("status", {}).get("refused", ())]

    async def evicting(self) -> None:
        """Wait until a move has lost its pod and is not at its end."""
        async with asyncio.timeout(30):
            while True:
                opened = await self.opened()
                living = {pod["metadata"]["uid"] for pod in await self.pods()}
                if any(move["podUID"] not in living for move in opened):
                    return
                await asyncio.sleep(0.01)

    async def debits(self) -> list[str]:
        """The states of all debits."""
        found = (await self.client.get(LEDGERS.path()))["items"]
        return [debit["state"] for one in found for debit in one.get("status", {}).get("debits", ())]

    async def spent(self) -> None:
        """Wait until no debit is Tentative: a leader marks them a few seconds after the evictions."""
        async with asyncio.timeout(10):
            while "Tentative" in await self.debits():
                await asyncio.sleep(0.1)

    async def opened(self) -> list[Object]:
        found = (await self.client.get(HISTORIES))["items"]
        return [move for one in found for move in one.get("status", {}).get("open", ())]

    async def spread(self) -> dict[str, int]:
        """How many pods each node has."""
        counts: dict[str, int] = {}
        for pod in await self.pods():
            node = pod["spec"].get("nodeName", "")
            counts[node] = counts.get(node, 0) + 1
        return counts


@asynccontextmanager
async def imbalance(
    cluster: Cluster, *, workloads: int = 14, replicas: int = 2, nodes: int = 2, cpu: str = "500m"
) -> AsyncIterator[Crowd]:
    """Workloads that were born while all nodes but a few were cordoned; nothing of it is left afterwards."""
    async with tidy_client(cluster) as client:
        names = sorted(node["metadata"]["name"] for node in (await client.get("/api/v1/nodes"))["items"])
        await cordon(client, names[nodes:], on=True)
        made = [deployment(f"crowd-{number}", replicas=replicas, cpu=cpu) for number in range(workloads)]
        for one in made:
            one["spec"]["template"]["metadata"]["labels"]["crowd"] = "yes"
        await client.create_all(DEPLOYMENTS, made)
        found = await client.wait(f"{PODS}?labelSelector=crowd", lambda f: all_ready(f, workloads * replicas))
        await cordon(client, names[nodes:], on=False)
        try:
            yield Crowd(client, frozenset(pod["metadata"]["uid"] for pod in found["items"]))
        finally:
            deleted = {"propagationPolicy": "Foreground"}
            await all_of(client.delete(f"{DEPLOYMENTS}/{one['metadata']['name']}", deleted) for one in made)
            await client.wait(f"{PODS}?labelSelector=crowd", lambda f: not f["items"])
            await client.wait(DEPLOYMENTS, lambda f: not f["items"])
            forget = {"metadata": {"annotations": {ANNOTATION: None}}}
            await all_of(client.patch(f"/api/v1/nodes/{name}", forget) for name in names)


async def cordon(client: Client, names: list[str], *, on: bool) -> None:
    patch = {"spec": {"unschedulable": True if on else None}}
    await all_of(client.patch(f"/api/v1/nodes/{name}", patch) for name in names)


async def ended(running: processes.Running) -> float:
    """Wait until a process has ended; gives how long that took."""
    started = time.monotonic()
    async with asyncio.timeout(20):
        while processes.is_alive(running):
            await asyncio.sleep(0.01)
    return time.monotonic() - started
