"""Existing YAML is read unchanged, with deprecated spellings too."""

from typing import Any

import msgspec
import pytest
import yaml

from federation.api import (
    Cluster,
    DivisionPreference,
    PropagationPolicy,
    PurgeMode,
    ReplicaScheduling,
    ResourceBinding,
    SchedulingType,
    SpreadField,
    Work,
    WorkloadRebalancer,
)

FAILOVER_POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx-propagation
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
    - apiVersion: apps/v1
      kind: StatefulSet
      name: mysql
  failover:
    application:
      preConditions:
        delaySeconds: 5000
      decisionConditions:
        tolerationSeconds: 200
        healthyState:
        - Unhealthy
      purgeMode: Graciously
      blockPredecessorSeconds: 600
  placement:
    clusterAffinity:
      clusterNames: [member1, member2]
    clusterTolerations:
      - {key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
    spreadConstraints:
      - {spreadByField: region, minGroups: 1, maxGroups: 2}
"""
FAILOVER_BINDING = """
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: nginx-pod
spec:
  clusters:
  - name: member1
  activeEvictionHistory:
  - clusterName: member2
    createTimestamp: "2023-04-03T01:44:31Z"
  resource: {apiVersion: v1, kind: Pod, name: nginx, namespace: default}
  schedulerName: default-scheduler
status:
  SchedulerObservedAffinityName: ds-hongkong
  aggregatedStatus:
  - applied: true
    settled: true
    clusterName: member1
    health: Healthy
    status: {phase: Running}
    createTimestamp: "2023-04-03T02:44:31Z"
"""
REBALANCED = """
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata:
  creationTimestamp: "2024-04-17T15:04:05Z"
  name: demo
spec:
  ttlSecondsAfterFinished: 60
  workloads:
    - {apiVersion: apps/v1, kind: Deployment, name: demo-deploy-1, namespace: default}
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: demo-role}
status:
  finishTime: "2024-04-17T15:04:06Z"
  observedWorkloads:
    - result: Successful
      workload: {apiVersion: apps/v1, kind: Deployment, name: demo-deploy-1, namespace: default}
    - reason: ReferencedBindingNotFound
      result: Failed
      workload: {apiVersion: apps/v1, kind: Deployment, name: demo-deploy-2, namespace: default}
"""


def read(text: str, record: type[Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(yaml.safe_load(text)), type=record)


def test_a_policy_with_failover_is_read() -> None:
    spec = read(FAILOVER_POLICY, PropagationPolicy).spec
    application = spec.failover.application
    assert application.purge_mode is PurgeMode.GRACEFULLY
    assert application.decision_conditions.healthy_state == ("Unhealthy",)
    assert application.pre_conditions.delay_seconds == 5000
    assert spec.placement.cluster_tolerations[0].toleration_seconds == 30
    assert spec.placement.spread_constraints[0].spread_by_field is SpreadField.REGION
    assert spec.scheduler_name == "default-scheduler"


def test_a_binding_in_old_spellings_is_read() -> None:
    binding = read(FAILOVER_BINDING, ResourceBinding)
    assert binding.status.observed_affinity == "ds-hongkong"
    assert binding.spec.active_eviction_history[0].create_timestamp == "2023-04-03T01:44:31Z"
    (item,) = binding.status.aggregated_status
    assert (item.settled, bytes(item.status)) == (True, b'{"phase":"Running"}')


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("Directly", PurgeMode.DIRECTLY),
        ("Immediately", PurgeMode.DIRECTLY),
        ("Gracefully", PurgeMode.GRACEFULLY),
        ("Graciously", PurgeMode.GRACEFULLY),
        ("Never", PurgeMode.NEVER),
    ],
)
def test_f_04_b_both_names_of_a_purge_mode_are_known(text: str, mode: PurgeMode) -> None:
    assert msgspec.convert(text, PurgeMode) is mode


def test_an_invalid_purge_mode_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'Slowly'"):
        msgspec.convert("Slowly", PurgeMode)


def test_s_58_a_division_is_by_weight_if_it_does_not_say_how() -> None:
    scheduling = msgspec.convert({"replicaSchedulingType": "Divided"}, ReplicaScheduling)
    assert scheduling.replica_division_preference is DivisionPreference.WEIGHTED
    assert msgspec.convert({}, ReplicaScheduling).replica_scheduling_type is SchedulingType.DIVIDED


def test_a_rebalancer_is_read() -> None:
    rebalancer = read(REBALANCED, WorkloadRebalancer)
    assert rebalancer.spec.ttl_seconds_after_finished == 60
    assert [each.result for each in rebalancer.status.observed_workloads] == ["Successful", "Failed"]


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        (
            Cluster,
            {
                "metadata": {"name": "m1"},
                "spec": {
                    "id": "x",
                    "apiEndpoint": "https://127.0.0.1",
                    "proxyURL": "http://p",
                    "insecureSkipTLSVerification": True,
                    "resourceModels": [{"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "1"}]}],
                },
                "status": {"resourceSummary": {"allocatableModelings": [{"grade": 0, "count": 3}]}},
            },
        ),
        (
            Work,
            {
                "metadata": {"name": "w"},
                "spec": {"workload": {"manifests": [{"kind": "Deployment"}]}},
                "status": {"manifestStatuses": [{"identifier": {"version": "v1", "kind": "Deployment"}}]},
            },
        ),
    ],
)
def test_records_are_written_with_the_wire_names_they_are_read_with(
    record: type[Any], fields: dict[str, Any]
) -> None:
    text = msgspec.json.encode(fields)
    assert msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(text, type=record))) == fields
