"""A workload scaled up for a while: the scaler can announce it."""

from typing import Any

import pytest

from reberth.values.refusal import Refused
from rescheduler.protections import refuse_protected
from tests.support.builders import meta, owner
from tests.support.rescheduler.guardrails import Object, context_of, peer, place_of, replica, workload

KEYS = ("evictionSurgeReplicas", "eviction-autoscaler.azure.com/original-min-replicas")
SCALERS = {"HorizontalPodAutoscaler": "autoscaling/v2", "ScaledObject": "keda.sh/v1alpha1"}
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
AMONG = workload("ReplicaSet", ownerReferences=[owner("Deployment", "web")])

by_kind = pytest.mark.parametrize("kind", SCALERS)


def scaler(kind: str, target: Object, *keys: str, namespace: str = "default", name: str = "busy") -> Object:
    metadata = meta(name, namespace, annotations=dict.fromkeys(keys, "2"))
    return {
        "apiVersion": SCALERS[kind],
        "kind": kind,
        "metadata": metadata,
        "spec": {"scaleTargetRef": target},
    }


def ask(*objects: Object) -> Refused | None:
    context = context_of(peer(), replica(), AMONG, workload("Deployment"), *objects)
    return refuse_protected(place_of(context), context)


@by_kind
@pytest.mark.parametrize("key", KEYS)
def test_a_scaler_announces_a_surge_by_either_annotation_key(kind: str, key: str) -> None:
    expected = Refused("Surge", f"annotation {key} of {kind} busy: a surge is running")
    assert ask(scaler(kind, WEB, key)) == expected
    assert ask(scaler(kind, WEB, name="calm"), scaler(kind, WEB, key)) == expected


@by_kind
def test_a_scaler_without_the_annotation_is_ignored(kind: str) -> None:
    assert ask(scaler(kind, WEB)) is None
    assert ask(scaler(kind, WEB, "example.com/evictionSurgeReplicas")) is None


@by_kind
@pytest.mark.parametrize(
    "other",
    [{"name": "api"}, {"kind": "StatefulSet"}, {"apiVersion": "apps.kruise.io/v1"}, {"kind": "ReplicaSet"}],
)
def test_a_scaler_of_another_workload_is_ignored(kind: str, other: dict[str, Any]) -> None:
    assert ask(scaler(kind, {**WEB, **other}, *KEYS)) is None


@by_kind
def test_a_scaler_in_another_namespace_is_ignored(kind: str) -> None:
    assert ask(scaler(kind, WEB, *KEYS, namespace="shop")) is None


@pytest.mark.parametrize("target", [{"name": "web"}, {"apiVersion": "", "kind": "", "name": "web"}])
def test_a_keda_target_without_a_kind_is_a_deployment(target: Object) -> None:
    assert ask(scaler("ScaledObject", target, KEYS[0])) is not None


def test_the_annotation_of_the_workload_takes_precedence() -> None:
    marked = workload("Deployment", annotations={KEYS[0]: "2"})
    context = context_of(peer(), replica(), AMONG, marked, scaler("ScaledObject", WEB, KEYS[1]))
    expected = Refused("Surge", f"the workload's annotation {KEYS[0]}: a surge is running")
    assert refuse_protected(place_of(context), context) == expected
