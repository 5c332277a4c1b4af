"""The rescheduler's rights, asked of the API server verb by verb: exactly those of the manifests."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from tests.support.repository import MANIFESTS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]

NAMESPACES = "/api/v1/namespaces"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
LEASES = "coordination.k8s.io/leases"
MIRRORED = {
    "": "limitranges namespaces persistentvolumeclaims persistentvolumes replicationcontrollers "
    "resourcequotas serviceaccounts services",
    "apps": "controllerrevisions deployments statefulsets",
    "argoproj.io": "rollouts",
    "autoscaling": "horizontalpodautoscalers",
    "autoscaling.k8s.io": "verticalpodautoscalers",
    "keda.sh": "scaledobjects",
    "karpenter.sh": "nodeclaims nodepools",
    "node.k8s.io": "runtimeclasses",
    "policy": "poddisruptionbudgets",
    "scheduling.k8s.io": "podgroups priorityclasses",
    "storage.k8s.io": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments",
    "reberth.dev": "nodeplacementscores",
}
READ = "get list watch"
EVERYWHERE: dict[str, str] = {
    **{f"{group}/{name}": "list watch" for group, names in MIRRORED.items() for name in names.split()},
    **dict.fromkeys(("/pods", "apps/replicasets", "batch/jobs"), READ),
    "/nodes": f"{READ} patch",
    "/pods/eviction": "create",
    "reberth.dev/evictionhistories": f"{READ} create delete",
    "reberth.dev/evictionhistories/status": "update",
    "reberth.dev/moveledgers": f"{READ} create",
    "reberth.dev/moveledgers/status": "update",
    "events.k8s.io/events": "create patch",
    "authentication.k8s.io/tokenreviews": "create",
    "authorization.k8s.io/subjectaccessreviews": "create",
}
AT_HOME = {LEASES: "create", "discovery.k8s.io/endpointslices": "list watch"}
OF_ITS_LEASE = {LEASES: f"{READ} create patch"}
# Beside what an API serves: to take another's name, or more rights.
MORE_VERBS = ("impersonate", "escalate", "bind")
# What is mirrored where somebody has installed it: nobody has, here.
UNSERVED = (
    "argoproj.io/rollouts",
    "autoscaling.k8s.io/verticalpodautoscalers",
    "karpenter.sh/nodeclaims",
    "karpenter.sh/nodepools",
    "keda.sh/scaledobjects",
    "scheduling.k8s.io/podgroups",
)
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admin(bare: Cluster) -> AsyncIterator[Client]:
    async with bare.client() as client:
        await client.create_if_absent(NAMESPACES, {"metadata": {"name": "reberth-system"}})
        applied = [await manifests.apply(client, MANIFESTS / name) for name in ("crds", "rescheduler")]
        yield client
        for paths in reversed(applied):
            await manifests.remove(client, paths)


@pytest.mark.parametrize(
    ("namespace", "name", "more"),
    [
        ("", "", {}),
        ("kube-system", "", {}),
        ("kube-system", "reberth-rescheduler", {}),
        ("reberth-system", "", AT_HOME),
        ("reberth-system", "reberth-rescheduler", {**AT_HOME, **OF_ITS_LEASE}),
    ],
)
async def test_the_service_account_has_exactly_the_rights_it_needs(
    admin: Client, namespace: str, name: str, more: dict[str, str]
) -> None:
    known = [*await list_served(admin), *((each, (*VERBS, *MORE_VERBS)) for each in UNSERVED)]
    asked = [(resource, verb) for resource, verbs in known for verb in verbs]
    assert len(asked) > 300
    answers = await asyncio.gather(*(may(admin, *each, namespace, name) for each in asked))
    allowed = {each for each, said in zip(asked, answers, strict=True) if said}
    wanted = {**EVERYWHERE, **more}
    assert allowed == {(resource, verb) for resource, verbs in wanted.items() for verb in verbs.split()}


async def list_served(client: Client) -> list[tuple[str, tuple[str, ...]]]:
    """Every resource and subresource that the API server has, and its verbs."""
    groups = (await client.get("/apis"))["groups"]
    versions = (version["groupVersion"] for group in groups for version in group["versions"])
    roots = ["/api/v1", *(f"/apis/{version}" for version in versions)]
    found: list[tuple[str, tuple[str, ...]]] = []
    for root in roots:
        group = "" if root == "/api/v1" else root.split("/")[2]
        served = (await client.get(root))["resources"]
        found.extend((f"{group}/{each['name']}", (*each["verbs"], *MORE_VERBS)) for each in served)
    return found


async def may(client: Client, resource: str, verb: str, namespace: str, name: str) -> bool:
    group, kind, *part = resource.split("/")
    asked: dict[str, Any] = {"group": group, "resource": kind, "subresource": "".join(part), "verb": verb}
    spec = {
        "user": RESCHEDULER_ACCOUNT,
        "resourceAttributes": {**asked, "namespace": namespace, "name": name},
    }
    allowed: bool = (await client.create(REVIEWS, {"spec": spec}))["status"]["allowed"]
    return allowed
