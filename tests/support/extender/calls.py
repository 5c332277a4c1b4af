"""Requests as kube-scheduler sends them to an extender, and a memory to answer them from."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from extender.answers.memory import ClusterMemory
from reberth.cluster.kinds import BUDGET, HISTORY, NODE, POD, REPLICA_SET, SCORE, Kind
from reberth.cluster.pods.requests import NEWEST
from reberth.memory.addon_scores import ScoreSettings
from reberth.records import (
    EvictionHistory,
    Node,
    NodePlacementScore,
    Pod,
    PodDisruptionBudget,
    TemplatedOwner,
)
from tests.support.builders import Object, owner
from tests.support.memory.advice import LOAD, NODES, node
from tests.support.memory.objects import OWNERS

WEB_SET = TemplatedOwner(msgspec.structs.replace(OWNERS["uid-rs"], uid="uid-rs"))
"""The controller of the asked pod."""

_CAPTURED = Path(__file__).parent / "captured"


def captured(name: str) -> bytes:
    """Give the body that a real kube-scheduler sent; those with whole nodes are shortened to two of them."""
    return (_CAPTURED / f"{name}.json").read_bytes()


def web_metadata(name: str = "web-5d4f-1", **fields: Any) -> Object:
    controller = owner("ReplicaSet", "web-5d4f", uid="uid-rs")
    given = {"namespace": "shop", "uid": f"uid-{name}", "creationTimestamp": "2026-11-18T12:00:00Z"}
    return {"name": name, "ownerReferences": [controller], **given, **fields}


def question(nodes: Iterable[str] = NODES, **pod: Any) -> bytes:
    asked = {"Pod": {"metadata": web_metadata(**pod)}, "Nodes": None, "NodeNames": list(nodes)}
    return json.dumps(asked).encode()


def candidates(victims: dict[str, list[str]], **pod: Any) -> bytes:
    """Ask what preempt is asked; the numbers differ from node to node."""
    entries = {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": number}
        for number, (name, uids) in enumerate(victims.items())
    }
    asked = {
        "Pod": {"metadata": web_metadata(**pod)},
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": entries,
    }
    return json.dumps(asked).encode()


class Known:
    """A memory that is fed as a watch would do it."""

    def __init__(self, settings: ScoreSettings = LOAD, **hooks: Any) -> None:
        self.memory = ClusterMemory(settings, version=NEWEST, **hooks)
        self.version = 0

    def put(self, *records: Any, event: str = "ADDED") -> "Known":
        for record in records:
            self.version += 1
            meta = record.metadata
            uid = meta.uid or f"{type(record).__name__}-{meta.namespace}-{meta.name}"
            versioned = msgspec.structs.replace(meta, resource_version=str(self.version), uid=uid)
            subject = msgspec.structs.replace(record, metadata=versioned)
            self.memory.apply(KINDS[type(record)], event, subject)
        return self

    def drop(self, *records: Any) -> "Known":
        return self.put(*records, event="DELETED")

    def list_anew(self, kind: Kind[Any, Any], *records: msgspec.Struct) -> "Known":
        listing = self.memory.relist(kind)
        for record in records:
            meta = record.metadata  # type: ignore[attr-defined] # likewise
            uid = meta.uid or f"{type(record).__name__}-{meta.namespace}-{meta.name}"
            self.version += 1
            versioned = msgspec.structs.replace(meta, resource_version=str(self.version), uid=uid)
            listing.apply("ADDED", msgspec.structs.replace(record, metadata=versioned))
        listing.finish(str(self.version))
        return self


KINDS: dict[type, Kind[Any, Any]] = {
    Node: NODE,
    Pod: POD,
    EvictionHistory: HISTORY,
    NodePlacementScore: SCORE,
    TemplatedOwner: REPLICA_SET,
    PodDisruptionBudget: BUDGET,
}


def knowing(*records: msgspec.Struct, settings: ScoreSettings = LOAD) -> ClusterMemory:
    """Know these objects, the owners of the asked pod, and those of NODES that are not among them."""
    given = {record.metadata.name for record in records if isinstance(record, Node)}
    others = [node(name) for name in NODES if name not in given]
    return Known(settings).put(WEB_SET, *others, *records).memory
