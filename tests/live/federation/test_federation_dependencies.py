"""Dependencies of a workload are propagated with it, follow it, and are removed with it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy
from tests.live.support.hub_paths import BINDINGS, DEPLOYMENTS, EVENTS, POLICIES
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

CORE = "/api/v1/namespaces/default"
# By kind: where it is kept and what it holds; each is named by the pods of the Deployment.
NEEDED: dict[str, tuple[str, Object]] = {
    "ConfigMap": (f"{CORE}/configmaps", {"data": {"tide": "low"}}),
    "Secret": (f"{CORE}/secrets", {"stringData": {"key": "gate"}}),
    "ServiceAccount": (f"{CORE}/serviceaccounts", {"automountServiceAccountToken": False}),
    "PersistentVolumeClaim": (
        f"{CORE}/persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder: Path = tmp_path_factory.mktemp("federation")
    async with federated("federation-dependencies") as place:
        await place.start(folder)
        yield place
        assert await place.stop() == 0
        assert " error " not in (folder / "federation.log").read_text()


def needy(name: str) -> Object:
    made = deployment(name, 1)
    pod: Any = made["spec"]["template"]["spec"]
    pod |= {
        "serviceAccountName": "shared",
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
            {"name": "keys", "projected": {"sources": [{"secret": {"name": "shared"}}]}},
        ],
    }
    pod["containers"][0]["envFrom"] = [{"configMapRef": {"name": "shared"}}]
    return made


# No pod ever runs in these members, so that no copy is worth keeping.
GIVING_UP = {"failover": {"handover": {"timeoutSeconds": 1}}}


def carrying(name: str, *clusters: str) -> Object:
    made = policy(name, clusterAffinity={"clusterNames": list(clusters)})
    made["spec"] |= {"propagateDeps": True, **GIVING_UP}
    return made


def there(found: Any) -> bool:
    return found is not None


def gone(found: Any) -> bool:
    return found is None


def needed_by(*names: str) -> Any:
    return lambda found: (
        found is not None and [each["name"] for each in found["spec"].get("requiredBy", ())] == list(names)
    )


async def test_objects_named_in_pods_are_propagated_with_their_workload(place: Place) -> None:
    hub, (one, two) = place.hub, place.members.values()
    await hub.create(DEPLOYMENTS, needy("shop"))
    await hub.create(POLICIES, carrying("shop", "member1"))
    await eventually(one, f"{DEPLOYMENTS}/shop", there)
    for path, body in NEEDED.values():
        await hub.create(path, {"metadata": {"name": "shared"}, **body})
    for kind, (path, _) in NEEDED.items():
        await eventually(one, f"{path}/shared", there)
        await eventually(hub, f"{BINDINGS}/shared-{kind.lower()}", needed_by("shop-deployment"))
        assert gone(await eventually(two, f"{path}/shared", lambda _: True))


async def test_events_tell_each_step_with_the_reasons_of_karmada(place: Place) -> None:
    told = {
        "Deployment": {
            "ApplyPolicySucceed",
            "GetDependenciesSucceed",
            "SyncWorkSucceed",
            "SyncSucceed",
            "AggregateStatusSucceed",
        },
        "ResourceBinding": {"ScheduleBindingSucceed", "SyncWorkSucceed", "AggregateStatusSucceed"},
        "Cluster": {"CreateExecutionSpaceSucceed", "ClusterReady"},
    }
    await eventually(
        place.hub, EVENTS, lambda found: all(told[kind] <= reasons(found, kind) for kind in told)
    )


def reasons(events: Any, kind: str) -> set[str]:
    return {each["reason"] for each in events["items"] if each["regarding"]["kind"] == kind}


async def test_a_change_on_the_hub_reaches_members_that_need_the_object(place: Place) -> None:
    path = f"{NEEDED['ConfigMap'][0]}/shared"
    await place.hub.patch(path, {"data": {"tide": "high"}})
    await eventually(place.members["member1"], path, lambda found: found["data"]["tide"] == "high")


async def test_a_dependency_follows_its_workload_to_another_cluster(place: Place) -> None:
    hub, (one, two) = place.hub, place.members.values()
    placement = {"placement": {"clusterAffinity": {"clusterNames": ["member2"]}}}
    await hub.patch(f"{POLICIES}/shop", {"spec": placement})
    for path, _ in NEEDED.values():
        await eventually(two, f"{path}/shared", there)
        if "claims" not in path:  # no controller in the member removes its finalizer
            await eventually(one, f"{path}/shared", gone)


async def test_a_dependency_of_two_workloads_stays_until_both_are_gone(place: Place, tmp_path: Path) -> None:
    hub, (one, two) = place.hub, place.members.values()
    path = f"{NEEDED['Secret'][0]}/shared"
    await hub.create(DEPLOYMENTS, needy("store"))
    await hub.create(POLICIES, carrying("store", "member1"))
    await eventually(hub, f"{BINDINGS}/shared-secret", needed_by("shop-deployment", "store-deployment"))
    await eventually(one, f"{path}", there)
    await place.stop()
    await hub.delete(f"{DEPLOYMENTS}/shop")
    await place.start(tmp_path)
    await eventually(two, path, gone)
    await eventually(hub, f"{BINDINGS}/shared-secret", needed_by("store-deployment"))
    assert there(await one.get(path))
    await hub.patch(f"{POLICIES}/store", {"spec": {"propagateDeps": False}})
    await eventually(one, path, gone)
    await eventually(hub, f"{BINDINGS}/shared-secret", gone)
    assert there(await hub.get(path))
    assert there(await one.get(f"{DEPLOYMENTS}/store"))


async def test_a_dependency_with_its_own_policy_stays_when_it_is_unused(place: Place) -> None:
    hub, (one, two) = place.hub, place.members.values()
    path = f"{NEEDED['ConfigMap'][0]}/shared"
    await hub.patch(f"{POLICIES}/store", {"spec": {"propagateDeps": True}})
    await eventually(one, path, there)
    wanted = policy("own", clusterAffinity={"clusterNames": ["member2"]})
    wanted["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "shared"}]
    await hub.create(POLICIES, wanted)
    await eventually(two, path, there)
    assert there(await one.get(path))
    await hub.delete(f"{DEPLOYMENTS}/store")
    await eventually(one, path, gone)
    assert there(await two.get(path))
