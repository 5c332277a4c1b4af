"""How many members are opened at once: with twenty, the event loop has no turn for anything else."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from federation.api import Cluster
from federation.hub import sessions as module
from federation.hub.object_api import ObjectApi
from federation.hub.served_kinds import list_served
from federation.hub.sessions import Sessions, SessionSettings
from federation.membership.kubeconfig import MemberLogin
from federation.objects import resources
from reberth.cluster.kinds import NODES, PODS, Resource
from reberth.records import ObjectMeta
from reberth.values.errors import Unreachable
from tests.support.federation.fake_hub import FakeHub
from tests.unit.federation.hub.test_sessions import joined

pytestmark = pytest.mark.looptime


class Members:
    """Members that need some seconds to be listed; those in `away` do not tell who they are."""

    def __init__(self) -> None:
        self.seconds = 1.0
        self.away: set[str] = set()
        self.begun: dict[str, float] = {}
        self.being_listed: set[str] = set()
        self.most = 0
        self.selections: dict[Resource[Any], Any] = {}

    @asynccontextmanager
    async def mirror(
        self, _: Any, __: Any, kinds: Collection[Resource[Any]], *, server: str, **more: Any
    ) -> AsyncIterator[SimpleNamespace]:
        self.selections |= dict.fromkeys(kinds, more.get("selection"))
        self.begun.setdefault(server, asyncio.get_running_loop().time())
        self.being_listed.add(server)
        self.most = max(self.most, len(self.being_listed))
        yield SimpleNamespace(watchers={"pods": SimpleNamespace(answered=lambda: self._list(server))})

    async def _list(self, server: str) -> None:
        await asyncio.sleep(self.seconds)
        self.being_listed.discard(server)


class FakeApi:
    def __init__(self, *_: Any) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...


class MembersHub(FakeHub):
    leadership = None


class ManySessions(Sessions):
    members: Members

    async def _read_login(self, cluster: Cluster) -> MemberLogin:
        return MemberLogin(cluster.metadata.name.encode(), b"{}")

    async def _learn(self, name: str, api: ObjectApi) -> None:
        assert api
        if name in self.members.away:
            raise Unreachable("list namespaces", "away")
        self.identities._known[name] = ObjectMeta(name, uid=f"uid-of-{name}").uid


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> Members:
    made = Members()

    async def learn_nothing(*_: Any, **__: Any) -> None:
        await asyncio.sleep(1e6)

    monkeypatch.setattr(module, "ObjectApi", FakeApi)
    monkeypatch.setattr(module, "mirroring", made.mirror)
    monkeypatch.setattr(module, "mirror_learned_kinds", learn_nothing)
    return made


def start(members: Members, count: int) -> tuple[ManySessions, asyncio.Task[None]]:
    hub = MembersHub(resources.CLUSTERS)
    sessions = ManySessions(hub.hub, SessionSettings())
    sessions.members, hub.controllers = members, [sessions]
    for number in range(count):
        hub.put(resources.CLUSTERS, joined(f"m{number:02}"))
    return sessions, asyncio.create_task(hub.run(50))


async def test_few_members_are_listed_at_once_and_all_of_them_in_the_end(members: Members) -> None:
    sessions, running = start(members, 20)
    await asyncio.sleep(30)
    assert members.most == 4
    assert all(sessions.is_usable(f"m{number:02}") for number in range(20))
    await running


async def test_a_member_that_answers_too_slowly_keeps_the_others_waiting_for_a_few_seconds(
    members: Members,
) -> None:
    members.seconds = 1e6
    _, running = start(members, 5)
    await asyncio.sleep(9)
    assert len(members.begun) == 4
    await asyncio.sleep(2)
    assert len(members.begun) == 5
    await running


async def test_members_that_do_not_answer_take_no_turn(members: Members) -> None:
    members.seconds = 1e6
    members.away = {f"m{number:02}" for number in range(8)}
    _, running = start(members, 10)
    await asyncio.sleep(1)
    assert len(members.begun) == 10
    await running


async def test_of_a_member_only_our_copies_are_held_and_of_nodes_and_pods_all(members: Members) -> None:
    """Whatever else a member has would fill the memory of the hub."""
    _, running = start(members, 1)
    await running
    ours = {"labelSelector": "karmada.io/managed=true"}
    assert members.selections == {
        **dict.fromkeys(resources.TEMPLATES, ours),
        **dict.fromkeys((NODES, PODS), None),
    }


class CountedApi:
    """An API server of twenty groups that notes how many calls it answers at once."""

    def __init__(self) -> None:
        self.most = self.now = 0

    async def read_path(self, path: str, **_: str) -> Mapping[str, Any]:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.1)
        self.now -= 1
        if path != "/apis":
            return {"resources": []}
        return {"groups": [{"versions": [{"groupVersion": f"g{number}.io/v1"}]} for number in range(20)]}


async def test_the_kinds_of_a_member_are_asked_for_by_a_few_calls_at_once() -> None:
    api = CountedApi()
    served = await list_served(cast("ObjectApi", api))
    assert (len(served.kinds), api.most) == (21, 4)
