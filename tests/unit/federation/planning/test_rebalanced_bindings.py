"""From the workloads of a WorkloadRebalancer to their bindings."""

import pytest
from msgspec.structs import replace

from federation.api import RebalancedWorkload, ResourceBinding
from federation.objects.names import Key
from federation.planning.rebalanced_bindings import Lookup, binding_key, choose_handover
from federation.rebalancing.review import Limits
from reberth.records import ObjectMeta
from reberth.values.object_error import ObjectError
from tests.support.federation.clusters import binding
from tests.support.federation.rebalancers import rebalancer, workload

WEB = binding(3, at={"m1": 3})
METAS = [ObjectMeta(name, "default", labels={"app": name}) for name in ("web", "unbound")]


def lookup(found: ResourceBinding | None = WEB) -> Lookup:
    def find(key: Key) -> ResourceBinding | None:
        return found if key.name == "web-deployment" else None

    return Lookup(find, lambda _version, _kind: METAS)


def test_a_binding_of_another_api_group_is_not_its_binding() -> None:
    assert lookup().find_binding(workload("web")) is WEB
    assert lookup().find_binding(workload("other")) is None
    assert (
        lookup().find_binding(RebalancedWorkload("apps.example/v1", "Deployment", "web", "default")) is None
    )


def test_a_binding_that_is_being_deleted_is_none() -> None:
    leaving = replace(WEB.metadata, deletion_timestamp="2026-11-18T12:00:00Z")
    assert lookup(replace(WEB, metadata=leaving)).find_binding(workload("web")) is None


def test_selectors_find_those_that_have_a_binding() -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    asked = rebalancer(workloadSelectors=[selector])
    assert lookup().resolve(asked) == [workload("web")]
    labelled = {**selector, "labelSelector": {"matchLabels": {"app": "none"}}}
    assert lookup().resolve(rebalancer(workloadSelectors=[labelled])) == []


def test_a_selector_that_cannot_be_read_names_the_field() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": wrong}
    with pytest.raises(ObjectError, match=r"WorkloadRebalancer demo: spec\.workloadSelectors: operator"):
        lookup().resolve(rebalancer(workloadSelectors=[selector]))


@pytest.mark.parametrize(
    ("spec", "policy", "limit", "seconds"),
    [
        ({}, 60, 600, 60),
        ({}, None, 600, 600),
        ({"handoverTimeoutSeconds": 9}, 60, 9, 9),
        ({}, 60, None, None),
    ],
)
def test_the_rebalancer_decides_before_the_policy_and_the_settings(
    spec: dict[str, int], policy: int | None, limit: int | None, seconds: int | None
) -> None:
    failover = {"handover": {"timeoutSeconds": policy}} if policy else {}
    bound = binding(3, at={"m1": 3}, failover=failover)
    assert choose_handover(rebalancer("web", **spec), bound, Limits(limit)) == seconds


def test_the_key_of_a_cluster_scoped_workload_has_no_namespace() -> None:
    role = RebalancedWorkload("rbac.authorization.k8s.io/v1", "ClusterRole", "all")
    assert binding_key(role)[1:] == ("ClusterResourceBinding", "", "all-clusterrole")
