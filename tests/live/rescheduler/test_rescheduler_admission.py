"""The admission policy limits the rescheduler to one node annotation, and limits no other account."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.nodes import node
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.lease import LEASES
from reberth.cluster.kinds import NODES
from reberth.memory.notes import ANNOTATION
from reberth.values import errors
from tests.support.repository import MANIFESTS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]

ACCOUNT = "system:serviceaccount:reberth-system:reberth-rescheduler"
SECOND = "system:serviceaccount:reberth-system:reberth-extender"
NAMESPACES, NAME, LEASE = "/api/v1/namespaces", "noted", "reberth-rescheduler"
BEFORE = {"owner": "ops", "reviewed": "yes"}
RIGHT = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "all-of-nodes"},
    "rules": [{"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["patch", "get"]}],
}

OTHER_CHANGES: dict[str, dict[str, Any]] = {
    "another annotation": {"metadata": {"annotations": {"owner": "me"}}},
    "a new annotation": {"metadata": {"annotations": {"mine": "yes"}}},
    "an annotation less": {"metadata": {"annotations": {"reviewed": None}}},
    "all annotations away": {"metadata": {"annotations": None}},
    "a label": {"metadata": {"labels": {"zone": "mine"}}},
    "a label less": {"metadata": {"labels": {"kubernetes.io/os": None}}},
    "a finalizer": {"metadata": {"finalizers": ["reberth.dev/mine"]}},
    "an owner": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]}
    },
    "a cordon": {"spec": {"unschedulable": True}},
    "a taint": {"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}},
    "note and cordon at once": {
        "metadata": {"annotations": {ANNOTATION: "{}"}},
        "spec": {"unschedulable": True},
    },
    "note and annotation at once": {"metadata": {"annotations": {ANNOTATION: "{}", "owner": "me"}}},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admin(bare: Cluster) -> AsyncIterator[Client]:
    """Everything of the manifests in force, and a node; both accounts may patch nodes and their status."""
    async with bare.client() as client:
        await client.create_if_absent(NAMESPACES, {"metadata": {"name": "reberth-system"}})
        paths = await manifests.apply(client, MANIFESTS / "rescheduler")
        roles = "/apis/rbac.authorization.k8s.io/v1"
        await client.create(f"{roles}/clusterroles", RIGHT)
        await client.create(f"{roles}/clusterrolebindings", _bind("all-of-nodes", ACCOUNT, SECOND))
        await client.create("/api/v1/nodes", node(NAME, annotations=BEFORE))
        bare.user(SECOND)
        async with Api(Access(str(bare.user(ACCOUNT)))) as api:
            await _until_in_force(api)
        await client.patch(f"/api/v1/nodes/{NAME}", {"metadata": {"labels": {"too-early": None}}})
        yield client
        await client.delete(f"/api/v1/nodes/{NAME}")
        await client.delete(f"{roles}/clusterrolebindings/all-of-nodes")
        await client.delete(f"{roles}/clusterroles/all-of-nodes")
        await manifests.remove(client, paths)


@pytest.fixture
def account(bare: Cluster, admin: Client) -> Access:
    del admin  # it stands
    return Access(str(bare.design.kubeconfig(ACCOUNT)))


async def test_the_rescheduler_may_write_change_and_remove_the_note(account: Access) -> None:
    async with Api(account) as api:
        for value in ('{"preferAvoidPods":[]}', "{}", None):
            patched = await api.merge(NODES, NAME, {"metadata": {"annotations": {ANNOTATION: value}}})
            assert (patched.metadata.annotations or {}).get(ANNOTATION) == value


@pytest.mark.parametrize("change", OTHER_CHANGES.values(), ids=list(OTHER_CHANGES))
async def test_the_rescheduler_may_change_no_other_field_of_a_node(
    account: Access, admin: Client, change: Any
) -> None:
    async with Api(account) as api:
        with pytest.raises(errors.ApiError, match="reberth-rescheduler-notes.*the rescheduler may change"):
            await api.merge(NODES, NAME, change)
    found = await admin.get(f"/api/v1/nodes/{NAME}")
    assert {key: found["metadata"]["annotations"].get(key) for key in BEFORE} == BEFORE
    assert "unschedulable" not in found["spec"]


async def test_a_node_that_has_no_annotation_may_be_noted(account: Access, admin: Client) -> None:
    await admin.create("/api/v1/nodes", node("plain"))
    await admin.patch("/api/v1/nodes/plain", {"metadata": {"annotations": None}})
    async with Api(account) as api:
        for value in ("{}", None):
            await api.merge(NODES, "plain", {"metadata": {"annotations": {ANNOTATION: value}}})
        with pytest.raises(errors.ApiError, match="no annotation of a node but preferAvoidPods"):
            await api.merge(NODES, "plain", {"metadata": {"annotations": {"mine": "yes"}}})
    await admin.delete("/api/v1/nodes/plain")


async def test_a_status_is_not_its_business_either(account: Access) -> None:
    change = {"status": {"conditions": [{"type": "Mine", "status": "True"}]}}
    async with Api(account) as api:
        with pytest.raises(errors.ApiError, match="the rescheduler may change nothing of a node"):
            await api.merge(NODES, NAME, change, subresource="status")


async def test_others_are_not_concerned(bare: Cluster, admin: Client) -> None:
    changes = [{"metadata": {"labels": {"theirs": "yes"}}}, {"spec": {"unschedulable": True}}]
    async with Api(Access(str(bare.design.kubeconfig(SECOND)))) as api:
        for change in changes:
            await api.merge(NODES, NAME, change)
    undone = {"metadata": {"labels": {"theirs": None}}, "spec": {"unschedulable": None}}
    await admin.patch(f"/api/v1/nodes/{NAME}", undone)
    async with Api(Access(str(bare.design.kubeconfig(SECOND)))) as api:
        status = {"status": {"conditions": [{"type": "Theirs", "status": "True"}]}}
        await api.merge(NODES, NAME, status, subresource="status")


async def test_the_rescheduler_may_watch_only_its_own_lease(account: Access) -> None:
    async with Api(account) as api:
        await anext(
            api.list_pages(LEASES, namespace="reberth-system", fieldSelector=f"metadata.name={LEASE}")
        )
        for others in ({}, {"fieldSelector": "metadata.name=another"}):
            with pytest.raises(errors.Forbidden):
                await anext(api.list_pages(LEASES, namespace="reberth-system", **others))


async def _until_in_force(api: Api) -> None:
    """The API server takes a moment to learn of a new policy."""
    async with asyncio.timeout(60):
        for attempt in count():
            try:
                await api.merge(NODES, NAME, {"metadata": {"labels": {"too-early": str(attempt)}}})
            except errors.ApiError as refused:
                if "reberth-rescheduler-notes" in str(refused):
                    return
                raise
            await asyncio.sleep(0.1)


def _bind(role: str, *accounts: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    subjects = [{"kind": "User", "name": name, "apiGroup": group} for name in accounts]
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }
