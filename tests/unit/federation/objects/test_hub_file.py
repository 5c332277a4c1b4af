"""Objects of the hub are read from lists and documents; errors name the object and the field."""

import json
from typing import Any

import pytest

from federation.objects.hub_file import WITH_WORKS, HubFile

CLUSTER = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"}}
BINDING = {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": {"name": "web"}}


def read(*objects: dict[str, Any]) -> HubFile:
    return HubFile([json.dumps(each).encode() for each in objects])


def test_lists_are_opened_and_may_name_the_kind_of_their_items() -> None:
    plain = read({"apiVersion": "v1", "kind": "List", "items": [CLUSTER, BINDING]})
    typed = read(
        {"apiVersion": CLUSTER["apiVersion"], "kind": "ClusterList", "items": [{"metadata": {"name": "m1"}}]}
    )
    assert [each.metadata.name for each in plain.clusters] == ["m1"]
    assert list(plain.bindings) == ["default/web"]
    assert [each.metadata.name for each in typed.clusters] == ["m1"]


def test_kinds_that_the_scheduler_does_not_need_are_skipped() -> None:
    other = {"apiVersion": "cluster.example.com/v1", "kind": "Cluster", "metadata": {"name": "m1"}}
    hub = read(
        {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "v1", "kind": "PodList", "items": []}, other
    )
    assert (hub.clusters, hub.bindings, hub.faults) == ([], {}, [])


def test_of_two_objects_of_one_name_the_later_counts() -> None:
    (cluster,) = read({**CLUSTER, "spec": {"region": "a"}}, {**CLUSTER, "spec": {"region": "b"}}).clusters
    assert cluster.spec.region == "b"


def test_a_cluster_scoped_binding_has_its_name_alone() -> None:
    hub = read({**BINDING, "kind": "ClusterResourceBinding", "metadata": {"name": "role", "namespace": "x"}})
    assert list(hub.bindings) == ["role"]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            {**BINDING, "spec": {"replicas": "3"}},
            "ResourceBinding web: spec.replicas: Expected `int`, got `str`",
        ),
        ({**BINDING, "spec": {"replicas": -1}}, "ResourceBinding web: spec.replicas: Expected `int` >= 0"),
        ({**BINDING, "metadata": {}}, "ResourceBinding (unnamed): metadata.name: is missing"),
        (
            {**BINDING, "apiVersion": "work.karmada.io/v1alpha1"},
            (
                "ResourceBinding web: apiVersion: is work.karmada.io/v1alpha1, "
                "expected work.karmada.io/v1alpha2"
            ),
        ),
        ({"metadata": {"name": "x"}}, "object x: kind: is missing"),
        ({"kind": 3}, "object (unnamed): kind: Expected `str | null`, got `int`"),
        ({**CLUSTER, "spec": None}, "Cluster m1: spec: Expected `object`, got `null`"),
        ({"kind": "List", "items": {}}, "List (unnamed): all of it: Expected `array`, got `object`"),
    ],
)
def test_an_unreadable_object_is_named_with_its_field(wrong: dict[str, Any], text: str) -> None:
    hub = read(CLUSTER, wrong)
    assert [str(fault) for fault in hub.faults] == [text]
    assert len(hub.clusters) == 1


def test_templates_are_read_where_they_are_wanted() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"}}
    custom = {"apiVersion": "example.com/v1", "kind": "Berth", "metadata": {"name": "b", "namespace": "n"}}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    texts = [json.dumps(each).encode() for each in (deployment, role, custom, event)]
    found = HubFile(texts, with_templates=True)
    assert [key[1:] for key in found.templates] == [
        ("Deployment", "default", "web"),
        ("ClusterRole", "", "all"),
        ("Berth", "n", "b"),
    ]
    assert HubFile(texts).templates == {}


def test_works_are_read_where_they_are_wanted() -> None:
    work = {"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": {"name": "w"}}
    hub = HubFile([json.dumps(work).encode()], WITH_WORKS)
    assert [each.metadata.namespace for each in hub.list_objects("Work")] == ["default"]
