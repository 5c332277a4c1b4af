"""A retained object equals the original and holds no reference to the response it came in."""

import gc
import sys
from typing import Any

import msgspec
import pytest

from federation.api import ResourceBinding
from federation.objects.resources import HeldWork
from federation.objects.retention import keep
from reberth.records import ObjectMeta, PartialObject, Record

NOTES = {"managedFields": ["somebody wrote this"] * 1000}
IDENTIFIER = {"ordinal": 0, "kind": "Deployment", "name": "web"}
WORK: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "karmada-es-m1", "labels": {"a": "b"}, **NOTES},
    "spec": {"workload": {"manifests": [{"kind": "Deployment"}]}},
    "status": {
        "manifestStatuses": [{"identifier": IDENTIFIER, "status": {"replicas": 3}, "health": "Healthy"}]
    },
}
BINDING = {
    "metadata": {"name": "web", "namespace": "default", "annotations": {"a": "b"}, **NOTES},
    "spec": {"resource": {"kind": "Deployment"}},
    "status": {"aggregatedStatus": [{"clusterName": "m1", "status": {"replicas": 3}, "applied": True}]},
}
CASES = [(HeldWork, WORK), (ResourceBinding, BINDING)]


@pytest.mark.parametrize(("kind", "wire"), CASES)
def test_nothing_of_the_object_changes(kind: type[Record], wire: dict[str, Any]) -> None:
    read = msgspec.json.decode(msgspec.json.encode(wire), type=kind)
    assert msgspec.json.encode(keep(read)) == msgspec.json.encode(read)


@pytest.mark.parametrize(("kind", "wire"), CASES)
def test_the_answer_is_let_go(kind: type[Record], wire: dict[str, Any]) -> None:
    answer = msgspec.json.encode(wire)
    before = sys.getrefcount(answer)
    read = msgspec.json.decode(answer, type=kind)
    assert sys.getrefcount(answer) > before, "it is not held at all"
    kept = keep(read)
    del read
    gc.collect()
    assert sys.getrefcount(answer) == before
    assert kept


@pytest.mark.parametrize("kind", [HeldWork, ResourceBinding])
def test_absent_fields_survive_retention(kind: type[Record]) -> None:
    wire = {"metadata": {"name": "a"}, "spec": {"resource": {}}}
    read = msgspec.json.decode(msgspec.json.encode(wire), type=kind)
    assert keep(read) == read


def test_names_that_many_have_are_there_once() -> None:
    def read() -> PartialObject:
        labels = {"propagationpolicy.karmada.io/permanent-id": "the same for all of them"}
        kept: PartialObject = keep(
            msgspec.json.decode(msgspec.json.encode({"metadata": {"labels": labels}}), type=PartialObject)
        )
        return kept

    ((name, value),), ((other_name, other_value),) = (
        (read().metadata.labels or {}).items() for _ in range(2)
    )
    assert name is other_name
    assert value is other_value
    assert keep(PartialObject(ObjectMeta("a"))) == PartialObject(ObjectMeta("a"))


def test_what_many_copies_are_said_to_be_is_there_once() -> None:
    applied = {"type": "Applied", "status": "True", "message": "Manifest has been successfully applied"}

    def read() -> HeldWork:
        wire = {**WORK, "status": {**WORK["status"], "conditions": [applied]}}
        kept: HeldWork = keep(msgspec.json.decode(msgspec.json.encode(wire), type=HeldWork))
        return kept

    one, other = read().status, read().status
    assert one == other
    for text in ("type", "status", "message"):
        first, second = ((each.conditions or ())[0] for each in (one, other))
        assert getattr(first, text) is getattr(second, text)
    told, again = ((each.manifest_statuses or ())[0] for each in (one, other))
    assert told.health is again.health
    assert told.identifier.kind is again.identifier.kind
