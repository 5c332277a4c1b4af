"""A drawn hub on a real API server: planned, then left to the federation until nothing changes any more.

Members do not exist, and nobody works on Works: what the controllers decide follows from the hub alone.
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from federation import process
from federation.api import ResourceBinding
from federation.commands import plan
from federation.objects.resources import BINDINGS as BINDING
from federation.settings import FederationSettings
from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.config.settings import parse
from reberth.protocol.response import BadObject
from tests.live.support.commands import Answer, run_command
from tests.live.support.hub_and_members import eventually
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, REBALANCERS, WORKS
from tests.live.support.plan_outcomes import Outcome, list_differences
from tests.support.builders import Object
from tests.support.federation.drawn_objects import DrawnHub

_OFF = ("members", "tokens", "dependencies", "works", "execution", "namespaces", "statuses")
_QUIET = 0.6
"""Seconds without a change after which nothing is expected to change any more."""
_LONGEST = 15.0
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/reberth-federation"
LISTED = {
    "cluster.karmada.io": ["clusters"],
    "policy.karmada.io": ["propagationpolicies", "clusterpropagationpolicies"],
    "work.karmada.io": ["resourcebindings", "clusterresourcebindings", "works"],
    "apps.karmada.io": ["workloadrebalancers"],
    "config.karmada.io": ["resourceinterpretercustomizations"],
    "apps": ["deployments"],
}
KINDS = (BINDINGS, REBALANCERS, POLICIES, DEPLOYMENTS, CLUSTERS)


def settings_for(cluster: Cluster) -> Object:
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "FederationSettings",
        "server": {"port": cluster.spare_port()},
        "controllers": dict.fromkeys(_OFF, False),
        "lease": {"namespace": "default", "duration": "5s", "renewDeadline": "4s", "retryEvery": "100ms"},
        "rebalancer": {"gatherFor": "50ms"},
        "failback": {"gatherFor": "50ms", "lookAgain": "100ms", "atOnce": 2},
        "tainting": {"evictionsPerSecond": 100},
        "api": {"requestsPerSecond": 500, "burst": 500},
    }


async def lay_out(client: Client, hub: DrawnHub) -> None:
    """Create everything; a status is written afterwards, and leaving clusters are deleted last."""
    for path, bodies in (
        (CLUSTERS, hub.clusters),
        (POLICIES, hub.policies),
        (DEPLOYMENTS, hub.templates),
        (BINDINGS, hub.bindings),
        *((_works_of(each), [each]) for each in hub.works),
        (REBALANCERS, hub.rebalancers),
    ):
        await asyncio.gather(*(_create(client, path, body) for body in bodies))
    for name in hub.leaving:
        await client.delete(f"{CLUSTERS}/{name}")


async def _create(client: Client, path: str, body: Object) -> None:
    await client.create(path, {key: value for key, value in body.items() if key != "status"})
    if "status" in body:
        await client.patch(f"{path}/{body['metadata']['name']}/status", {"status": body["status"]})


def _works_of(work: Object) -> str:
    return f"/apis/work.karmada.io/v1alpha1/namespaces/{work['metadata']['namespace']}/works"


async def clear(client: Client) -> None:
    for each in (await client.get(WORKS))["items"]:
        await client.delete(f"{_works_of(each)}/{each['metadata']['name']}")
    for path in KINDS:
        found = (await client.get(path))["items"]
        await asyncio.gather(*(_delete(client, path, each["metadata"]) for each in found))


async def _delete(client: Client, path: str, meta: Object) -> None:
    with contextlib.suppress(Refused):
        if meta.get("finalizers"):
            await client.patch(f"{path}/{meta['name']}", {"metadata": {"finalizers": None}})
        await client.delete(f"{path}/{meta['name']}")


async def foretell(cluster: Cluster, folder: Path) -> Object:
    """Ask the command about the live hub, for a federation that leaves the members alone."""
    settings = folder / "federation.yaml"
    settings.write_text(yaml.safe_dump(settings_for(cluster)))
    return await foretell_with(settings, cluster.kubeconfig)


async def foretell_with(settings: Path, kubeconfig: Path) -> Object:
    """Ask the command about the live hub, for a federation with these settings."""
    arguments = argparse.Namespace(
        hub=None,
        settings=str(settings),
        now=None,
        output="json",
        kubeconfig=str(kubeconfig),
        context=None,
    )
    answer: Object = json.loads(await asyncio.to_thread(plan.answer, arguments))
    return answer


async def ask(kubeconfig: Path) -> Answer:
    """Run the command as this user does, at a time that is always the same."""
    command = ("kubectl_reberth", "federation", "plan", "-o", "json", "--now", "2026-11-19T00:00:00Z")
    return await run_command(kubeconfig, *command)


async def allow_to_list(client: Client, user: str, groups: Mapping[str, Sequence[str]]) -> None:
    """Give a user the right to list these resources of these API groups."""
    api = "/apis/rbac.authorization.k8s.io/v1"
    rules = [
        {"apiGroups": [group], "resources": list(kinds), "verbs": ["list"]} for group, kinds in groups.items()
    ]
    meta = {"metadata": {"name": f"lists-{user}"}}
    await client.create(f"{api}/clusterroles", {**meta, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"lists-{user}"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    await client.create(f"{api}/clusterrolebindings", {**meta, "roleRef": role, "subjects": [subject]})


def policy_for(kind: str) -> Object:
    selector = {"apiVersion": "apps/v1", "kind": kind}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "any"},
        "spec": {"resourceSelectors": [selector], "placement": {}},
    }


async def carry_out(cluster: Cluster, client: Client, answer: Object) -> list[str]:
    """Run the federation until it has done what was foretold, and then for a while; tell what differs."""
    there = msgspec.json.encode((await client.get(BINDINGS))["items"])
    before = msgspec.json.decode(there, type=list[ResourceBinding])
    states = {each.metadata.name: [each] for each in before}
    async with _watching(cluster, states), _federation(cluster):
        await eventually(client, _LEASE, lambda one: one and one["spec"].get("holderIdentity"))
        end = time.monotonic() + _LONGEST
        while await _compare(client, states, answer) and time.monotonic() < end:
            await asyncio.sleep(0.1)
        await _settle(client)
        return await _compare(client, states, answer)


async def _compare(client: Client, states: dict[str, list[ResourceBinding]], answer: Object) -> list[str]:
    rebalancers = (await client.get(REBALANCERS))["items"]
    outcome = Outcome(states, {each["metadata"]["name"]: each for each in rebalancers})
    return list(list_differences(outcome, answer))


async def _settle(client: Client) -> None:
    """Wait until nothing has changed for a while."""
    seen, since = await _versions(client), time.monotonic()
    while time.monotonic() < since + _QUIET:
        await asyncio.sleep(0.1)
        if (now := await _versions(client)) != seen:
            seen, since = now, time.monotonic()


async def _versions(client: Client) -> list[str]:
    found = [(await client.get(path))["items"] for path in (BINDINGS, REBALANCERS)]
    return [each["metadata"]["resourceVersion"] for items in found for each in items]


@contextlib.asynccontextmanager
async def _federation(cluster: Cluster) -> AsyncIterator[None]:
    settings = parse(msgspec.json.encode(settings_for(cluster)), FederationSettings)
    one, stopping = process.Federation(Access(str(cluster.kubeconfig)), settings), asyncio.Event()
    task = asyncio.create_task(one.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        await task


@contextlib.asynccontextmanager
async def _watching(cluster: Cluster, states: dict[str, list[ResourceBinding]]) -> AsyncIterator[None]:
    async with (
        Api(Access(str(cluster.kubeconfig))) as api,
        api.watch(BINDING, since=None, seconds=600) as lines,
    ):
        task = asyncio.create_task(_collect(lines, states))
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _collect(lines: AsyncIterator[Any], states: dict[str, list[ResourceBinding]]) -> None:
    async for line in lines:
        if not isinstance(line, BadObject) and line.type in {"ADDED", "MODIFIED"}:
            states.setdefault(line.object.metadata.name, []).append(line.object)
