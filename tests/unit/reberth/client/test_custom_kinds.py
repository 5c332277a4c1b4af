"""Kinds of other projects: what is not served is left out in silence, what cannot be asked for is told."""

from typing import Any, cast

import msgspec
import pytest

from reberth.client import custom_kinds
from reberth.client.api import Api
from reberth.client.custom_kinds import find_custom_resources
from reberth.values.errors import NotFound, ServerFault

KRUISE = "apps.kruise.io"
NAMED = ((KRUISE, "CloneSet"), (KRUISE, "StatefulSet"))


class Documents:
    """An API server that serves these kinds of one group, or answers with an error."""

    def __init__(self, *kinds: str, error: Exception | None = None) -> None:
        self._kinds = kinds
        self._error = error
        self.asked: list[str] = []

    async def read_document(self, path: str, form: type[Any]) -> Any:
        self.asked.append(path)
        if self._error:
            raise self._error
        kinds = [{"name": f"{kind.lower()}s", "kind": kind} for kind in self._kinds]
        wire = {"preferredVersion": {"version": "v1alpha1"}, "resources": kinds}
        return msgspec.convert(wire, form)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(
        custom_kinds.log, "warning", lambda _, *, kind, reason: said.append(f"{kind}: {reason}")
    )
    return said


async def test_a_group_is_asked_once_for_all_its_kinds(told: list[str]) -> None:
    server = Documents("CloneSet", "StatefulSet")
    found = await find_custom_resources(cast("Api", server), (), unnamed=NAMED)
    assert [each.kind.name for each in found] == ["CloneSet", "StatefulSet"]
    assert server.asked == [f"/apis/{KRUISE}", f"/apis/{KRUISE}/v1alpha1"]
    assert told == []


@pytest.mark.parametrize("error", [None, NotFound("get", "no such group")])
async def test_only_kinds_that_somebody_named_are_missed(told: list[str], error: Exception | None) -> None:
    server = Documents("CloneSet", error=error)
    await find_custom_resources(cast("Api", server), (), unnamed=NAMED)
    assert told == []
    await find_custom_resources(cast("Api", server), NAMED)
    assert [each.partition(":")[0] for each in told][-1] == f"{KRUISE}/StatefulSet"


async def test_a_group_that_cannot_be_asked_for_is_told_though_nobody_named_it(told: list[str]) -> None:
    server = Documents(error=ServerFault("get", "etcd is down"))
    assert await find_custom_resources(cast("Api", server), (), unnamed=NAMED) == ()
    assert told == [f"{group}/{kind}: get: etcd is down" for group, kind in NAMED]
