"""`python -m federation schedule`: what it prints, and how it refuses."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from federation.__main__ import main

HUB = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1}
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment}]}]
  resourceSummary: {allocatable: {pods: 9}}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m2}
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: web}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, name: web}
  replicas: 2
  placement: {clusterAffinity: {clusterNames: [m1]}}
---
apiVersion: work.karmada.io/v1alpha2
kind: ClusterResourceBinding
metadata: {name: role}
spec:
  resource: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: role}
"""
POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: foo}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]}
"""


class Answer:
    """What a command gave."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(hub: str, *arguments: str) -> Answer:
        file = tmp_path / "hub.yaml"
        file.write_text(hub)
        monkeypatch.setattr(sys, "argv", ["federation", "schedule", "--hub", str(file), *arguments])
        code = main()
        return Answer(code, *capsys.readouterr())

    return run


def test_json_has_every_binding_with_its_reasons(run: Any) -> None:
    answer = run(HUB, "-o", "json", "--now", "2026-11-18T12:00:00Z")
    bindings = json.loads(answer.out)["bindings"]
    assert (answer.code, answer.err, list(bindings)) == (0, "", ["default/web", "role"])
    assert bindings["default/web"] == {
        "clusters": [{"name": "m1", "replicas": 2}],
        "affinityName": "",
        "reason": "Success",
        "message": "Binding has been scheduled successfully. Result: {m1:2}",
        "verdicts": {
            "m1": {"passed": True, "reasons": {}, "scores": {"ClusterLocality": 0}, "available": 9},
            "m2": {
                "passed": False,
                "reasons": {
                    "APIEnablement": "cluster(s) did not have the API resource",
                    "ClusterAffinity": "cluster(s) did not match the placement cluster affinity constraint",
                },
                "scores": {},
                "available": 0,
            },
        },
    }
    assert bindings["role"]["reason"] == "NoClusterFit"


def test_json_lists_the_groups_that_failed(run: Any) -> None:
    groups = (
        "{clusterAffinities: [{affinityName: a, clusterNames: [m2]}, {affinityName: b, clusterNames: [m1]}]}"
    )
    answer = run(HUB.replace("{clusterAffinity: {clusterNames: [m1]}}", groups), "web", "-o", "json")
    decision = json.loads(answer.out)["bindings"]["default/web"]
    assert decision["affinityName"] == "b"
    assert [failure["affinityName"] for failure in decision["failures"]] == ["a"]


def test_the_table_is_the_default(run: Any) -> None:
    assert run(HUB, "web").out == (
        "default/web: Success\n"
        "  It is scheduled because no placement has been applied to it yet.\n"
        "  Binding has been scheduled successfully. Result: {m1:2}\n"
        "  CLUSTER  REPLICAS  AVAILABLE  SCORE  REASONS\n"
        "  m1              2          9      0\n"
        "  m2              -          0      -  APIEnablement: cluster(s) did not have the API resource; "
        "ClusterAffinity: cluster(s) did not match the placement cluster affinity constraint\n"
    )


@pytest.mark.parametrize(
    ("asked", "found"), [("default/web", "default/web"), ("web", "default/web"), ("role", "role")]
)
def test_one_binding_is_found_by_its_name(run: Any, asked: str, found: str) -> None:
    assert list(json.loads(run(HUB, asked, "-o", "json").out)["bindings"]) == [found]


def test_the_table_names_the_reason_when_there_is_nothing_to_decide(run: Any) -> None:
    answer = run(HUB.replace("replicas: 2", "replicas: 2\n  suspension: {scheduling: true}"), "web")
    assert answer.out.startswith("default/web: Success\n  Scheduling is suspended.\n  CLUSTER")


def test_policies_without_bindings_are_warned_about(run: Any) -> None:
    answer = run(POLICY, "-o", "json")
    assert (answer.code, json.loads(answer.out)) == (0, {"bindings": {}})
    assert "no ResourceBinding or ClusterResourceBinding" in answer.err
    assert "PropagationPolicy default/foo" in answer.err
    assert run(POLICY).out == ""


def test_a_rebalancer_is_named_as_not_carried_out(run: Any) -> None:
    rebalancer = (
        "\n---\napiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: demo}\n"
        "spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}]}\n"
    )
    answer = run(HUB + rebalancer)
    assert answer.code == 0
    assert "WorkloadRebalancer demo is ignored" in answer.err


SELECTOR = "{labelSelector: {matchExpressions: [{key: a, operator: Near}]}}"
WEIGHT = f"{{targetCluster: {SELECTOR}, weight: 1}}"
WEIGHTS = f"{{replicaScheduling: {{weightPreference: {{staticWeightList: [{WEIGHT}]}}}}}}"
FIELDS = "{fieldSelector: {matchExpressions: [{key: KEY, operator: OPERATOR, values: [a]}]}}"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("{pods: 9}", "{pods: many}", "Cluster m1: status.resourceSummary: invalid quantity 'many'"),
        (
            "replicas: 2",
            "replicas: 2\n  replicaRequirements: {resourceRequest: {cpu: x}}",
            "ResourceBinding default/web: spec.replicaRequirements.resourceRequest: invalid quantity 'x'",
        ),
        (
            "replicas: 2",
            "replicas: 2\n  rescheduleTriggeredAt: soon\nstatus:\n  lastScheduledTime: soon\nspec_:",
            "ResourceBinding default/web: spec.rescheduleTriggeredAt: invalid time 'soon'",
        ),
        (
            "{clusterNames: [m1]}",
            SELECTOR,
            "ResourceBinding default/web: spec.placement.clusterAffinity.labelSelector: operator 'Near'",
        ),
        (
            "{clusterNames: [m1]}",
            FIELDS.replace("KEY", "planet").replace("OPERATOR", "In"),
            "clusterAffinity.fieldSelector.matchExpressions[0].key: 'planet' is not one of provider, region",
        ),
        (
            "{clusterNames: [m1]}",
            FIELDS.replace("KEY", "zone").replace("OPERATOR", "Gt"),
            "clusterAffinity.fieldSelector.matchExpressions[0].operator: 'Gt' is not one of In, NotIn",
        ),
        (
            "kind: Cluster\nmetadata: {name: m1}",
            "kind: Cluster\nmetadata: []",
            "Cluster (unnamed): metadata:",
        ),
        ("metadata: {name: m1}", "metadata: {name: m1", "--hub: while parsing"),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_the_field(
    run: Any, old: str, new: str, text: str
) -> None:
    answer = run(HUB.replace(old, new))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("federation: ")
    assert text in answer.err
    assert answer.err.count("\n") == 1


def test_the_format_has_a_long_option_as_in_all_commands(run: Any) -> None:
    assert run(HUB, "web", "--output", "json").out == run(HUB, "web", "-o", "json").out
    assert run(HUB, "web", "--output=table").out == run(HUB, "web").out == run(HUB, "web", "-o", "wide").out


def test_the_namespace_of_a_binding_may_be_given_apart(run: Any) -> None:
    assert run(HUB, "web", "-n", "default").out.startswith("default/web: ")
    assert run(HUB, "role").out.startswith("role: ")
    assert "BINDING: default/role not found" in run(HUB, "role", "--namespace", "default").err
    assert "BINDING: 'a/b/c' must be NAME or NAMESPACE/NAME" in run(HUB, "a/b/c").err


def test_an_invalid_time_file_or_binding_is_refused(run: Any) -> None:
    assert "--now: invalid time 'noon'" in run(HUB, "--now", "noon").err
    assert "--hub: /no/such/file: cannot be read: No such file" in run(HUB, "--hub", "/no/such/file").err
    answer = run(HUB, "other")
    assert (answer.code, answer.err) == (
        2,
        "federation: BINDING: default/other not found; available: default/web, role\n",
    )


def test_objects_come_from_standard_input_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["federation", "schedule", "--hub", "-", "-o", "json"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HUB.encode())))
    assert main() == 0
    assert "default/web" in capsys.readouterr().out
