"""Sessions that break by themselves, and those of Clusters that stand for the same member."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from federation.api import Cluster
from federation.hub.object_api import ObjectApi
from federation.hub.sessions import Session, Sessions, SessionSettings
from federation.membership.kubeconfig import MemberLogin
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from reberth.client.mirror import mirroring
from reberth.records import ObjectMeta
from reberth.values.errors import ApiError, Forbidden, Unreachable
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import bare_cluster

pytestmark = pytest.mark.looptime


class BreakingSessions(Sessions):
    """Opens a session that breaks after a second; `opened` counts them."""

    opened = 0

    async def _mirror(self, name: str, path: str) -> None:
        assert path
        self.opened += 1
        self._open[name] = None  # type: ignore[assignment]
        await asyncio.sleep(1)
        raise RuntimeError("a fault of ours")


async def test_a_session_that_broke_is_not_shown_as_open_and_is_opened_again(faults: list[str]) -> None:
    hub = FakeHub(resources.CLUSTERS)
    sessions = BreakingSessions(hub.hub, SessionSettings())
    sessions._tasks["m1"] = asyncio.create_task(sessions._serve("m1", b"{}"))
    await asyncio.sleep(0.5)
    assert "m1" in sessions._open
    await asyncio.sleep(1)
    assert "m1" not in sessions._open
    assert sessions.problems["m1"] == "internal error"
    assert len(sessions._queue) == 0
    await asyncio.sleep(5)
    assert len(sessions._queue) == 1, "it is looked at again soon, not with the next look at its Secret"
    assert faults
    faults.clear()


class FakeApi:
    """A member that tells the uid of its namespace kube-system, or an error."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.error: ApiError | None = None
        self.asked = 0

    async def list_pages(self, _: Any, *, fieldSelector: str) -> AsyncIterator[Any]:  # noqa: N803 - of the API
        assert fieldSelector == "metadata.name=kube-system"
        self.asked += 1
        if self.error:
            raise self.error
        yield SimpleNamespace(objects=[SimpleNamespace(metadata=ObjectMeta("kube-system", uid=self.uid))])


class LedSessions(Sessions):
    """Sessions whose members answer as the tests say; a session is open as long as its mirror."""

    def __init__(self, hub: FakeHub, settings: SessionSettings, **members: FakeApi) -> None:
        super().__init__(hub.hub, settings)
        self.members = members

    async def _read_login(self, _: Cluster) -> MemberLogin:
        return MemberLogin(b"{}", b"{}")

    async def _mirror(self, name: str, path: str) -> None:
        assert path
        api = cast("ObjectApi", self.members[name])
        cache = NotifyingCache(lambda _, __: None, version=(1, 36))
        async with mirroring(api, cache, ()), mirroring(api, cache, ()):
            await self._identify(name, api)
            self._open[name] = Session(api, cache, asyncio.Event())
            await asyncio.sleep(1e6)


class LedHub(FakeHub):
    def __init__(self, **members: FakeApi) -> None:
        super().__init__(resources.CLUSTERS)
        self.sessions = LedSessions(self, SessionSettings(), **members)
        self.controllers = [self.sessions]
        for name in members:
            self.put(resources.CLUSTERS, joined(name))

    @property
    def open(self) -> list[str]:
        return sorted(name for name in self.sessions.members if self.sessions.get(name))


def joined(name: str) -> Cluster:
    made = bare_cluster(name, spec={"syncMode": "Push", "id": ""})
    return replace(made, metadata=replace(made.metadata, namespace=""))


async def test_of_two_clusters_for_one_member_only_the_first_is_used_until_it_is_gone() -> None:
    hub = LedHub(m1=FakeApi("x"), m2=FakeApi("x"), m3=FakeApi("y"))
    running = asyncio.create_task(hub.run(400))
    await asyncio.sleep(130)
    assert hub.open == ["m1", "m3"]
    assert hub.sessions.identities.owners == {"m2": "m1"}
    assert hub.sessions.identities.of("m2") is None, "it would be written into spec.id"
    assert "that of Cluster m1" in hub.sessions.problems["m2"]
    assert hub.sessions.members["m2"].asked <= 4, "it is asked once a minute"
    hub.drop(resources.CLUSTERS, joined("m1"))
    await asyncio.sleep(3)
    assert hub.open == ["m2", "m3"]
    assert not hub.sessions.identities.owners
    await running


async def test_a_younger_twin_is_closed_as_soon_as_the_older_one_is_known() -> None:
    hub = LedHub(m1=FakeApi("x"), m2=FakeApi("x"))
    hub.sessions.members["m1"].error = Unreachable("list namespaces", "away")
    running = asyncio.create_task(hub.run(60))
    await asyncio.sleep(5)
    assert hub.open == ["m2"]
    hub.sessions.members["m1"].error = None
    await asyncio.sleep(2)
    assert hub.open == ["m1"]
    assert hub.sessions.identities.owners == {"m2": "m1"}
    await running


async def test_a_member_that_becomes_another_one_behind_its_address_is_used_no_longer() -> None:
    hub = LedHub(m1=FakeApi("x"), m2=FakeApi("y"))
    running = asyncio.create_task(hub.run(400))
    await asyncio.sleep(10)
    assert hub.open == ["m1", "m2"]
    hub.sessions.members["m2"].uid = "x"
    await asyncio.sleep(130)
    assert hub.open == ["m1"]
    hub.sessions.members["m2"].uid = "z"
    await asyncio.sleep(130)
    assert hub.open == ["m1", "m2"]
    assert hub.sessions.identities.of("m2") == "z"
    await running


async def test_a_member_that_may_not_tell_who_it_is_for_a_while_is_used_on() -> None:
    hub = LedHub(m1=FakeApi("x"))
    running = asyncio.create_task(hub.run(400))
    await asyncio.sleep(10)
    hub.sessions.members["m1"].error = Forbidden("list namespaces", "no right")
    session, asked = hub.sessions.get("m1"), hub.sessions.members["m1"].asked
    await asyncio.sleep(130)
    assert hub.sessions.members["m1"].asked > asked
    assert hub.sessions.get("m1") is session
    assert hub.sessions.identities.of("m1") == "x"
    await running


async def test_a_member_that_cannot_tell_who_it_is_is_waited_for_and_one_that_may_not_is_used() -> None:
    hub = LedHub(m1=FakeApi("x"), m2=FakeApi("x"))
    hub.sessions.members["m1"].error = Unreachable("list namespaces", "away")
    hub.sessions.members["m2"].error = Forbidden("list namespaces", "no right")
    running = asyncio.create_task(hub.run(60))
    await asyncio.sleep(20)
    assert hub.open == ["m2"]
    assert hub.sessions.identities.of("m2") == ""
    hub.sessions.members["m1"].error = None
    await asyncio.sleep(5)
    assert hub.open == ["m1", "m2"]
    await running
