from typing import Any

import pytest

from federation.objects.names import Key
from federation.propagation.manifest import GENERATION, is_namespace_in_step, write_manifest, write_namespace
from tests.support.federation.objects import as_template

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TOKEN_VOLUME = {"name": "kube-api-access-x7k", "mountPath": "/var/run"}


def written(api_version: str, kind: str, parts: Any, **meta: Any) -> Any:
    wire = {"metadata": {"name": "a", "uid": "u", **meta}, "status": {"phase": "x"}, **parts}
    return write_manifest(Key(api_version, kind, "", "a"), as_template(wire))


@pytest.mark.parametrize(
    ("api_version", "kind", "parts", "sent"),
    [
        (
            "v1",
            "Service",
            {
                "spec": {
                    "clusterIP": "10.0.0.1",
                    "clusterIPs": ["10.0.0.1"],
                    "healthCheckNodePort": 3,
                    "ports": [],
                }
            },
            {"spec": {"ports": []}},
        ),
        (
            "v1",
            "Service",
            {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}},
            {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}},
        ),
        (
            "v1",
            "ServiceAccount",
            {"secrets": [{"name": "a"}], "automountServiceAccountToken": False},
            {"automountServiceAccountToken": False},
        ),
        ("batch/v1", "Job", {"spec": {"selector": {}, "template": {}}}, {"spec": {"template": {}}}),
        (
            "batch/v1",
            "Job",
            {"spec": {"template": {"metadata": {"labels": {"controller-uid": "u", "a": "b"}}}}},
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
        ),
        (
            "batch/v1",
            "Job",
            {"spec": {"manualSelector": True, "selector": {"matchLabels": {}}}},
            {"spec": {"manualSelector": True, "selector": {"matchLabels": {}}}},
        ),
        (
            "v1",
            "Pod",
            {
                "spec": {
                    "nodeName": "n1",
                    "priority": 0,
                    "volumes": [{"name": "data"}, TOKEN_VOLUME],
                    "containers": [{"name": "main", "volumeMounts": [TOKEN_VOLUME]}],
                }
            },
            {"spec": {"volumes": [{"name": "data"}], "containers": [{"name": "main", "volumeMounts": []}]}},
        ),
        ("v1", "Secret", {"type": "Opaque", "data": {"a": "b"}}, {"type": "Opaque", "data": {"a": "b"}}),
        (
            "v1",
            "Secret",
            {"type": "kubernetes.io/service-account-token", "data": {"token": "b"}},
            {"type": "kubernetes.io/service-account-token"},
        ),
        ("v1", "PersistentVolume", {"spec": {"claimRef": {}, "a": 1}}, {"spec": {"a": 1}}),
        ("v1", "PersistentVolumeClaim", {"spec": {"volumeName": "v"}}, {"spec": {"volumeName": "v"}}),
        ("v1", "ConfigMap", {"data": {"a": "b"}}, {"data": {"a": "b"}}),
        ("example.com/v1", "Berth", {"tides": [1], "spec": {}}, {"tides": [1], "spec": {}}),
        ("example.com/v1", "Service", {"spec": {"clusterIP": "1"}}, {"spec": {"clusterIP": "1"}}),
    ],
)
def test_fields_set_by_servers_and_controllers_are_not_sent(
    api_version: str, kind: str, parts: Any, sent: Any
) -> None:
    manifest = written(api_version, kind, parts, annotations={LAST_APPLIED: "x"})
    assert manifest == {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **sent}


def test_a_volume_that_was_bound_on_the_hub_is_found_anew_in_the_member() -> None:
    bound = {"pv.kubernetes.io/bound-by-controller": "yes"}
    manifest = written("v1", "PersistentVolumeClaim", {"spec": {"volumeName": "v"}}, annotations=bound)
    assert manifest["spec"] == {}
    assert "annotations" not in manifest["metadata"]


def test_a_copy_is_annotated_with_the_generation_of_its_template() -> None:
    assert written("apps/v1", "Deployment", {}, generation=3)["metadata"]["annotations"] == {GENERATION: "3"}


ENFORCED = "pod-security.kubernetes.io/enforce"


@pytest.mark.parametrize(
    ("hub", "member", "is_in_step"),
    [
        ({}, {}, True),
        ({"team": "a"}, {"team": "a", "theirs": "yes"}, True),
        ({"team": "a"}, {"team": "b"}, False),
        ({"team": "a"}, {}, False),
        ({ENFORCED: "restricted"}, {ENFORCED: "baseline"}, False),
        ({}, {ENFORCED: "baseline"}, False),
        ({}, {"team": "gone"}, True),
    ],
)
def test_a_namespace_is_in_step_if_it_has_the_labels_and_the_pod_security_of_the_hub(
    hub: dict[str, str], member: dict[str, str], *, is_in_step: bool
) -> None:
    wanted = write_namespace(as_template({"metadata": {"name": "shop", "labels": hub}}))
    assert wanted["metadata"]["labels"] == {**hub, "karmada.io/managed": "true"}
    assert is_namespace_in_step(wanted, {**member, "karmada.io/managed": "true"}) is is_in_step
