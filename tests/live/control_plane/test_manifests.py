"""A folder of manifests, applied to a real API server and taken away again."""

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


async def test_what_a_folder_holds_is_there_and_stays_and_goes(shared: Cluster, tmp_path: Path) -> None:
    (tmp_path / "2-objects.yaml").write_text(OBJECTS)
    (tmp_path / "1-definition.yaml").write_text(DEFINITION)
    (tmp_path / "notes.txt").write_text("no manifest")
    async with shared.client() as client:
        assert await manifests.apply(client, tmp_path) == PATHS
        first = [await client.get(path) for path in PATHS]
        assert await manifests.apply(client, tmp_path) == PATHS
        assert [await client.get(path) for path in PATHS] == first
        await client.patch(PATHS[2], {"data": {"low": "12:00"}})
        await manifests.apply(client, tmp_path)
        assert (await client.get(PATHS[2]))["data"] == {"high": "06:00"}
        await manifests.remove(client, PATHS)
        for path in PATHS:
            with pytest.raises(Refused, match=": 404 "):
                await client.get(path)
