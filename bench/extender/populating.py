"""The cluster that is asked about: nodes with notes, scores and a standing, workloads with a history.

It is made so that a table can give the same answers: scores lie in the middle of what rounds to one grade,
landings that went badly are a day old and move no grade, and open moves draw to a node that is gone.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from localcluster import manifests
from localcluster.client import Client, Object, all_of
from localcluster.nodes import node
from reberth.cluster.pods.identity import Signature, name_history
from reberth.memory.notes import ANNOTATION, MOST_NOTES, Note, Notes, compose_note, render_notes
from reberth.records import WorkloadIdentity
from reberth.values.timestamp import write_micro_time
from tests.live.support import written_memory
from tests.live.support.written_memory import PODS

MANIFESTS = Path(__file__).parents[2] / "manifests"
NOTES = 10_000
WORKLOADS = 40
SOURCE, SCORE = "load", "cpu"
NODES = "/api/v1/nodes"

_NAMESPACE = "default"
_LIFE = 24 * 3600.0
_LEAVING_EVERY = 100
_MOVING_EVERY = 10
_GRADES = 11
_LEAVING: Object = {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"}


class Table(msgspec.Struct, frozen=True):
    """What decides the answers: noted nodes by the controller's uid, leaving nodes, grades of nodes."""

    notes: Mapping[str, list[str]]
    leaving: list[str]
    scores: Mapping[str, int]

    def write(self, path: Path) -> None:
        path.write_bytes(msgspec.json.encode(self))


class Population:
    """The objects of the cluster, and how more of them are created."""

    def __init__(self, client: Client, workloads: list[Signature], table: Table) -> None:
        self.table = table
        self._client = client
        self._workloads = workloads

    async def add_pods(self, numbers: range, *, nodes: int = 0) -> str:
        """Create pending pods, or pods on nodes; returns the name of the last one."""
        *most, last = (self._describe_pod(number, nodes) for number in numbers)
        await self._client.create_all(PODS, most)
        made = await self._client.create(PODS, last)
        return str(made["metadata"]["name"])

    def _describe_pod(self, number: int, nodes: int) -> Object:
        pod = describe_pod(self._workloads[number % WORKLOADS], number)
        if nodes:
            pod["spec"]["nodeName"] = name_node(number % nodes)
        return pod

    async def read_pods(self) -> list[Object]:
        """Return one pod of each workload as kube-scheduler sends it."""
        found = [
            await self._client.get(f"{PODS}/{name_pod(who, number)}")
            for number, who in enumerate(self._workloads)
        ]
        return [{part: pod[part] for part in ("metadata", "spec", "status")} for pod in found]

    async def add_nodes(self, numbers: range) -> None:
        """Create nodes of which nothing is known; the last one comes last."""
        *most, last = numbers
        for some in (most, [last]):
            await self._client.create_all(NODES, (node(name_node(number)) for number in some))

    async def drop_pods(self) -> None:
        """Delete them in parts: one call for all takes too long."""
        while (await self._client.get(f"{PODS}?limit=1"))["items"]:
            await self._client.delete(f"{PODS}?limit=500", {"gracePeriodSeconds": 0})


async def populate(client: Client, *, nodes: int) -> Population:
    for folder in ("crds", "extender"):
        await manifests.apply(client, MANIFESTS / folder)
    workloads = [await _create_workload(client, number) for number in range(WORKLOADS)]
    noted = spread_notes(nodes)
    notes = _write_notes(noted, workloads)
    await client.create_all(NODES, (_describe_node(number, notes) for number in range(nodes)))
    scores = {name_node(number): number % _GRADES for number in range(nodes)}
    await all_of(
        written_memory.score(client, name, as_score(grade), source=SOURCE) for name, grade in scores.items()
    )
    for number, who in enumerate(workloads):
        await _remember(client, who, is_moving=number % _MOVING_EVERY == 0)
    return Population(
        client, workloads, Table(_group(noted, workloads), list(filter(_is_leaving, scores)), scores)
    )


def name_node(number: int) -> str:
    return f"node-{number:05d}"


def spread_notes(nodes: int) -> dict[str, list[int]]:
    """Choose the notes: as many as a node can have, on nodes at equal distances."""
    places = min(nodes, -(-NOTES // MOST_NOTES))
    numbers = iter(range(NOTES))
    noted = {}
    for place in range(places):
        taken = [number % WORKLOADS for _, number in zip(range(MOST_NOTES), numbers, strict=False)]
        noted[name_node(place * nodes // places)] = taken
    return noted


def _group(noted: Mapping[str, list[int]], workloads: list[Signature]) -> dict[str, list[str]]:
    """Return the noted nodes of each workload by the uid of its controller."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for name, numbers in noted.items():
        for number in numbers:
            grouped[workloads[number].controller.uid].append(name)
    return grouped


def as_score(grade: int) -> int:
    """Return the middle of the scores that are rounded to a grade."""
    return grade * 20 - 100


def name_pod(who: Signature, number: int) -> str:
    return f"{who.controller.name}-{number:05d}"


def describe_pod(who: Signature, number: int) -> Object:
    app, controller = who.root.name, who.controller
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": controller.name, "uid": controller.uid}
    room = {"cpu": "10m", "memory": "16Mi"}
    return {
        "metadata": {
            "name": name_pod(who, number),
            "generateName": f"{controller.name}-",
            "labels": {"app": app, "pod-template-hash": _hash_of(controller)},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "containers": [
                {"name": "app", "image": f"registry.example/{app}:1", "resources": {"requests": room}}
            ]
        },
    }


def _hash_of(controller: WorkloadIdentity) -> str:
    return controller.name.rpartition("-")[2]


async def _create_workload(client: Client, number: int) -> Signature:
    """Build the ReplicaSet of a Deployment; no controller runs, so the Deployment need not exist."""
    app, template = f"app-{number:02d}", f"7d9f8c{number:04d}"
    root = WorkloadIdentity("apps/v1", "Deployment", app, f"00000000-0000-4000-8000-{number:012d}")
    labels = {"app": app, "pod-template-hash": template}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app, "uid": root.uid, "controller": True}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "app", "image": f"registry.example/{app}:1"}]},
    }
    made = await client.create(
        written_memory.SETS,
        {
            "metadata": {"name": f"{app}-{template}", "labels": labels, "ownerReferences": [owner]},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
        },
    )
    meta = made["metadata"]
    return Signature(_NAMESPACE, WorkloadIdentity("apps/v1", "ReplicaSet", meta["name"], meta["uid"]), root)


def _write_notes(noted: Mapping[str, list[int]], workloads: list[Signature]) -> dict[str, str]:
    now = time.time()
    return {name: _render(_compose(name, numbers, workloads, now)) for name, numbers in noted.items()}


def _compose(name: str, numbers: list[int], workloads: list[Signature], now: float) -> Iterator[Note]:
    for number in numbers:
        yield compose_note(
            workloads[number],
            f"m-{name}-{number}",
            policy="balance",
            reason="HighNodeUtilization",
            now=now,
            life=_LIFE,
        )


def _render(notes: Iterable[Note]) -> str:
    return render_notes(Notes(ours=tuple(notes))) or ""


def _describe_node(number: int, notes: Mapping[str, str]) -> Object:
    name = name_node(number)
    annotations = {ANNOTATION: notes[name]} if name in notes else {}
    taints = [_LEAVING] if _is_leaving(name) else []
    return node(name, zone=f"zone-{number % 3}", annotations=annotations, taints=taints)


def _is_leaving(name: str) -> bool:
    return int(name.rpartition("-")[2]) % _LEAVING_EVERY == 1


async def _remember(client: Client, who: Signature, *, is_moving: bool) -> None:
    """Write a history: a landing that went badly, and for some an open move."""
    victim = {"metadata": {"name": f"{who.controller.name}-gone", "uid": "uid-gone"}}
    gone = {**victim, "spec": {"nodeName": name_node(2)}}
    await written_memory.open_move(client, who, gone, ["node-gone"], life=_LIFE)
    status: dict[str, Any] = {"past": [_describe_past(gone)]}
    if not is_moving:
        status["open"] = []
    path = f"{written_memory.HISTORIES}/{name_history(who.root)}/status"
    await client.patch(path, {"status": status})


def _describe_past(pod: Object) -> Object:
    closed = write_micro_time(time.time() - 24 * 3600)
    return {
        "id": "m-past",
        "pod": pod["metadata"]["name"],
        "podUID": pod["metadata"]["uid"],
        "from": pod["spec"]["nodeName"],
        "outcome": "Worse",
        "landedOn": name_node(3),
        "evictedAt": closed,
        "closedAt": closed,
    }
