"""`python -m federation plan`: what it prints for a file, and how it refuses."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from federation.__main__ import main
from federation.commands.plan import read_rules
from federation.controllers.failover.pending_replicas import PendingReplicasSettings
from federation.settings import FederationSettings, Switches
from reberth.values.duration import Duration

READY = "{type: Ready, status: 'True', reason: ClusterReady, lastTransitionTime: '2026-01-01T00:00:00Z'}"
SERVES = "apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}]"
HUB = f"""
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: m1}}
spec: {{taints: [{{key: lost, effect: NoExecute}}]}}
status: {{conditions: [{READY}], {SERVES}, resourceSummary: {{allocatable: {{pods: 9}}}}}}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {{name: m2}}
status: {{conditions: [{READY}], {SERVES}, resourceSummary: {{allocatable: {{pods: 9}}}}}}
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {{name: web-deployment, labels: {{binding.karmada.io/managed-by: me}}}}
spec:
  resource: {{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}}
  replicas: 2
  clusters: [{{name: m1, replicas: 2}}]
  placement: {{replicaScheduling: {{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}}}
"""
BOUND = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: new}
spec: {replicas: 1, template: {spec: {containers: [{name: main}]}}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: new, uid: p}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: new}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, uid: w}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]}
---
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: ask, creationTimestamp: '2026-11-18T11:00:00Z'}
spec: {dryRun: true, workloads: [{apiVersion: apps/v1, kind: Deployment, name: none, namespace: default}]}
"""
NOW = ("--now", "2026-11-18T12:00:00Z")
NO_POLICY = "federation: no policy in the input: bindings are taken as they are\n"


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COLUMNS", "160")

    def run(hub: str, *arguments: str) -> Answer:
        file = tmp_path / "hub.yaml"
        file.write_text(hub)
        monkeypatch.setattr(sys, "argv", ["federation", "plan", "--hub", str(file), *NOW, *arguments])
        return Answer(main(), *capsys.readouterr())

    return run


def test_the_table_is_the_default(run: Run) -> None:
    answer = run(HUB)
    assert (answer.code, answer.err) == (0, NO_POLICY)
    assert answer.out.splitlines()[:5] == [
        "2 steps for 1 binding at 2026-11-18T12:00:00Z",
        "",
        "STEP   BINDING                 CLUSTERS          WHY",
        "Evict  default/web-deployment  {m1:2}            cluster(s) had untolerated taint {lost:NoExecute}",
        "Move   default/web-deployment  {m1:2} -> {m2:2}  it is being evicted from one of its clusters",
    ]


def test_json_and_yaml_have_the_whole_plan(run: Run) -> None:
    values = json.loads(run(HUB + BOUND, "-o", "json").out)
    assert values == yaml.safe_load(run(HUB + BOUND, "-o", "yaml").out)
    assert (values["kind"], values["now"]) == ("Plan", "2026-11-18T12:00:00Z")
    assert {each["action"] for each in values["steps"]} == {"Evict", "Move", "Bind"}
    assert values["bindings"]["default/new-deployment"]["to"] == [{"name": "m2", "replicas": 1}]
    assert values["rebalancers"]["ask"][0]["reason"] == "ReferencedBindingNotFound"


def test_the_same_hub_gives_the_same_bytes(run: Run) -> None:
    documents = (HUB + BOUND).split("---")
    backwards = "---".join(reversed(documents))
    assert run(HUB + BOUND, "-o", "json").out == run(backwards, "-o", "json").out


def test_settings_say_which_controllers_run(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    head = "apiVersion: reberth.dev/v1alpha1\nkind: FederationSettings\n"
    file.write_text(f"{head}controllers: {{tainting: false, scheduler: false}}\n")
    assert run(HUB, "--settings", str(file)).out.startswith("0 steps")
    file.write_text(f"{head}controllers: {{taint: false}}\n")
    answer = run(HUB, "--settings", str(file))
    assert answer.code == 2
    assert "controllers.taint" in answer.err


@pytest.mark.parametrize(
    ("switches", "gives"),
    [
        (Switches(), True),
        (Switches(pending_replicas=False), False),
        (Switches(scheduler=False), False),
        (Switches(members=False, execution=False), False),
    ],
)
def test_a_failover_waits_for_replicas_to_be_given_only_if_somebody_gives_them(
    switches: Switches, *, gives: bool
) -> None:
    pending = PendingReplicasSettings(longer_than=Duration(300))
    rules = read_rules(FederationSettings(controllers=switches, pending_replicas=pending))
    assert (rules.pending is not None) is gives


def test_every_setting_of_a_decision_is_taken_over() -> None:
    rules = read_rules(FederationSettings(controllers=Switches(handovers=False)))
    assert rules.scheduling.handover is None
    assert "handovers" not in rules.controllers
    assert read_rules(FederationSettings()).scheduling == (120, 15, 600)
    assert (rules.patience, rules.failback_at_once) == ((600, None), 10)
    assert (rules.lost_after, rules.brake_fraction, rules.brake_longest) == (None, 0.55, 3600)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("key: lost", "key: off", "Cluster m1: spec.taints[0].key: Expected `str`, got `bool`"),
        ("replicas: 2\n", "replicas: two\n", "ResourceBinding web-deployment: spec.replicas: Expected `int`"),
        ("{name: m1}", "{name: m1", "--hub: while parsing"),
        ("kind: Deployment\nmetadata: {name: new}", "kind: Deployment\nmetadata: {}", "metadata.name"),
        ("kind: Deployment\nmetadata: {name: new}", "kind: Deployment\nmetadata: []", "Deployment"),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_the_field(
    run: Run, old: str, new: str, text: str
) -> None:
    answer = run((HUB + BOUND).replace(old, new))
    assert (answer.code, answer.out) == (2, "")
    assert text in answer.err
    assert answer.err.count("\n") == 1


def test_a_field_that_the_controllers_refuse_is_a_warning(run: Run) -> None:
    answer = run(HUB.replace("{pods: 9}", "{pods: many}", 1))
    assert answer.code == 0
    assert "federation: Cluster m1: status.resourceSummary: invalid quantity 'many'" in answer.err


def test_an_invalid_time_or_file_is_refused(run: Run) -> None:
    assert "--now: invalid time 'noon'" in run(HUB, "--now", "noon").err
    assert "--hub: /no/such: cannot be read" in run(HUB, "--hub", "/no/such").err
    assert "--settings: /no/such" in run(HUB, "--settings", "/no/such").err


def test_what_is_missing_for_a_whole_plan_is_told(run: Run) -> None:
    assert "no binding and no policy in the input: nothing to plan" in run("").err
    policies = "---".join(part for part in BOUND.split("---") if "PropagationPolicy" in part)
    assert "make no new bindings" in run(policies).err


def test_standard_input_and_the_live_hub_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["federation", "plan", "--hub", "-", *NOW])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HUB.encode())))
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["federation", "plan", "--kubeconfig", str(tmp_path / "none")])
    capsys.readouterr()
    assert main() == 2
    assert "none" in capsys.readouterr().err
