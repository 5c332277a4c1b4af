"""The rescheduler's service account may do what a move needs, and little else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.cluster import Cluster
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.lease import LEASES
from reberth.cluster.kinds import NODES, PODS
from reberth.records import Lease, ObjectMeta
from reberth.values import errors
from rescheduler.moves.outcome import MoveReport
from tests.live.support import moves
from tests.live.support.memory_objects import definitions
from tests.live.support.moves import consistent, move, workload
from tests.support.repository import MANIFESTS

pytestmark = pytest.mark.live

ACCOUNT = "system:serviceaccount:reberth-system:reberth-rescheduler"
NAMESPACE = "/api/v1/namespaces/reberth-system"
LEASE = {"namespace": "reberth-system", **moves.BRIEF_LEASE}

_RBAC = "rbac.authorization.k8s.io"
_GROUP = {
    "subjects": [{"kind": "Group", "name": "movers", "apiGroup": _RBAC}],
    "metadata": {"name": "movers"},
}
GRANTS = [
    (f"/apis/{_RBAC}/v1/{where}", {"roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name}, **_GROUP})
    for where, kind, name in (
        ("clusterrolebindings", "ClusterRole", "reberth-rescheduler"),
        ("namespaces/reberth-system/rolebindings", "Role", "reberth-rescheduler"),
    )
]


@pytest_asyncio.fixture(autouse=True, scope="module", loop_scope="session")
async def defined(shared: Cluster) -> AsyncIterator[None]:
    async with definitions(shared), installed(shared):
        shared.user(ACCOUNT)
        yield


@asynccontextmanager
async def installed(cluster: Cluster) -> AsyncIterator[None]:
    """The account and its rights, in their namespace."""
    async with cluster.client() as client:
        await client.create("/api/v1/namespaces", {"metadata": {"name": "reberth-system"}})
        paths = await manifests.apply(client, MANIFESTS / "rescheduler")
        yield
        await manifests.remove(client, paths)
        await client.delete(NAMESPACE)
        await client.wait("/api/v1/namespaces", lambda found: "reberth-system" not in str(found["items"]))


async def test_the_account_can_carry_a_move_out(shared: Cluster) -> None:
    """It lists EndpointSlices, finds no extender, and says so; without one it moves."""
    async with workload(shared, "owned", budget=1) as owned:
        victim = await owned.pick()
        to = [node for node in moves.NODES if node != victim["spec"]["nodeName"]][:2]
        came, _ = await move(shared, victim, to, user=ACCOUNT, lease=LEASE, extender="required")
        assert isinstance(came, MoveReport)
        assert came.refused
        assert came.refused.rule == "NotSeen"
        assert await consistent(owned) == 0
        came, said = await move(shared, victim, to, user=ACCOUNT, lease=LEASE, extender="optional")
        assert isinstance(came, MoveReport)
        assert came.refused is None
        assert "not acknowledged by all extenders: no extender can be reached" in said
        assert await consistent(owned) == 1
        events = await owned.client.get("/apis/events.k8s.io/v1/namespaces/default/events")
        reasons = {event["reason"] for event in events["items"] if owned.name in event["regarding"]["name"]}
        assert {"MoveRefused", "MoveEnded"} <= reasons


async def test_a_person_of_the_operators_can_move_by_hand_and_nobody_else_with_the_same_rights(
    shared: Cluster,
) -> None:
    async with workload(shared, "by-hand", budget=1) as owned:
        for name, groups in (("jo", ["reberth:operators", "movers"]), ("mallory", ["movers"])):
            shared.user(name, groups)
        paths = [await owned.client.create(path, body) and f"{path}/movers" for path, body in GRANTS]
        victim = await owned.pick()
        to = [node for node in moves.NODES if node != victim["spec"]["nodeName"]][:2]
        with pytest.raises(errors.Forbidden, match="only subjects of the ClusterRole reberth-leader"):
            await move(shared, victim, to, user="mallory", lease=LEASE, extender="none")
        assert await consistent(owned) == 0
        came, _ = await move(shared, victim, to, user="jo", lease=LEASE, extender="none")
        assert isinstance(came, MoveReport)
        assert came.refused is None
        assert await consistent(owned) == 1
        for path in paths:
            await owned.client.delete(path)


async def test_the_account_may_neither_delete_pods_nor_taint_by_update_nor_take_other_leases(
    shared: Cluster,
) -> None:
    async with (
        workload(shared, "safe", replicas=1) as safe,
        Api(Access(str(shared.design.kubeconfig(ACCOUNT)))) as api,
    ):
        victim = (await safe.pick())["metadata"]
        with pytest.raises(errors.Forbidden):
            await api.delete(PODS, victim["name"], uid=victim["uid"], namespace="default")
        node = await api.get(NODES, "node-00000")
        with pytest.raises(errors.Forbidden):
            await api.replace(NODES, "node-00000", node)
        with pytest.raises(errors.Forbidden):
            await api.merge(LEASES, "another", {}, namespace="reberth-system")
        with pytest.raises(errors.Forbidden):
            await api.create(LEASES, Lease(ObjectMeta(name="x")), namespace="kube-system")
