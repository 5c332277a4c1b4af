"""A hub with two member clusters, and the federation as a process of its own."""

import asyncio
import base64
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from localcluster import credentials, manifests
from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.state_dir import running
from localproduct.member_join import FEDERATION_ACCOUNT, MANIFESTS, open_member, say_use
from tests.live.support.fault_free import refuse_faults
from tests.live.support.hub_paths import CLUSTERS, SECRETS
from tests.support.builders import Object
from tests.support.federation.crds import FOLDER
from tests.support.repository import ROOT

T = TypeVar("T")
MEMBERS = ("member1", "member2")
_ALONE = [CONTROLLERS, SCHEDULER, KWOK]
_AT_ONCE = 3
_LAST_LINES = 20


class Place:
    """The hub, its members, and the process that stands between them."""

    def __init__(
        self, hub: Cluster, client: Client, members: dict[str, Client], clusters: dict[str, Cluster]
    ) -> None:
        self.cluster = hub
        self.hub = client
        self.members = members
        self.clusters = clusters
        self.account = hub.kubeconfig
        self.namespace = "default"
        self.process: asyncio.subprocess.Process | None = None
        self.log = Path()

    async def start(self, folder: Path, **settings: Any) -> None:
        """Run the federation, with settings that make it quick."""
        await self.end()  # one that a failed test left would work beside it, and nobody would end it
        path = folder / "federation.yaml"
        path.write_text(yaml.safe_dump(_settings(self.cluster.spare_port(), self.namespace, **settings)))
        command = (sys.executable, "-m", "federation", "run", "--settings", str(path))
        self.log = folder / "federation.log"
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, "KUBECONFIG": str(self.account)}, cwd=ROOT, stderr=log
            )

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the process, and return its code; 0 if none runs.

        Fails if it has ended by itself: nobody worked on what the test has seen since.
        """
        process, self.process = self.process, None
        if process is None:
            return 0
        code = process.returncode
        assert code is None, f"the federation ended by itself, with code {code}:\n{self._last_words()}"
        process.send_signal(number)
        code = await process.wait()
        refuse_faults(self.log)
        return code

    async def follow(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that waits for the process; fail as soon as it has ended by itself."""
        assert self.process is not None
        working, ending = asyncio.create_task(work), asyncio.create_task(self.process.wait())
        try:
            await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await self.stop()
            return await working
        finally:
            working.cancel()
            ending.cancel()

    def _last_words(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-_LAST_LINES:])

    async def end(self) -> None:
        """Kill the federation if it runs, whatever it wrote."""
        process, self.process = self.process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    @contextlib.asynccontextmanager
    async def beside(self) -> AsyncIterator["Place"]:
        """The place of a second process on the same hub, which ends with the test, however that ends."""
        second = Place(self.cluster, self.hub, self.members, self.clusters)
        try:
            yield second
        finally:
            await second.end()


def _settings(port: int, namespace: str, **more: Any) -> Object:
    lease = {"namespace": namespace, "duration": "5s", "renewDeadline": "4s", "retryEvery": "500ms"}
    quick = {"probeEvery": "500ms", "threshold": "1s"}
    steady = {"minReady": "300ms"}  # copies that are ready stay so
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "FederationSettings",
        "server": {"port": port},
        "log": {"style": "console"},
        "lease": lease,
        "members": quick,
        "graceful": steady,
        "handovers": steady,
        **more,
    }


@contextlib.asynccontextmanager
async def federated(
    prefix: str,
    names: Sequence[str] = MEMBERS,
    *,
    without: Sequence[str] = _ALONE,
    real: int = 0,
    flags: Mapping[str, list[str]] | None = None,
) -> AsyncIterator[Place]:
    """API servers on one etcd, the members known to the hub; nothing works on them yet.

    Members are API servers alone, or whatever is not left out of them, with so many real nodes. The flags are
    those of the hub's programs.
    """
    async with contextlib.AsyncExitStack() as stack:
        hub = await stack.enter_async_context(running(f"{prefix}-hub", without=_ALONE, flags=flags))
        client = await stack.enter_async_context(hub.client())
        await manifests.apply(client, FOLDER)  # they go with the cluster: finalizers may keep their objects
        options: dict[str, Any] = {"without": without, "shares_etcd_of": hub, "real": real}
        shares = (running(f"{prefix}-{name}", **options) for name in names)
        started = await _enter_all(stack, shares)
        clusters = dict(zip(names, started, strict=True))
        members = {
            name: await stack.enter_async_context(cluster.client()) for name, cluster in clusters.items()
        }
        await client.create("/api/v1/namespaces", _named("karmada-cluster"))
        for name, cluster in clusters.items():
            await join(client, name, cluster)
        place = Place(hub, client, members, clusters)
        try:
            yield place
        finally:
            await place.stop(signal.SIGKILL)


async def _enter_all(
    stack: contextlib.AsyncExitStack, shares: Iterable[contextlib.AbstractAsyncContextManager[Cluster]]
) -> list[Cluster]:
    """A few at a time: twenty API servers that start together are not ready within a minute."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def enter(share: contextlib.AbstractAsyncContextManager[Cluster]) -> Cluster:
        async with places:
            return await stack.enter_async_context(share)

    return await asyncio.gather(*map(enter, shares))


async def join(hub: Client, name: str, cluster: Cluster) -> None:
    """Make the hub know a member: its Secret and its Cluster."""
    design = cluster.design
    content = {
        "token": credentials.read_token(design, credentials.ADMIN).encode(),
        "caBundle": design.path("pki", "ca.crt").read_bytes(),
    }
    data = {key: base64.b64encode(text).decode() for key, text in content.items()}
    await hub.create(SECRETS, secret_of(name, design.url, data))
    await hub.create(CLUSTERS, cluster_of(name, design.url))


async def reach(hub: Client, name: str, endpoint: str) -> None:
    """Let the hub reach a member at another address, as somebody who may write its Secret."""
    await hub.patch(f"{SECRETS}/{name}", {"metadata": {"annotations": say_use(name, endpoint)}})
    await hub.patch(f"{CLUSTERS}/{name}", {"spec": {"apiEndpoint": endpoint}})


def secret_of(name: str, endpoint: str, data: Object) -> Object:
    """The Secret of a member, with whatever it holds."""
    return {"metadata": {"name": name, "annotations": say_use(name, endpoint)}, "data": data}


async def restrict(place: Place, **more: Sequence[Object]) -> None:
    """Let the federation have the rights of the manifests alone, and of rules for the hub and the members.

    It works under its own accounts from then on.
    """
    for folder in ("hub", "rights/hub"):
        await manifests.apply(place.hub, MANIFESTS / folder)
    await _grant(place.hub, "reberth-federation", more.get("hub", ()))
    for name, client in place.members.items():
        token = await open_member(client)
        await manifests.apply(client, MANIFESTS / "rights" / "member")
        await _grant(client, "reberth-federation-member", more.get("members", ()))
        await place.hub.patch(
            f"{SECRETS}/{name}", {"data": {"token": base64.b64encode(token.encode()).decode()}}
        )
    place.account = place.cluster.user(FEDERATION_ACCOUNT)
    place.namespace = "reberth-system"


async def _grant(client: Client, account: str, rules: Sequence[Object]) -> None:
    """Do what an operator does for kinds of his own."""
    api = "/apis/rbac.authorization.k8s.io/v1"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "more-kinds"}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "reberth-system"}
    await client.create(f"{api}/clusterroles", {**_named("more-kinds"), "rules": list(rules)})
    binding = {**_named("more-kinds"), "roleRef": role, "subjects": [subject]}
    await client.create(f"{api}/clusterrolebindings", binding)


def cluster_of(name: str, address: str) -> Object:
    reference = {"namespace": "karmada-cluster", "name": name}
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        **_named(name),
        "spec": {"syncMode": "Push", "apiEndpoint": address, "secretRef": reference},
    }


def _named(name: str) -> Object:
    return {"metadata": {"name": name}}


def deployment(name: str, replicas: int, *, image: str = "web:1", grace: int = 30) -> Object:
    """Pods end after their `grace`: what waits for the end of the last one waits for so long."""
    labels = {"app": name}
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": grace},
            },
        },
    }


def policy(name: str, **placement: Any) -> Object:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name},
        "spec": {"resourceSelectors": [selector], "placement": placement},
    }


def weighted(**weights: int) -> Object:
    rules = [
        {"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()
    ]
    return {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": rules},
    }


async def eventually(client: Client, path: str, holds: Callable[[Any], object], *, within: float = 30) -> Any:
    """Wait until what stands at the path is as it should be; None stands for nothing there."""
    found: Any = None
    try:
        async with asyncio.timeout(within):
            while True:
                found = await _get(client, path)
                if holds(found):
                    return found
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{path} stays {msgspec.json.encode(found).decode()}") from None


async def _get(client: Client, path: str) -> Any:
    try:
        return await client.get(path)
    except Refused as refused:
        if refused.status == 404:
            return None
        raise
