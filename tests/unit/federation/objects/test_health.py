from typing import Any

import pytest

from federation.objects.health import find_health, has_health_rule, is_rolling_out

ROLLED_OUT = {"observedGeneration": 2, "updatedReplicas": 3, "availableReplicas": 3}
ALL_NODES = {
    "observedGeneration": 2,
    "desiredNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
}

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
VERSIONS = {
    "Service": "v1",
    "Pod": "v1",
    "PersistentVolumeClaim": "v1",
    "Ingress": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "wanted"),
    [
        ("Deployment", {"replicas": 3}, ROLLED_OUT, "Healthy"),
        ("StatefulSet", {"replicas": 3}, ROLLED_OUT, "Healthy"),
        ("Deployment", {"replicas": 4}, ROLLED_OUT, "Unhealthy"),
        ("Deployment", {"replicas": 3}, ROLLED_OUT | {"availableReplicas": 2}, "Unhealthy"),
        ("Deployment", {"replicas": 3}, ROLLED_OUT | {"observedGeneration": 1}, "Unhealthy"),
        ("Deployment", {"replicas": 0}, {"observedGeneration": 2}, "Healthy"),
        ("Deployment", {}, None, "Unhealthy"),
        ("DaemonSet", {}, ALL_NODES, "Healthy"),
        ("DaemonSet", {}, ALL_NODES | {"numberAvailable": 1}, "Unhealthy"),
        ("Service", {"type": "ClusterIP"}, {}, "Healthy"),
        ("Service", {"type": "LoadBalancer"}, {"loadBalancer": {}}, "Unhealthy"),
        ("Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "a"}]}}, "Healthy"),
        ("ReplicaSet", {"replicas": 3}, ROLLED_OUT, "Healthy"),
        ("ReplicaSet", {"replicas": 4}, ROLLED_OUT, "Unhealthy"),
        ("Pod", {}, READY, "Healthy"),
        ("Pod", {}, READY | {"conditions": []}, "Unhealthy"),
        ("Pod", {}, {"phase": "Succeeded"}, "Healthy"),
        ("Pod", {}, {"phase": "Pending"}, "Unhealthy"),
        ("PersistentVolumeClaim", {}, {"phase": "Bound"}, "Healthy"),
        ("PersistentVolumeClaim", {}, {"phase": "Pending"}, "Unhealthy"),
        ("Ingress", {}, {"loadBalancer": {"ingress": [{"ip": "a"}]}}, "Healthy"),
        ("Ingress", {}, {}, "Unhealthy"),
        ("PodDisruptionBudget", {}, {"currentHealthy": 2, "desiredHealthy": 2}, "Healthy"),
        ("PodDisruptionBudget", {}, {"currentHealthy": 1, "desiredHealthy": 2}, "Unhealthy"),
        ("Widget", {}, {"phase": "Broken"}, "Healthy"),
    ],
)
def test_a_copy_is_judged_by_the_rule_of_its_kind(kind: str, spec: Any, status: Any, wanted: str) -> None:
    assert (
        find_health(
            VERSIONS.get(kind, "apps/v1"),
            kind,
            {"metadata": {"generation": 2}, "spec": spec, "status": status},
        )
        == wanted
    )


def test_a_kind_of_the_same_name_in_another_group_has_rules_of_its_own() -> None:
    assert find_health("serving.example.com/v1", "Service", {"spec": {"type": "LoadBalancer"}}) == "Healthy"


@pytest.mark.parametrize("status", [READY, {"phase": "Succeeded"}])
def test_a_pod_that_is_being_deleted_is_not_healthy_although_it_is_ready_to_its_end(status: Any) -> None:
    metadata = {"generation": 2, "deletionTimestamp": "2026-11-19T05:00:00Z"}
    assert find_health("v1", "Pod", {"metadata": metadata, "status": status}) == "Unhealthy"


def test_the_rule_of_a_user_goes_before_the_one_that_is_built_in() -> None:
    custom = {("apps/v1", "Deployment"): lambda found: found["status"]["verdict"]}
    found = {"spec": {}, "status": ROLLED_OUT | {"verdict": "Unknown"}}
    assert find_health("apps/v1", "Deployment", found, custom) == "Unknown"
    assert find_health("apps/v1", "StatefulSet", found, custom) == "Unhealthy"


def test_what_was_told_stays_while_the_rule_of_a_user_tells_nothing() -> None:
    custom = {("example.com/v1", "Widget"): lambda _: None}
    assert find_health("example.com/v1", "Widget", {}, custom, told="Unhealthy") == "Unhealthy"
    assert find_health("example.com/v1", "Widget", {}, custom) == "Unknown"


def test_a_kind_has_a_health_rule_if_its_own_api_version_has_one() -> None:
    custom = {("example.com/v1", "Widget"): lambda _: "Healthy"}
    assert has_health_rule("apps/v1", "Deployment")
    assert has_health_rule("example.com/v1", "Widget", custom)
    assert not has_health_rule("example.com/v2", "Widget", custom)
    assert not has_health_rule("v1", "ConfigMap")


NEW, DONE, STUCK = "ReplicaSetUpdated", "NewReplicaSetAvailable", "ProgressDeadlineExceeded"


def progressing(reason: str, available: int) -> dict[str, Any]:
    said = {"type": "Progressing", "status": str(reason != STUCK), "reason": reason}
    return {"availableReplicas": available, "conditions": [said]}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "wanted"),
    [
        ("Deployment", {"replicas": 4}, progressing(NEW, 4), True),
        ("Deployment", {"replicas": 4}, progressing(NEW, 3), True),
        ("Deployment", {"replicas": 4}, progressing(NEW, 2), False),
        ("Deployment", {"replicas": 4}, progressing(DONE, 4), False),
        ("Deployment", {"replicas": 4}, progressing(STUCK, 3), False),
        ("Deployment", {"replicas": 4}, {"availableReplicas": 4}, False),
        ("Deployment", {"replicas": 4, "strategy": {"type": "Recreate"}}, progressing(NEW, 0), True),
        (
            "Deployment",
            {"replicas": 4, "strategy": {"rollingUpdate": {"maxUnavailable": 2}}},
            progressing(NEW, 2),
            True,
        ),
        (
            "Deployment",
            {"replicas": 4, "strategy": {"rollingUpdate": {"maxUnavailable": "50%"}}},
            progressing(NEW, 2),
            True,
        ),
        (
            "Deployment",
            {"replicas": 4, "strategy": {"rollingUpdate": {"maxUnavailable": "9" * 99}}},
            progressing(NEW, 3),
            False,
        ),
        (
            "StatefulSet",
            {"replicas": 3},
            {"availableReplicas": 2, "updateRevision": "b", "currentRevision": "a"},
            True,
        ),
        (
            "StatefulSet",
            {"replicas": 3},
            {"availableReplicas": 1, "updateRevision": "b", "currentRevision": "a"},
            False,
        ),
        (
            "StatefulSet",
            {"replicas": 3},
            {"availableReplicas": 2, "updateRevision": "a", "currentRevision": "a"},
            False,
        ),
        (
            "StatefulSet",
            {"replicas": 1},
            {"availableReplicas": 0, "updateRevision": "b", "currentRevision": "a"},
            False,
        ),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 3, "updatedNumberScheduled": 1, "numberAvailable": 2},
            True,
        ),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 3, "updatedNumberScheduled": 1, "numberAvailable": 1},
            False,
        ),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 2},
            False,
        ),
        ("Deployment", {"replicas": 4}, progressing(DONE, 3) | {"observedGeneration": 1}, True),
        ("Deployment", {"replicas": 4}, progressing(DONE, 2) | {"observedGeneration": 1}, False),
        ("StatefulSet", {"replicas": 3}, {"availableReplicas": 2, "observedGeneration": 1}, True),
        ("StatefulSet", {"replicas": 3}, {"availableReplicas": 1, "observedGeneration": 1}, False),
        (
            "DaemonSet",
            {},
            {
                "desiredNumberScheduled": 3,
                "updatedNumberScheduled": 3,
                "numberAvailable": 2,
                "observedGeneration": 1,
            },
            True,
        ),
        ("ReplicaSet", {"replicas": 3}, {}, False),
        ("Deployment", {}, "odd", False),
    ],
)
def test_a_rollout_that_leaves_enough_pods_is_told_from_a_failure(
    kind: str, spec: Any, status: Any, *, wanted: bool
) -> None:
    assert is_rolling_out("apps/v1", kind, {"spec": spec, "status": status}) is wanted
