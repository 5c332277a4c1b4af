"""The library `kube`: quantities, what pods need, and what they name."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.interpreters.sandbox import Sandbox, Script, ScriptFailure
from federation.objects.names import Key
from federation.propagation.dependencies import find_dependencies
from reberth.cluster.pods.requests import count_incoming_requests
from reberth.records import PodSpec
from reberth.values.quantity import UNIT, nanos
from tests.support.federation.objects import as_template

SANDBOX = Sandbox()


def call(function: str, *arguments: Any) -> Any:
    names = ", ".join(f"a{number}" for number in range(len(arguments)))
    source = f"local kube = require('kube') function F({names}) return kube.{function}({names}) end"
    script = SANDBOX.compile(source, "F")
    assert isinstance(script, Script)
    found = SANDBOX.run(script, *arguments)
    return found if isinstance(found, ScriptFailure) else found[0]


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        ([None, None], "0"),
        (["100m", "1"], "1100m"),
        (["500m", "500m"], "1"),
        (["0.5", "1.5"], "2"),
        (["1Gi", "1Gi"], "2Gi"),
        (["512Mi", "512Mi"], "1Gi"),
        (["1Gi", "1M"], "1074741824"),
        (["1M", "1Gi"], "1074741824"),
        (["0", "1Gi"], "1Gi"),
        ([None, "64Mi"], "64Mi"),
        (["1000", "1000k"], "1001k"),
        (["1e3", "1e3"], "2e3"),
        (["0.1Gi"], "107374183"),
        (["512", "0Ki"], "512"),
        (["1Ki", "-1Ki"], "0"),
        (["1n"], "1n"),
        (["-250m"], "-250m"),
        (["1500Gi"], "1500Gi"),
        (["1E", "1E"], "2E"),
    ],
)
def test_quantities_are_added_in_canonical_form(parts: list[str | None], total: str) -> None:
    assert call("resourceAdd", *parts) == total


@given(
    parts=st.lists(
        st.sampled_from(["1", "100m", "2500u", "1.5", "7k", "3Mi", "2Gi", "1e2"]), min_size=1, max_size=6
    )
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_sum_is_the_sum(parts: list[str]) -> None:
    expected = sum(nanos(each) for each in parts)
    assert abs(nanos(call("resourceAdd", *parts)) - expected) < UNIT


@pytest.mark.parametrize("wrong", ["", "x", "1x", "1 Gi", "--1", "1e999", "0x10", "1" * 99, "1.2.3"])
def test_what_is_no_quantity_is_an_error(wrong: str) -> None:
    found = call("resourceAdd", wrong)
    assert isinstance(found, ScriptFailure)
    assert "is not of the form" in found.reason


@pytest.mark.parametrize(
    ("text", "value"), [("1500m", 1.5), ("1Gi", 2**30), ("0", 0), (None, 0), ("1k", 1000)]
)
def test_quantity_is_a_number(text: str | None, value: float) -> None:
    assert call("getResourceQuantity", text) == value


POD = {
    "initContainers": [
        {"name": "first", "resources": {"requests": {"cpu": "3", "memory": "64Mi"}}},
        {"name": "beside", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "last", "resources": {"requests": {"memory": "3Gi"}}},
    ],
    "containers": [
        {"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        {"name": "b", "resources": {"requests": {"memory": "512Mi", "nvidia.com/gpu": "2"}}},
    ],
    "overhead": {"memory": "16Mi"},
}


def test_requests_of_a_pod_are_what_kube_scheduler_counts() -> None:
    found = call("accuratePodRequirements", {"spec": POD})["resourceRequest"]
    assert found == {"cpu": "3", "memory": "3088Mi", "nvidia.com/gpu": "2"}
    amounts = count_incoming_requests(msgspec.convert(POD, PodSpec)).amounts
    assert amounts["cpu"] == 3000
    assert amounts["memory"] == 3088 * 2**20


def test_resources_of_the_pod_itself_count_for_its_containers() -> None:
    spec = {**POD, "resources": {"requests": {"memory": "8Gi"}}}
    found = call("accuratePodRequirements", {"spec": spec})["resourceRequest"]
    assert found == {"cpu": "3", "memory": "8208Mi", "nvidia.com/gpu": "2"}


def test_claim_of_a_pod_is_where_it_may_run() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
    spec = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "priorityClassName": "high",
    }
    claim = {"nodeSelector": spec["nodeSelector"], "tolerations": spec["tolerations"]}
    assert call("accuratePodRequirements", {"spec": spec}) == {
        "nodeClaim": {**claim, "hardNodeAffinity": required},
        "priorityClassName": "high",
    }
    assert call("accuratePodRequirements", {"spec": {}}) is None
    assert call("accuratePodRequirements", {}) is None


NAMING = {
    "serviceAccountName": "worker",
    "imagePullSecrets": [{"name": "registry"}],
    "containers": [
        {
            "name": "a",
            "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
            "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "more", "key": "a"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "pass", "key": "b"}}},
                {"name": "C", "value": "plain"},
            ],
        }
    ],
    "volumes": [
        {"name": "a", "configMap": {"name": "files"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "c", "secret": {"secretName": "tls"}},
        {
            "name": "d",
            "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "piece"}}]},
        },
        {"name": "e", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
        {"name": "f", "emptyDir": {}},
    ],
}


def test_pod_names_what_a_deployment_names() -> None:
    found = call("getPodDependencies", {"spec": NAMING}, "shop")
    keys = {Key(each["apiVersion"], each["kind"], each["namespace"], each["name"]) for each in found}
    template = as_template({"metadata": {"name": "a"}, "spec": {"template": {"spec": NAMING}}})
    assert keys == find_dependencies(Key("apps/v1", "Deployment", "shop", "a"), template)
    assert len(keys) == 12


def test_default_account_and_default_namespace() -> None:
    assert call("getPodDependencies", {"spec": {"serviceAccountName": "default"}}, "shop") == {}
    found = call("getPodDependencies", {"spec": {"serviceAccountName": "a"}}, None)
    assert found == [{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": "default", "name": "a"}]


def test_argument_of_another_type_is_an_error() -> None:
    for function in ("accuratePodRequirements", "getPodDependencies"):
        found = call(function, "text")
        assert isinstance(found, ScriptFailure)
        assert "table expected, got string" in found.reason
    assert isinstance(call("resourceAdd", True), ScriptFailure)
