"""Silent members, a restarted hub, changed credentials: nothing is lost or done twice.

What was decided stays decided, the copies that are there stay the same objects, and whoever comes back
catches up with all that has happened meanwhile. The process goes on for all of this time.
"""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client, Object
from localcluster.components import API_SERVER
from tests.live.support.hub_and_members import (
    MEMBERS,
    Place,
    deployment,
    eventually,
    federated,
    policy,
    weighted,
)
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES, SECRETS, WORKS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
PATIENT = {"namespace": "default", "duration": "60s", "renewDeadline": "50s", "retryEvery": "500ms"}
# A silent API server is given up soon, but not for a moment's delay on a slow machine.
QUICK = {
    "members": {"probeEvery": "500ms", "threshold": "1s", "answerWithin": "3s"},
    "sessions": {"lookAtSecretEvery": "500ms", "longestPause": "500ms", "api": {"deadline": 5}},
    "execution": {"longestPause": "2s"},
}
WITHIN = 90.0
FIRST, SECOND = MEMBERS


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder: Path = tmp_path_factory.mktemp("federation")
    async with federated("federation-frozen") as place:
        await place.start(folder, lease=PATIENT, **QUICK)
        for name in MEMBERS:
            await be_ready(place, name, is_ready=True)
        yield place
        assert await place.stop() == 0
        assert " error " not in (folder / "federation.log").read_text()


async def test_a_member_that_was_frozen_catches_up(place: Place) -> None:
    hub, (one, two) = place.hub, place.members.values()
    await begin(place, "old")
    uid = (await one.get(f"{DEPLOYMENTS}/old"))["metadata"]["uid"]
    decided = await read_decision(place, "old")
    place.clusters[FIRST].freeze(API_SERVER)
    try:
        await be_ready(place, FIRST, is_ready=False)
        assert await read_decision(place, "old") == decided
        await hub.patch(f"{DEPLOYMENTS}/old", {"spec": {"replicas": 6}})
        await hub.create(DEPLOYMENTS, deployment("new", 2))
        await hub.create(POLICIES, policy("new"))
        await have_replicas(two, "old", 2)
        await have_replicas(two, "new", 2)
        assert await read_decision(place, "new") == {SECOND: 2}
    finally:
        place.clusters[FIRST].thaw(API_SERVER)
    await be_ready(place, FIRST, is_ready=True)
    await have_replicas(one, "old", 4)
    assert await read_decision(place, "old") == {FIRST: 4, SECOND: 2}
    assert (await one.get(f"{DEPLOYMENTS}/old"))["metadata"]["uid"] == uid
    await have_replicas(one, "new", 2)
    await have_one_work_each(place, "old", "new")


async def test_the_hub_restarts_in_the_middle(place: Place) -> None:
    assert place.process is not None
    names = [f"many-{number}" for number in range(20)]
    placement: Object = {"replicaScheduling": weighted(member1=2, member2=1)}
    await place.hub.create_all(POLICIES, (policy(name, **placement) for name in names))
    await place.hub.create_all(DEPLOYMENTS, (deployment(name, 3) for name in names))
    await place.cluster.kill(API_SERVER)
    await place.cluster.start(API_SERVER)
    for name in names:
        await be_applied(place, name)
        assert await read_decision(place, name) == {FIRST: 2, SECOND: 1}
        for client, share in zip(place.members.values(), (2, 1), strict=True):
            await have_replicas(client, name, share)
    await have_one_work_each(place, *names)
    assert place.process.returncode is None


async def test_credentials_are_changed(place: Place) -> None:
    one = place.members[FIRST]
    await begin(place, "kept")
    decided, uid = (
        await read_decision(place, "kept"),
        (await one.get(f"{DEPLOYMENTS}/kept"))["metadata"]["uid"],
    )
    await open_account(one)
    await enter_with(place, await make_token(one, "first"))
    await be_ready(place, FIRST, is_ready=True)
    await one.delete("/api/v1/namespaces/kube-system/secrets/first")  # the token is worth nothing without it
    await be_ready(place, FIRST, is_ready=False)
    assert await read_decision(place, "kept") == decided
    await place.hub.patch(f"{DEPLOYMENTS}/kept", {"spec": {"replicas": 6}})
    await have_replicas(place.members[SECOND], "kept", 2)
    await enter_with(place, await make_token(one, "second"))
    await be_ready(place, FIRST, is_ready=True)
    await have_replicas(one, "kept", 4)
    assert (await one.get(f"{DEPLOYMENTS}/kept"))["metadata"]["uid"] == uid
    await have_one_work_each(place, "kept")


async def begin(place: Place, name: str) -> None:
    """Two replicas in the first member, one in the second."""
    await place.hub.create(DEPLOYMENTS, deployment(name, 3))
    await place.hub.create(POLICIES, policy(name, replicaScheduling=weighted(member1=2, member2=1)))
    await be_applied(place, name)
    for client, share in zip(place.members.values(), (2, 1), strict=True):
        await have_replicas(client, name, share)


async def be_applied(place: Place, name: str) -> None:
    await eventually(place.hub, f"{BINDINGS}/{name}-deployment", is_fully_applied, within=WITHIN)


async def be_ready(place: Place, name: str, *, is_ready: bool) -> None:
    def holds(cluster: Any) -> bool:
        tainted = bool(cluster["spec"].get("taints"))
        enabled = cluster.get("status", {}).get("apiEnablements")
        return status_of(cluster, "Ready") == str(is_ready) and tainted != is_ready and bool(enabled)

    await eventually(place.hub, f"{CLUSTERS}/{name}", holds, within=WITHIN)


async def have_replicas(client: Client, name: str, count: int) -> None:
    def holds(found: Any) -> bool:
        return found is not None and found["spec"]["replicas"] == count

    await eventually(client, f"{DEPLOYMENTS}/{name}", holds, within=WITHIN)


async def have_one_work_each(place: Place, *names: str) -> None:
    works = (await place.hub.get(WORKS))["items"]
    told = [
        (each["metadata"]["namespace"], manifest["metadata"]["name"])
        for each in works
        for manifest in each["spec"]["workload"]["manifests"]
    ]
    for name in names:
        places = sorted(namespace for namespace, held in told if held == name)
        assert places == [f"karmada-es-{member}" for member in MEMBERS]


async def read_decision(place: Place, name: str) -> dict[str, int]:
    def holds(found: Any) -> bool:
        return found is not None and status_of(found, "Scheduled") == "True"

    found = await eventually(place.hub, f"{BINDINGS}/{name}-deployment", holds, within=WITHIN)
    return {each["name"]: each["replicas"] for each in found["spec"]["clusters"]}


async def open_account(member: Client) -> None:
    """An account that may do everything."""
    await member.create(ACCOUNTS, {"metadata": {"name": "federation"}})
    subject = {"kind": "ServiceAccount", "name": "federation", "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "federation"}, "roleRef": role, "subjects": [subject]}
    await member.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)


async def make_token(member: Client, name: str) -> str:
    """A token that lasts as long as the Secret of this name."""
    secret = await member.create("/api/v1/namespaces/kube-system/secrets", {"metadata": {"name": name}})
    bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
    made = await member.create(f"{ACCOUNTS}/federation/token", {"spec": {"boundObjectRef": bound}})
    return str(made["status"]["token"])


async def enter_with(place: Place, token: str) -> None:
    encoded = base64.b64encode(token.encode()).decode()
    await place.hub.patch(f"{SECRETS}/{FIRST}", {"data": {"token": encoded}})


def status_of(found: Any, condition: str) -> str | None:
    conditions = (found or {}).get("status", {}).get("conditions", ())
    return next((each["status"] for each in conditions if each["type"] == condition), None)


def is_fully_applied(found: Any) -> bool:
    return status_of(found, "FullyApplied") == "True"
