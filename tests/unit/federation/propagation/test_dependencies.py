from typing import Any

import msgspec
import pytest

from federation.objects.names import Key
from federation.propagation.dependencies import (
    change_required_by,
    find_clusters,
    find_dependencies,
    is_unused,
    write_attached_binding,
    write_snapshots,
)
from tests.support.federation.objects import WEB, as_template, claimed_binding, given, template

SETTINGS = Key("v1", "ConfigMap", "default", "settings")


def named(key: Key, spec: Any) -> set[tuple[str, str]]:
    found = find_dependencies(key, as_template({"metadata": {"name": "web"}, "spec": spec}))
    assert {(each.api_version, each.namespace) for each in found} <= {("v1", "default")}
    return {(each.kind, each.name) for each in found}


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        ({}, set()),
        ({"serviceAccountName": "default"}, set()),
        ({"serviceAccountName": "robot"}, {("ServiceAccount", "robot")}),
        ({"serviceAccount": "robot"}, {("ServiceAccount", "robot")}),
        ({"imagePullSecrets": [{"name": "pull"}, {}]}, {("Secret", "pull")}),
        ({"volumes": [{"configMap": {"name": "a"}}]}, {("ConfigMap", "a")}),
        ({"volumes": [{"configMap": {"name": "kube-root-ca.crt"}}]}, set()),
        ({"volumes": [{"secret": {"secretName": "a"}}]}, {("Secret", "a")}),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}]}, {("PersistentVolumeClaim", "a")}),
        ({"volumes": [{"csi": {"nodePublishSecretRef": {"name": "a"}}}]}, {("Secret", "a")}),
        (
            {
                "volumes": [
                    {"projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}}
                ]
            },
            {("ConfigMap", "a"), ("Secret", "b")},
        ),
        (
            {"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]}]},
            {("ConfigMap", "a"), ("Secret", "b")},
        ),
        (
            {
                "initContainers": [
                    {
                        "env": [
                            {"name": "x", "value": "1"},
                            {"valueFrom": {"configMapKeyRef": {"name": "a"}}},
                            {"valueFrom": {"secretKeyRef": {"name": "b"}}},
                        ]
                    }
                ]
            },
            {("ConfigMap", "a"), ("Secret", "b")},
        ),
        ({"volumes": "odd", "containers": [3, {"env": 5}], "serviceAccountName": 7}, set()),
    ],
)
def test_objects_named_in_a_pod_spec_are_dependencies(pod: Any, wanted: set[tuple[str, str]]) -> None:
    assert named(WEB, {"template": {"spec": pod}}) == wanted
    assert named(Key("v1", "Pod", "default", "web"), pod) == wanted
    job = {"jobTemplate": {"spec": {"template": {"spec": pod}}}}
    assert named(Key("batch/v1", "CronJob", "default", "web"), job) == wanted


def test_secrets_of_a_system_namespace_are_no_dependencies() -> None:
    pod = {"volumes": [{"secret": {"secretName": "tls"}}, {"configMap": {"name": "settings"}}]}
    key = WEB._replace(namespace="reberth-system")
    workload = as_template({"metadata": {"name": "web"}, "spec": {"template": {"spec": pod}}})
    found = find_dependencies(key, workload)
    assert {each.kind for each in found} == {"ConfigMap"}


def test_a_kind_without_pods_needs_nothing() -> None:
    pod = {"serviceAccountName": "robot"}
    assert (
        named(Key("apps.example.com/v1", "Deployment", "default", "web"), {"template": {"spec": pod}})
        == set()
    )
    assert find_dependencies(WEB, as_template({"metadata": {"name": "web"}})) == frozenset()


def test_dependencies_follow_a_copy_for_as_long_as_it_is_kept() -> None:
    tasks = [
        {"fromCluster": "m2", "purgeMode": "Gracefully", "replicas": 2},
        {"fromCluster": "m3", "purgeMode": "Directly"},
        {"fromCluster": "m1"},
    ]
    found = find_clusters(claimed_binding(clusters=given(m1=1), gracefulEvictionTasks=tasks))
    assert [(each.name, each.replicas) for each in found] == [("m1", 1), ("m2", 2)]
    found = find_clusters(claimed_binding(clusters=given(m1=1), handover={"clusters": given(m4=3)}))
    assert [(each.name, each.replicas) for each in found] == [("m1", 1), ("m4", 3)]


def test_dependents_are_listed_in_a_fixed_order() -> None:
    one, two = (
        claimed_binding(name="b", clusters=given(m1=1)),
        claimed_binding(name="a", clusters=given(m2=2)),
    )
    nowhere = claimed_binding(name="c")
    wanted = write_snapshots([one, nowhere, two])
    assert [each["name"] for each in wanted] == ["a", "b"]
    assert write_snapshots([two, one]) == wanted
    attached = claimed_binding(requiredBy=wanted)
    assert change_required_by(attached, wanted) is None
    change = change_required_by(attached, [])
    assert change == {"metadata": {"resourceVersion": "7"}, "spec": {"requiredBy": None}}


def test_an_attached_binding_is_owned_by_its_object_and_not_scheduled() -> None:
    made = write_attached_binding(SETTINGS, template("settings"), [{"name": "web"}], conflict="Overwrite")
    assert made["kind"] == "ResourceBinding"
    assert made["metadata"]["name"] == "settings-configmap"
    assert made["metadata"]["ownerReferences"][0]["uid"] == made["spec"]["resource"]["uid"] == "uid-settings"
    assert "labels" not in made["metadata"]
    assert made["spec"]["conflictResolution"] == "Overwrite"
    assert (
        write_attached_binding(SETTINGS, template(), [], conflict=None)["spec"]["conflictResolution"]
        == "Abort"
    )


def test_only_a_binding_without_policy_and_clusters_is_unused() -> None:
    claimed = claimed_binding()
    assert not is_unused(claimed)
    bare = as_binding_without_labels()
    assert is_unused(bare)


def as_binding_without_labels() -> Any:
    one = claimed_binding()
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, labels=None))
