"""Manifests are read whole before the first one is applied, each by server-side apply."""

from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from localcluster import manifests
from localcluster.client import Client
from localcluster.errors import LocalClusterError

RESOURCES = {
    "resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
        {"name": "nodes/status", "kind": "Node", "namespaced": False},
        {"name": "nodes", "kind": "Node", "namespaced": False},
        {"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": False},
    ]
}


class FakeClient(Client):
    """Serves a few kinds and remembers what was applied."""

    def __init__(self) -> None:
        self.applied: list[str] = []
        self.waited: list[str] = []

    async def apply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.applied.append(path)
        return body

    async def wait(self, path: str, *_: Any, **__: Any) -> Any:
        self.waited.append(path)
        return RESOURCES


async def test_objects_of_files_documents_and_lists_are_applied_in_order(tmp_path: Path) -> None:
    (tmp_path / "2.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: last}\n")
    (tmp_path / "1.yaml").write_text(
        """
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
---
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: other}}
  - {apiVersion: v1, kind: Node, metadata: {name: third}}
"""
    )
    paths = await manifests.apply(client := FakeClient(), tmp_path)
    assert paths == client.applied
    assert paths == [
        "/api/v1/namespaces/default/configmaps/first",
        "/api/v1/namespaces/other/configmaps/second",
        "/api/v1/nodes/third",
        "/api/v1/nodes/last",
    ]


async def test_a_definition_is_awaited_until_it_is_established(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}"
    )
    paths = await manifests.apply(client := FakeClient(), tmp_path)
    assert client.waited[-1:] == paths


@pytest.mark.parametrize("content", [None, "", "---"])
async def test_a_folder_without_manifests_is_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "one.yaml").write_text(content)
    with pytest.raises(LocalClusterError, match=f"{tmp_path} holds no manifests"):
        await manifests.apply(Mock(spec=Client), tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "kind: Node",
        "{apiVersion: v1, kind: Node, metadata: {}}",
        "{apiVersion: v1, kind: Node, metadata: }",
        "{apiVersion: v1, kind: Node, metadata: {name: 5}}",
        "{apiVersion: v1, kind: Pod, metadata: {generateName: web-}}",
        "{apiVersion: v1, metadata: {name: one}}",
        "{kind: Node, metadata: {name: one}}",
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node}]}",
        "{apiVersion: v1, kind: List, items: [one]}",
        "{apiVersion: v1, kind: List}",
    ],
)
async def test_an_object_without_type_or_name_is_refused_before_any_is_applied(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "1.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: good}}")
    (tmp_path / "2.yaml").write_text(content)
    client = FakeClient()
    with pytest.raises(
        LocalClusterError, match=r"2.yaml: every object needs apiVersion, kind and metadata.name"
    ):
        await manifests.apply(client, tmp_path)
    assert client.applied == []


async def test_objects_are_deleted_in_the_opposite_order() -> None:
    client = Mock(spec=Client, delete=AsyncMock(), wait=AsyncMock())
    await manifests.remove(client, ["/api/v1/nodes/one", "/api/v1/nodes/two"])
    assert [call.args for call in client.delete.await_args_list] == [
        ("/api/v1/nodes/two",),
        ("/api/v1/nodes/one",),
    ]
