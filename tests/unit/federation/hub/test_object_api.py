"""Objects that the federation creates have a permanent id, though the webhook does not see them."""

from typing import Any

import pytest

from federation.hub import object_api
from federation.hub.object_api import ObjectApi
from federation.objects.resources import BINDINGS, REBALANCERS, TEMPLATES, WORKS
from federation.objects.template import Object, ResourceTemplateReader
from reberth.cluster.kinds import Resource
from reberth.protocol.request import ApiRequest


class RecordingApi(ObjectApi):
    """Sends nothing, and answers with what it was to send."""

    def __init__(self) -> None:
        """Without a connection."""
        self._readers = {}

    async def _write(self, request: ApiRequest) -> bytes:
        return request.body or b""


async def create(resource: Resource[Any], labels: dict[str, str] | None) -> dict[str, str]:
    body: Object = {"metadata": {"name": "web", "labels": labels}}
    made = await RecordingApi().create_object(resource, body, namespace="default")
    assert body == {"metadata": {"name": "web", "labels": labels}}
    return dict(made["metadata"]["labels"] or {})


@pytest.mark.parametrize(("resource", "kind"), [(WORKS, "work"), (BINDINGS, "resourcebinding")])
async def test_a_new_object_gets_an_id_of_its_own(resource: Resource[Any], kind: str) -> None:
    label = f"{kind}.karmada.io/permanent-id"
    first, second = [await create(resource, {"app": "web"}) for _ in range(2)]
    assert first["app"] == "web"
    assert first[label] != second[label]
    assert await create(resource, {label: "kept"}) == {label: "kept"}
    assert set(await create(resource, None)) == {label}


async def test_kinds_without_ids_stay_as_they_are() -> None:
    assert await create(REBALANCERS, None) == {}


async def test_the_reader_of_whole_objects_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make one costs as much as to send a call."""
    made: list[ResourceTemplateReader] = []

    def make() -> ResourceTemplateReader:
        made.append(ResourceTemplateReader())
        return made[-1]

    monkeypatch.setattr(object_api, "ResourceTemplateReader", make)
    api = RecordingApi()
    for name in ("one", "two"):
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
        await api.apply_object(TEMPLATES[0], name, body, namespace="default")
    assert len(made) == 1
