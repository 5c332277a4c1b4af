"""A drawn hub on a real API server: planned, then left to the federation until nothing changes any more.

Members do not exist, and nobody works on Works: what the controllers decide follows from the hub alone.
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

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
from reberth.values.timestamp import write_time
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, REBALANCERS
from tests.support.builders import Object
from tests.support.federation.drawn_hubs import DrawnHub

_OFF = ("members", "tokens", "dependencies", "works", "execution", "namespaces", "statuses")
_QUIET = 0.8
"""Seconds without a change after which nothing is expected to change any more."""
_LONGEST = 30.0
KINDS = (BINDINGS, REBALANCERS, POLICIES, DEPLOYMENTS, CLUSTERS)


class Outcome(NamedTuple):
    """Every state of every binding from the first on, and the rebalancers at the end."""

    states: dict[str, list[ResourceBinding]]
    rebalancers: dict[str, Object]


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
        (REBALANCERS, hub.rebalancers),
    ):
        await asyncio.gather(*(_create(client, path, body) for body in bodies))
    for name in hub.leaving:
        await client.delete(f"{CLUSTERS}/{name}")


async def _create(client: Client, path: str, body: Object) -> None:
    await client.create(path, {key: value for key, value in body.items() if key != "status"})
    if "status" in body:
        await client.patch(f"{path}/{body['metadata']['name']}/status", {"status": body["status"]})


async def clear(client: Client) -> None:
    for path in KINDS:
        found = (await client.get(path))["items"]
        await asyncio.gather(*(_delete(client, path, each["metadata"]) for each in found))


async def _delete(client: Client, path: str, meta: Object) -> None:
    with contextlib.suppress(Refused):
        if meta.get("finalizers"):
            await client.patch(f"{path}/{meta['name']}", {"metadata": {"finalizers": None}})
        await client.delete(f"{path}/{meta['name']}")


async def foretell(cluster: Cluster, folder: Path) -> tuple[Object, str]:
    """Ask the command about the live hub; return its answer, and the second in which it was given."""
    settings = folder / "federation.yaml"
    settings.write_text(yaml.safe_dump(settings_for(cluster)))
    now = write_time(time.time())
    arguments = argparse.Namespace(
        hub=None,
        settings=str(settings),
        now=now,
        output="json",
        kubeconfig=str(cluster.kubeconfig),
        context=None,
    )
    return json.loads(await asyncio.to_thread(plan.answer, arguments)), now


async def carry_out(cluster: Cluster, client: Client) -> Outcome:
    """Run the federation until nothing changes any more."""
    there = msgspec.json.encode((await client.get(BINDINGS))["items"])
    before = msgspec.json.decode(there, type=list[ResourceBinding])
    states = {each.metadata.name: [each] for each in before}
    async with _watching(cluster, states), _federation(cluster):
        await _settle(client)
    rebalancers = (await client.get(REBALANCERS))["items"]
    return Outcome(states, {each["metadata"]["name"]: each for each in rebalancers})


async def _settle(client: Client) -> None:
    """Wait until the federation has begun, and nothing has changed for a while."""
    end, seen, since = time.monotonic() + _LONGEST, "", time.monotonic()
    first = await _versions(client)
    while time.monotonic() < end:
        now = await _versions(client)
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > (_QUIET if now != first else 3 * _QUIET):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"the hub does not settle within {_LONGEST:g} s")


async def _versions(client: Client) -> str:
    found = [(await client.get(path))["items"] for path in (BINDINGS, REBALANCERS)]
    return str([each["metadata"]["resourceVersion"] for items in found for each in items])


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


Counts = dict[str, int]


def paths_of(outcome: Outcome) -> dict[str, list[Counts]]:
    """Where each workload was, one after the other."""
    return {
        name: _shorten([_count(each.spec.clusters) for each in seen]) for name, seen in outcome.states.items()
    }


def foretold_paths(answer: Object) -> dict[str, list[Counts]]:
    """Where each workload would be, by the steps of the plan."""
    paths = {name: [_counts(each["from"] or ())] for name, each in answer["bindings"].items()}
    for step in answer["steps"]:
        if step["subject"] in paths and step["action"] not in _WITHOUT_CLUSTERS:
            paths[step["subject"]].append(_counts(step.get("to", ())))
    return {name.partition("/")[2]: _shorten(path) for name, path in paths.items()}


_WITHOUT_CLUSTERS = {"Evict", "EndEviction", "Update", "Taint", "Unbind"}


def _count(clusters: Any) -> Counts:
    return {each.name: each.replicas for each in clusters or ()}


def _counts(clusters: Any) -> Counts:
    return {each["name"]: each.get("replicas", 0) for each in clusters}


def _shorten(path: list[Counts]) -> list[Counts]:
    """A binding that is not scheduled yet is nowhere; so is one that does not exist."""
    found: list[Counts] = []
    for each in path:
        if each != (found[-1] if found else {}):
            found.append(each)
    return found


def last_states(outcome: Outcome) -> dict[str, Object]:
    """What the plan says of each binding, as the hub has it at the end."""
    return {name: _read_state(seen[-1]) for name, seen in sorted(outcome.states.items())}


def _read_state(binding: ResourceBinding) -> Object:
    spec, status = binding.spec, binding.status
    scheduled = [each.reason for each in status.conditions or () if each.type == "Scheduled"]
    return {
        "to": _count(spec.clusters),
        "group": status.observed_affinity,
        "reason": scheduled[0] if scheduled else "NotScheduled",
        "is handed over": bool(spec.handover and spec.handover.clusters),
        "is evicted": bool(spec.graceful_eviction_tasks),
    }


def foretold_states(answer: Object) -> dict[str, Object]:
    return {name.partition("/")[2]: _foretold_state(each) for name, each in answer["bindings"].items()}


def _foretold_state(each: Object) -> Object:
    waits = {wait["for"] for wait in each["waits"]}
    return {
        "to": _counts(each["to"]),
        "group": each["affinityName"],
        "reason": each["reason"],
        "is handed over": "Handover" in waits,
        "is evicted": bool(waits & {"Eviction", "Member"}),
    }


def begun_evictions(outcome: Outcome) -> set[tuple[str, str]]:
    """The evictions that were not there before: the binding and the cluster."""
    return {
        (name, cluster)
        for name, (first, *later) in outcome.states.items()
        for each in later
        for cluster in _left_clusters(each) - _left_clusters(first)
    }


def _left_clusters(binding: ResourceBinding) -> set[str]:
    return {task.from_cluster for task in binding.spec.graceful_eviction_tasks or ()}


def foretold_evictions(answer: Object) -> set[tuple[str, str]]:
    return {
        (step["subject"].partition("/")[2], each["name"])
        for step in answer["steps"]
        if step["action"] == "Evict"
        for each in step["from"]
    }


def results_of(outcome: Outcome) -> Object:
    """What came of each entry of a rebalancer, without its time."""
    found = {name: one.get("status", {}) for name, one in outcome.rebalancers.items()}
    return _without_times({name: each.get("observedWorkloads", ()) for name, each in found.items()})


def foretold_results(answer: Object) -> Object:
    return _without_times(answer["rebalancers"])


def _without_times(rebalancers: Object) -> Object:
    return {name: [_read_entry(entry) for entry in each] for name, each in rebalancers.items()}


def _read_entry(entry: Object) -> Object:
    return {key: value for key, value in entry.items() if key != "triggeredAt"}
