"""Kinds of other projects by their table, unless users say otherwise, from replicas to dependencies."""

from typing import Any

import msgspec
import pytest

from federation.api import ResourceInterpreterCustomization
from federation.interpreters.kind_rules import KindRules
from federation.objects.health import find_health, has_health_rule, has_rollouts, is_rolling_out
from federation.objects.names import Key
from federation.propagation.aggregation import has_ready_copy
from federation.propagation.dependencies import find_dependencies
from federation.propagation.replica_demand import read_replica_demand
from federation.propagation.status_rules import Copies, sum_status, tells_generations
from federation.propagation.works import write_work
from tests.support.federation.objects import as_template, claimed_binding, given, meta

KRUISE, ARGO = "apps.kruise.io/v1alpha1", "argoproj.io/v1alpha1"
POD = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}]}
CLONES = Key(KRUISE, "CloneSet", "default", "web")


def wanted(key: Key, **spec: Any) -> Any:
    wire = {"apiVersion": key.api_version, "kind": key.kind, "metadata": meta(key.name, generation=2)}
    return as_template({**wire, "spec": spec})


def bound(key: Key, **clusters: int) -> Any:
    resource = {"apiVersion": key.api_version, "kind": key.kind, "namespace": "default", "name": key.name}
    return claimed_binding(
        name=f"{key.name}-{key.kind.lower()}", resource={**resource, "uid": "u"}, clusters=given(**clusters)
    )


def rules(field: str, script: str) -> KindRules:
    target = {"apiVersion": KRUISE, "kind": "CloneSet"}
    spec = {"target": target, "customizations": {field: {"luaScript": script}}}
    made = KindRules()
    made.load(
        [msgspec.convert({"metadata": {"name": "mine"}, "spec": spec}, ResourceInterpreterCustomization)]
    )
    return made


def spec_of(key: Key, made: KindRules | None = None, **spec: Any) -> Any:
    work = write_work(key, bound(key, m1=2, m2=1), wanted(key, **spec), "m1", 2, rules=made)
    (manifest,) = work["spec"]["workload"]["manifests"]
    return manifest["spec"]


def test_replicas_and_what_each_needs_are_read() -> None:
    said = read_replica_demand(CLONES, wanted(CLONES, replicas=3, template={"spec": POD}))
    assert said.replicas == 3
    assert said.requirements is not None
    assert said.requirements.resource_request == {"cpu": "500m"}
    assert read_replica_demand(CLONES, wanted(CLONES, template={"spec": POD})).replicas == 1
    assert read_replica_demand(CLONES, wanted(CLONES, replicas="odd")) == (1, None)


def test_the_template_is_where_the_kind_has_it() -> None:
    united = Key(KRUISE, "UnitedDeployment", "default", "web")
    pod = {"cloneSetTemplate": {"spec": {"template": {"spec": POD}}}}
    said = read_replica_demand(united, wanted(united, replicas=6, template=pod))
    assert said.requirements is not None
    assert said.requirements.resource_request == {"cpu": "500m"}


def test_a_kind_that_is_not_divided_runs_whole() -> None:
    flow = Key(ARGO, "Workflow", "default", "web")
    assert read_replica_demand(flow, wanted(flow, parallelism=5)) == (0, None)
    assert spec_of(flow, parallelism=5) == {"parallelism": 5}


def test_each_cluster_gets_its_share() -> None:
    assert spec_of(CLONES, replicas=3) == {"replicas": 2}
    rollout = Key(ARGO, "Rollout", "default", "web")
    assert spec_of(rollout, replicas=3, paused=True) == {"replicas": 2, "paused": True}


def test_a_script_goes_before_the_table() -> None:
    share = "function ReviseReplica(o, n) o.spec.mine = n return o end"
    assert spec_of(CLONES, rules("replicaRevision", share), replicas=3) == {"replicas": 3, "mine": 2}
    count = "function GetReplicas(o) return 7, nil end"
    made = rules("replicaResource", count)
    assert read_replica_demand(CLONES, wanted(CLONES, replicas=3), made).replicas == 7
    health = rules("healthInterpretation", "function InterpretHealth(o) return o.status.mine end")
    found = {"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": {"mine": True}}
    assert find_health(KRUISE, "CloneSet", found, health.health) == "Healthy"
    assert find_health(KRUISE, "CloneSet", found) == "Unhealthy"
    assert find_health(KRUISE, "CloneSet", found, made.health) == "Unhealthy"  # each operation by itself


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_the_table_holds_for_all_versions_of_a_kind(version: str) -> None:
    found = {"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": {"observedGeneration": 2}}
    assert find_health(f"apps.kruise.io/{version}", "StatefulSet", found) == "Unhealthy"
    assert has_health_rule(f"apps.kruise.io/{version}", "StatefulSet")


def test_a_kind_whose_status_does_not_tell_has_no_rule() -> None:
    assert not has_health_rule(KRUISE, "AdvancedCronJob")
    assert find_health(KRUISE, "AdvancedCronJob", {}) == "Healthy"


def test_a_rollout_is_not_a_failure() -> None:
    status = {"observedGeneration": "2", "phase": "Progressing", "availableReplicas": 3}
    found = {"metadata": {"generation": 2}, "spec": {"replicas": 4}, "status": status}
    assert has_rollouts(ARGO, "Rollout")
    assert is_rolling_out(ARGO, "Rollout", found)
    assert not is_rolling_out(ARGO, "Rollout", {**found, "status": {**status, "phase": "Degraded"}})
    assert not has_rollouts(ARGO, "Workflow")


def test_the_objects_that_its_pods_name_follow_it() -> None:
    job = Key("kubeflow.org/v1", "PyTorchJob", "default", "web")
    pods = {
        name: {"template": {"spec": {"imagePullSecrets": [{"name": name.lower()}]}}}
        for name in ("Master", "Worker")
    }
    found = find_dependencies(job, wanted(job, pytorchReplicaSpecs=pods))
    assert found == {Key("v1", "Secret", "default", name) for name in ("master", "worker")}
    flow = Key(ARGO, "Workflow", "default", "web")
    assert find_dependencies(flow, wanted(flow, templates=[{"container": {}}])) == frozenset()


def counted(kind: str, *statuses: Any, had: Any = None) -> Any:
    copies = Copies({f"m{at}": each for at, each in enumerate(statuses)}, is_whole=True)
    return sum_status("apps.kruise.io", kind, had or {}, copies, generation=1)


def test_counts_are_added_up_with_all_that_the_definition_demands() -> None:
    one = {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "currentRevision": "ud-1"}
    whole = {"replicas": 4, "readyReplicas": 2, "updatedReplicas": 4, "updatedReadyReplicas": 0}
    assert counted("UnitedDeployment", one, one) == {**whole, "currentRevision": "ud-1"}
    assert counted("UnitedDeployment", one, one, had=whole) is None
    assert tells_generations("apps.kruise.io", "UnitedDeployment")
    assert counted("SidecarSet", {"matchedPods": 1}) is None


def test_a_workload_without_ready_pods_is_down() -> None:
    assert has_ready_copy(bound(CLONES, m1=2), {}, ()) is False
    assert has_ready_copy(bound(Key(ARGO, "Workflow", "default", "web"), m1=0), {}, ()) is None
