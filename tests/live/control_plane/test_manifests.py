"""A folder of manifests, applied to a real API server and deleted again."""

import asyncio
from itertools import count
from pathlib import Path

import pytest

from localcluster import manifests
from localcluster.client import Refused
from localcluster.cluster import Cluster

pytestmark = pytest.mark.live

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: berths.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Berth, plural: berths}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
"""
OBJECTS = """
---
apiVersion: example.com/v1
kind: Berth
metadata: {name: first}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tides, namespace: kube-public}
data: {high: "06:00"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pilot}
"""
PATHS = [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/berths.example.com",
    "/apis/example.com/v1/namespaces/default/berths/first",
    "/api/v1/namespaces/kube-public/configmaps/tides",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/pilot",
]

BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: tugs}
spec: {maxUnavailable: %d, selector: {matchLabels: {app: tugs}}}
status: {disruptionsAllowed: 99}
"""


async def test_objects_of_a_folder_are_created_kept_and_deleted(shared: Cluster, tmp_path: Path) -> None:
    (tmp_path / "2-objects.yaml").write_text(OBJECTS)
    (tmp_path / "1-definition.yaml").write_text(DEFINITION)
    (tmp_path / "notes.txt").write_text("no manifest")
    async with shared.client() as client:
        assert await manifests.apply(client, tmp_path) == PATHS
        first = [await client.get(path) for path in PATHS]
        assert await manifests.apply(client, tmp_path) == PATHS
        assert [await client.get(path) for path in PATHS] == first
        await client.patch(PATHS[2], {"data": {"high": "07:00", "low": "12:00"}})
        await manifests.apply(client, tmp_path)
        assert (await client.get(PATHS[2]))["data"] == {"high": "06:00", "low": "12:00"}
        (tmp_path / "2-objects.yaml").write_text(OBJECTS.replace("high:", "ebb:"))
        await manifests.apply(client, tmp_path)  # what is no longer applied goes, another writer's stays
        assert (await client.get(PATHS[2]))["data"] == {"ebb": "06:00", "low": "12:00"}
        await manifests.remove(client, PATHS)
        for path in PATHS:
            with pytest.raises(Refused, match=": 404 "):
                await client.get(path)


async def test_another_writer_is_no_conflict(shared: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "budget.yaml"
    written = 0

    async def write(path: str) -> None:
        nonlocal written
        for turn in count():
            await client.patch(path, {"metadata": {"annotations": {"turn": str(turn)}}})
            await client.patch(f"{path}/status", {"status": {"disruptionsAllowed": turn % 9}})
            written += 2

    async with shared.client() as client:
        file.write_text(BUDGET % 0)
        (path,) = await manifests.apply(client, tmp_path)
        writers = [asyncio.create_task(write(path)) for _ in range(4)]
        for allowed in range(100):
            file.write_text(BUDGET % allowed)
            assert await manifests.apply(client, tmp_path) == [path]
            assert (await client.get(path))["spec"]["maxUnavailable"] == allowed
        for writer in writers:
            writer.cancel()
        ended = await asyncio.gather(*writers, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
        assert written > 100
        found = await client.get(path)
        assert found["metadata"]["annotations"]["turn"].isdecimal()  # the other writers' fields stay
        assert found["status"]["disruptionsAllowed"] < 99
        await manifests.remove(client, [path])
