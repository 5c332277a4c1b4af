"""The custom resources of the shared memory on a real API server: install, create and change them."""

import copy
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from reberth.cluster.kinds import HISTORIES, LEDGERS, SCORES, Resource
from reberth.cluster.pods.identity import Signature
from reberth.memory.history import open_move, start_history
from reberth.memory.ledger import Disruption, add_debit, mark_spent, start_ledger
from reberth.memory.rates import DisruptionLimits
from reberth.records import EvictionHistory, MoveLedger, Outcome, Phase, Record, WorkloadIdentity
from reberth.values.timestamp import write_micro_time
from tests.support.builders import Object
from tests.support.memory.objects import MINUTE, NOW, REPLICA_SET, accepted, after_move, move, score
from tests.support.repository import ROOT

RESOURCES: dict[str, Resource[Any]] = {one.kind.name: one for one in (HISTORIES, LEDGERS, SCORES)}
# Without a uid nobody owns the history: the garbage collector lets it be.
WEB = Signature("default", REPLICA_SET, WorkloadIdentity("apps/v1", "Deployment", "web"))
GONE = object()


@asynccontextmanager
async def definitions(cluster: Cluster) -> AsyncIterator[list[str]]:
    """The paths of our definitions, which stand for as long."""
    async with cluster.client() as client:
        paths = await manifests.apply(client, ROOT / "manifests" / "crds")
        yield paths
        await manifests.remove(client, paths)


@asynccontextmanager
async def tidy_client(cluster: Cluster) -> AsyncIterator[Client]:
    """A client that leaves none of our objects behind."""
    async with cluster.client() as client:
        yield client
        for resource in RESOURCES.values():
            await client.delete(resource.path(namespace="default" if resource.namespaced else ""))


async def keep(client: Client, resource: Resource[Any], wanted: Object) -> Object:
    """Create an object, then write its status: the way that a status takes."""
    namespace = "default" if resource.namespaced else ""
    made = await client.create(strictly(resource.path(namespace=namespace)), wanted)
    return await write_status(client, resource, wanted, made)


async def write_status(client: Client, resource: Resource[Any], wanted: Object, found: Object) -> Object:
    """Replace the status of an object as it was found."""
    meta = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    path = resource.path(meta["name"], namespace=meta.get("namespace", ""), subresource="status")
    kept: Object = await client.request("PUT", strictly(path), {**wanted, "metadata": meta})
    return kept


def strictly(path: str) -> str:
    """A field that is not known is refused, not dropped."""
    return f"{path}?fieldValidation=Strict"


def sent(resource: Resource[Any], record: Record) -> Object:
    made: Object = json.loads(resource.encode(record))
    return made


def fields(found: Object) -> Object:
    return {key: found[key] for key in ("spec", "status") if key in found}


def a_history() -> EvictionHistory:
    """One past move that brought nothing, and an open one with all that an earlier version wrote too."""
    moved = after_move(start_history(WEB), "p1", Outcome.SAME, closed=NOW - MINUTE)
    evicted_at = write_micro_time(NOW + 1)
    opened = move("m1", phase=Phase.EVICTED, evicted_at=evicted_at, destinations=("n2", "n3"))
    return accepted(open_move(moved, opened))


def a_ledger() -> MoveLedger:
    web = Disruption("m1", "default", "uid-web", "web-1", "uid-web-1", "age", "agentpool=small")
    debited = add_debit(start_ledger(), DisruptionLimits(), web, now=NOW)
    assert isinstance(debited, MoveLedger)
    spent = mark_spent(debited, "m1", limits=DisruptionLimits(), now=NOW + 1)
    assert isinstance(spent, MoveLedger)
    return spent


SOUND: Mapping[str, Object] = {
    "EvictionHistory": sent(HISTORIES, a_history()),
    "MoveLedger": sent(LEDGERS, a_ledger()),
    "NodePlacementScore": sent(SCORES, score("n1", green=100, cheap=-100, valid_until=NOW)),
}


def changed(wanted: Object, changes: Mapping[str, Any]) -> Object:
    """The object with other values at paths such as `status.open.0.id`, or without them."""
    made = copy.deepcopy(wanted)
    for path, value in changes.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        holder: Any = made
        for step in steps:
            holder = holder[step]
        if value is GONE:
            del holder[last]
        else:
            holder[last] = value
    return made
