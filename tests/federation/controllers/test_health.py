from typing import Any

import pytest

from federation.controllers.health import find_health

ROLLED_OUT = {"observedGeneration": 2, "updatedReplicas": 3, "availableReplicas": 3}
ALL_NODES = {
    "observedGeneration": 2,
    "desiredNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
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
        ("Widget", {}, {"phase": "Broken"}, "Healthy"),
    ],
)
def test_a_copy_is_judged_by_the_rule_of_its_kind(kind: str, spec: Any, status: Any, wanted: str) -> None:
    assert find_health(kind, {"metadata": {"generation": 2}, "spec": spec, "status": status}) == wanted
