"""API paths of kinds, and how their objects are encoded."""

import json

from reberth.cluster import kinds
from reberth.cluster.kinds import HISTORIES, NODES, PODS, Resource
from reberth.protocol.request import MERGE, ApiRequest
from reberth.records import Lease, LeaseSpec, ObjectMeta


def test_paths_of_the_core_and_of_groups() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("web", namespace="shop") == "/api/v1/namespaces/shop/pods/web"
    assert (
        PODS.path("web", namespace="shop", subresource="eviction")
        == "/api/v1/namespaces/shop/pods/web/eviction"
    )
    assert NODES.path("n1") == "/api/v1/nodes/n1"
    assert HISTORIES.path("x", namespace="s") == "/apis/reberth.dev/v1alpha1/namespaces/s/evictionhistories/x"


def test_every_kind_that_can_be_mirrored_has_its_place() -> None:
    known = {kind for kind in vars(kinds).values() if isinstance(kind, kinds.Kind)}
    assert {resource.kind for resource in kinds.ALL_RESOURCES} == known


def test_an_object_is_encoded_with_its_kind_and_without_empty_fields() -> None:
    leases = Resource(kinds.plain_kind("Lease", Lease, "coordination.k8s.io"), "leases")
    lease = Lease(metadata=ObjectMeta(name="l"), spec=LeaseSpec(holder_identity="me"))
    assert json.loads(leases.encode(lease)) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me"},
    }


def test_a_request_knows_its_method_its_target_and_its_name() -> None:
    request = ApiRequest("patch", "pods", "/api/v1/pods", {"a": "b c"}, b"{}", MERGE)
    assert (request.method, request.target, str(request)) == (
        "PATCH",
        "/api/v1/pods?a=b+c",
        "patch /api/v1/pods",
    )
    assert ApiRequest("evict", "pods", "/p").method == "POST"
    assert ApiRequest("watch", "pods", "/p").target == "/p"
