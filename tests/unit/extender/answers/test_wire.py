"""Requests are parsed, or refused with the field at fault."""

import json
from typing import Any

import pytest

from extender.answers.wire import UnreadableCall, read_args, read_pod, read_preemption_args
from tests.support.extender.calls import candidates, captured, question

POD = {"metadata": {"name": "web"}}


def body(**members: Any) -> bytes:
    return json.dumps({"Pod": POD, "Nodes": None, "NodeNames": ["n1"]} | members).encode()


@pytest.mark.parametrize("name", ["filter-cache", "prioritize-cache"])
def test_recorded_scheduler_requests_are_read(name: str) -> None:
    asked = read_args(captured(name))
    assert asked.pod.name == "web-c5f64c47f-bc5zs"
    assert asked.pod.creation_timestamp == "2026-11-18T09:14:36Z"
    assert [owner.kind for owner in asked.pod.owner_references or ()] == ["ReplicaSet"]
    assert len(asked.nodes) == 50


def test_preemption_candidates_of_a_recorded_request_are_read() -> None:
    asked = read_preemption_args(captured("preempt-cache"))
    assert asked.victims["n-00000"] == ("4db8281e-2019-4f74-819d-ee477c4acef0",)
    assert len(asked.entries) == 50


@pytest.mark.parametrize("name", ["filter-nocache", "prioritize-nocache"])
def test_requests_with_whole_nodes_are_refused(name: str) -> None:
    with pytest.raises(UnreadableCall, match="nodeCacheCapable: true is required"):
        read_args(captured(name))


def test_requests_with_whole_victims_are_refused() -> None:
    with pytest.raises(UnreadableCall, match="nodeCacheCapable: true is required"):
        read_preemption_args(captured("preempt-nocache"))


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "truncated"),
        (b"nonsense", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`, got `null`"),
        (body(Pod=None), r"Expected `object`, got `null` - at `\$\.Pod`"),
        (body(Pod={}), r"missing required field `metadata` - at `\$\.Pod`"),
        (body(Pod={"metadata": {"name": 5}}), r"at `\$\.Pod\.metadata\.name`"),
        (body(Pod={"metadata": {"labels": {"a": float("nan")}}}), "malformed"),
        (body(NodeNames="n1"), "NodeNames: Expected `array`, got `str`"),
        (body(NodeNames=["n1", 2]), r"NodeNames: Expected `str`, got `int` - at `\$\[1\]`"),
        (body(NodeNames=None), "NodeNames is missing"),
        (body(NodeNames=None, Nodes={"items": []}), "nodeCacheCapable"),
        (b'{"Pod":{"metadata":{}},"NodeNames":["\xff"]}', "utf-8|Invalid"),
        (b'{"Pod":{"metadata":{}},"NodeNames":["\\ud800"]}', "truncated"),
        (b'{"Pod":' + b"[" * 100_000, "nested too deeply|truncated|Expected"),
        (b'{"Pod":{"metadata":{}},"Other":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_an_unreadable_request_is_refused_with_the_reason(sent: bytes, reason: str) -> None:
    with pytest.raises(UnreadableCall, match=reason):
        read_args(sent)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (None, "NodeNameToMetaVictims is missing"),
        ([], r"at `\$\.NodeNameToMetaVictims`"),
        ({"n1": None}, "Expected `object`"),
        ({"n1": {"Pods": [{}]}}, "UID"),
        ({"n1": {"Pods": [{"UID": 5}]}}, "UID"),
        ({"n1": {"Pods": [], "NumPDBViolations": "x"}}, "NumPDBViolations"),
    ],
)
def test_wrong_candidates_are_refused_with_the_reason(entries: Any, reason: str) -> None:
    sent = json.dumps({"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": entries})
    with pytest.raises(UnreadableCall, match=reason):
        read_preemption_args(sent.encode())


def test_a_candidate_without_victims_is_read() -> None:
    sent = b'{"Pod":{"metadata":{}},"NodeNameToMetaVictims":{"n1":{"Pods":null},"n2":{"Pods":[]}}}'
    assert read_preemption_args(sent).victims == {"n1": (), "n2": ()}
    assert read_preemption_args(candidates({"n1": []})).victims == {"n1": ()}


def test_unknown_fields_are_ignored() -> None:
    asked = read_args(body(NodeNames=["b", "a", "b"], New={"x": [1]}))
    assert asked.nodes == ["b", "a", "b"]


def test_a_hundred_thousand_names_are_read() -> None:
    names = [f"node-{number}" for number in range(100_000)]
    assert read_args(question(names)).nodes == names


def test_a_pod_as_kubectl_prints_it_is_read() -> None:
    assert read_pod(b'{"kind":"Pod","metadata":{"name":"web","namespace":"shop"},"spec":{}}').name == "web"
    with pytest.raises(UnreadableCall, match="metadata"):
        read_pod(b"{}")
