"""Write notes, open moves and scores through the API, as the rescheduler and add-ons would."""

import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any

from localcluster.client import Client, Object
from reberth.cluster.pods.identity import Signature, name_history
from reberth.memory.notes import ANNOTATION, Notes, compose_note, render_notes
from reberth.records import WorkloadIdentity
from reberth.values.timestamp import write_micro_time, write_time

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
HISTORIES = "/apis/reberth.dev/v1alpha1/namespaces/default/evictionhistories"
SCORES = "/apis/reberth.dev/v1alpha1/nodeplacementscores"


async def sign(client: Client, deployment: str) -> Signature:
    """Tell who the pods of a Deployment are; it has one ReplicaSet."""
    made = await client.get(f"{DEPLOYMENTS}/{deployment}")
    found = await client.wait(
        f"{SETS}?labelSelector=app%3D{deployment}", lambda answer: len(answer["items"]) == 1
    )
    return Signature(
        "default",
        _identify("ReplicaSet", found["items"][0]),
        _identify("Deployment", made),
    )


async def note(client: Client, who: Signature, nodes: Iterable[str], **given: Any) -> list[Object]:
    """Put a note on each node; without life they are taken away."""
    text = None
    if given:
        composed = compose_note(who, "m-test", policy="test", reason="tested", now=time.time(), **given)
        text = render_notes(Notes(ours=(composed,)))
    patch = {"metadata": {"annotations": {ANNOTATION: text}}}
    return [await client.patch(f"/api/v1/nodes/{node}", patch) for node in nodes]


async def open_move(
    client: Client, who: Signature, pod: Object, destinations: Sequence[str], *, life: float = 300.0
) -> Object:
    """Leave one open move in the workload's history, whatever stood there."""
    now, name = time.time(), name_history(who.root)
    move = {
        "id": f"m-{secrets.token_hex(4)}",
        "pod": pod["metadata"]["name"],
        "podUID": pod["metadata"]["uid"],
        "controllerUID": who.controller.uid,
        "from": pod["spec"]["nodeName"],
        "destinations": list(destinations),
        "policy": "test",
        "reason": "tested",
        "phase": "Noted",
        "plannedAt": write_micro_time(now),
        "expiresAt": write_time(now + life),
    }
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": who.root.name, "uid": who.root.uid}
    made = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "EvictionHistory",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"workload": workload},
    }
    await client.create_if_absent(HISTORIES, made)
    return await client.patch(f"{HISTORIES}/{name}/status", {"status": {"open": [move]}})


async def score(
    client: Client, node: str, value: int | None, *, source: str = "load", life: float | None = None
) -> None:
    """Give a node a score named `cpu`; None takes the source's object away."""
    name = f"{source}-{node}"
    if value is None:
        await client.delete(f"{SCORES}/{name}")
        return
    made = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "NodePlacementScore",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "source": source},
    }
    await client.create_if_absent(SCORES, made)
    status: Object = {"scores": [{"name": "cpu", "value": value}], "validUntil": None}
    if life is not None:
        status["validUntil"] = write_micro_time(time.time() + life)
    await client.patch(f"{SCORES}/{name}/status", {"status": status})


def _identify(kind: str, found: Object) -> WorkloadIdentity:
    meta = found["metadata"]
    return WorkloadIdentity("apps/v1", kind, meta["name"], meta["uid"])
