"""Kinds are looked up together, after everything else, and only as long as somebody wants them."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from federation.controllers.membership.discovery import DiscoveryController, DiscoverySettings
from federation.hub.call_priority import URGENCY, Urgency
from federation.hub.object_api import ObjectApi
from federation.hub.served_kinds import ServedKind, list_group_versions, list_kinds
from federation.hub.sessions import Sessions
from federation.objects import resources
from reberth.client.watcher import WatchSettings
from reberth.values.errors import ServerFault, Unreachable
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import policy

pytestmark = pytest.mark.looptime
BERTH = {"apiVersion": "example.com/v1", "kind": "Berth"}
SERVED = {"name": "berths", "kind": "Berth", "namespaced": True}


class FakeServer:
    """An API server that serves these kinds, by group version; its calls are noted."""

    server = "https://fake"

    def __init__(self, **kinds: list[Any]) -> None:
        self.kinds = {name.replace("_", "."): served for name, served in kinds.items()}
        self.calls: list[str] = []
        self.is_reachable = True
        self.dead: set[str] = set()

    async def read_path(self, path: str, *, subject: str) -> Mapping[str, Any]:
        assert (subject, URGENCY.get()) == ("apis", Urgency.SUMMING_UP)
        self.calls.append(path)
        await asyncio.sleep(0.01)
        if not self.is_reachable:
            raise Unreachable("get", "no connection")
        if path == "/apis":
            groups = [{"name": name, "versions": [{"groupVersion": f"{name}/v1"}]} for name in self.kinds]
            return {"groups": groups}
        group = path.removeprefix("/apis/").removesuffix("/v1")
        if group in self.dead:
            raise ServerFault("get", "the aggregated API server is away")
        return {"resources": self.kinds.get(group, [])}

    def count(self) -> int:
        calls = len(self.calls)
        self.calls.clear()
        return calls


class Place:
    def __init__(self, hub: FakeServer, *members: FakeServer) -> None:
        self.fake = FakeHub(resources.POLICIES, resources.CLUSTER_POLICIES)
        self.fake.hold(resources.POLICIES)
        self.fake.hold(resources.CLUSTER_POLICIES)
        self.hub = self.fake.hub
        object.__setattr__(self.hub, "api", hub)
        sessions = SimpleNamespace(all=lambda: [SimpleNamespace(api=member) for member in members])
        self.controller = DiscoveryController(
            self.hub, cast("Sessions", sessions), DiscoverySettings(), WatchSettings()
        )

    def names(self) -> list[str]:
        return [each.name for each in self.hub.catalog.learned.all]

    def ask(self) -> None:
        assert self.hub.catalog.find("example.com/v1", "Berth") is None

    @contextmanager
    def looking(self) -> Iterator[None]:
        task = asyncio.create_task(self.controller._look_forever())
        yield
        task.cancel()


async def test_a_thousand_kinds_that_do_not_exist_cost_two_calls_a_look_and_are_forgotten() -> None:
    hub = FakeServer(example_com=[SERVED], apps=[])
    place = Place(hub)
    names = [("apps/v1", f"No{n}") for n in range(700)] + [(f"no{n}.example/v1", "No") for n in range(800)]
    odd = policy("odd", *({"apiVersion": version, "kind": kind} for version, kind in names))
    place.fake.hold(resources.POLICIES, odd)
    with place.looking():
        for version, kind in names:
            place.hub.catalog.find(version, kind)
        await asyncio.sleep(5)
        assert hub.count() == 2
        await asyncio.sleep(600)
        assert hub.count() <= 2 * (4 + 9)  # after 10, 20 and 40 s, then each minute
        place.ask()
        await asyncio.sleep(1)
        assert place.names() == ["berths"]
        place.fake.hold(resources.POLICIES)
        place.controller._asked.clear()
        await asyncio.sleep(120)
        hub.count()
        await asyncio.sleep(3600)
        assert hub.count() == 0


async def test_whoever_asks_on_and_on_for_a_kind_that_is_not_there_causes_no_more_looks() -> None:
    hub = FakeServer(example_com=[])
    place = Place(hub)
    place.fake.hold(resources.POLICIES, policy("a", BERTH))
    with place.looking():
        for _ in range(600):
            place.ask()
            await asyncio.sleep(1)
        assert hub.count() <= 2 * (1 + 4 + 9)


async def test_a_kind_that_is_served_later_is_found() -> None:
    hub = FakeServer(example_com=[])
    place = Place(hub)
    place.fake.hold(resources.POLICIES, policy("a", BERTH))
    with place.looking():
        place.ask()
        await asyncio.sleep(300)
        hub.is_reachable = False
        await asyncio.sleep(300)
        hub.is_reachable = True
        hub.kinds["example.com"] = [SERVED]
        await asyncio.sleep(61)
    assert place.names() == ["berths"]


async def test_a_group_that_does_not_answer_keeps_no_other_kind_from_being_found() -> None:
    hub = FakeServer(dead_example=[SERVED], example_com=[SERVED])
    hub.dead.add("dead.example")
    place = Place(hub)
    place.fake.hold(resources.POLICIES, policy("a", {**BERTH, "apiVersion": "dead.example/v1"}, BERTH))
    with place.looking():
        place.ask()
        await asyncio.sleep(1)
        assert place.names() == ["berths"]
        hub.dead.clear()
        await asyncio.sleep(61)
    assert place.names() == ["berths", "berths"]


async def test_the_hub_is_asked_first_and_a_kind_of_members_alone_is_not_watched_there() -> None:
    hub, silent = FakeServer(), FakeServer(example_com=[SERVED])
    silent.is_reachable = False
    member = FakeServer(example_com=[{**SERVED, "name": "secrets"}])
    place = Place(hub, silent, member)
    place.fake.hold(resources.POLICIES, policy("a", BERTH))
    with place.looking():
        place.ask()
        await asyncio.sleep(1)
        assert place.names() == ["secrets"]
        assert place.hub.catalog.on_hub.all == ()
        hub.kinds["example.com"] = [SERVED]
        await asyncio.sleep(120)
    assert [each.name for each in place.hub.catalog.on_hub.all] == ["berths"]
    found = place.hub.catalog.find("example.com/v1", "Berth")
    assert found
    assert found.name == "berths"


async def test_no_more_kinds_are_kept_for_works_than_a_thousand() -> None:
    place = Place(FakeServer())
    for number in range(5_000):
        place.hub.catalog.find("example.com/v1", f"No{number}")
    assert len(place.controller._asked) == 1_000


ODD: list[Any] = [
    *(None, 5, "berths", [], {}),
    *({**SERVED, "name": name} for name in ("../secrets", "a/b", "", "A", "a" * 64, 5, None)),
    *({**SERVED, "kind": kind} for kind in ("", "x" * 254, 5, None)),
    {**SERVED, "namespaced": "yes"},
]


async def test_entries_that_no_honest_server_has_are_left_out() -> None:
    api = cast("ObjectApi", FakeServer(example_com=[*ODD, SERVED]))
    URGENCY.set(Urgency.SUMMING_UP)
    assert await list_kinds(api, "example.com/v1") == (ServedKind("berths", "Berth", True),)


@pytest.mark.parametrize(
    "groups", [None, 5, [5], [{"versions": 5}], [{"versions": [{"groupVersion": "../v1"}]}]]
)
async def test_group_versions_that_no_honest_server_has_are_left_out(groups: object) -> None:
    class Odd:
        async def read_path(self, _: str, *, subject: str) -> Mapping[str, Any]:
            return {"groups": groups, "subject": subject}

    assert await list_group_versions(cast("ObjectApi", Odd())) == ("v1",)
