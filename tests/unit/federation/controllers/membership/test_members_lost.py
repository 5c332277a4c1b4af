"""Members that cannot be reached, against a fake hub that records its writes."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from federation.api import Cluster
from federation.controllers.membership.members import MembersController, MemberSettings
from federation.hub import metrics
from federation.hub.sessions import Sessions
from federation.membership.cluster_status import STATES
from federation.objects import resources
from reberth.runtime.metrics import REGISTRY
from reberth.values.duration import Duration
from tests.support.federation.clusters import cluster
from tests.support.federation.fake_hub import FakeHub
from tests.support.metrics import read_metric

pytestmark = pytest.mark.looptime
NAMES = ("m1", "m2", "m3")


class CutOff:
    """Sessions with members; those that are cut off do not answer."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.problems: dict[str, str] = {}
        self.identities = SimpleNamespace(of=lambda _: "uid", owners={})

    def get(self, name: str) -> Any:
        async def probe(**_: Any) -> None:
            if name in self.names:
                raise TimeoutError

        unlisted = SimpleNamespace(is_set=lambda: False)
        return SimpleNamespace(api=SimpleNamespace(probe=probe), listed=unlisted)

    def mark(self, name: str, *, answers: bool) -> None:
        """Nobody asks for it."""

    def listen(self, _: Any) -> None:
        """Nothing changes in the members."""


class LossHub(FakeHub):
    def __init__(self) -> None:
        super().__init__(resources.CLUSTERS)
        self.cut = CutOff()
        settings = MemberSettings(
            taint_lost_members_after=Duration(300), discover_every=Duration(9e9), threshold=Duration(0)
        )
        members = MembersController(self.hub, cast("Sessions", self.cut), settings)
        self.controllers = [members]
        for name in NAMES:
            self.put(resources.CLUSTERS, joined(name))

    def driven_out(self) -> set[str]:
        rows: list[Cluster] = list(self.cache.of(resources.CLUSTERS.kind).rows())
        return {
            each.metadata.name
            for each in rows
            if any(taint.effect == "NoExecute" for taint in each.spec.taints or ())
        }

    def told(self, reason: str) -> int:
        return [each for each, _ in self.events].count(reason)


def joined(name: str) -> Cluster:
    one = cluster(name, syncMode="Push")
    return replace(one, metadata=replace(one.metadata, uid=name))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> LossHub:
    """What is found in members, and their namespaces on the hub, are other matters."""
    module = "federation.controllers.membership.members"
    monkeypatch.setattr(f"{module}._discover", _same)
    monkeypatch.setattr(f"{module}.MemberCleanup", lambda *_, **__: SetUp)
    return LossHub()


async def _same(known: Any, *_: Any) -> Any:
    return known


class SetUp:
    """Sets up nothing."""

    @staticmethod
    async def set_up(_: Cluster) -> None:
        """Nothing."""

    @staticmethod
    def forget(_: str) -> None:
        """Nothing."""


async def test_two_of_three_lost_members_are_driven_out_only_after_the_bound(hub: LossHub) -> None:
    hub.cut.names = {"m1", "m2"}
    running = asyncio.create_task(hub.run(4000))
    await asyncio.sleep(1000)
    assert hub.driven_out() == set()
    assert hub.told("EvictionsBraked") == 2
    assert metrics.LOSS_BRAKE._value.get() == 1
    await running
    assert hub.driven_out() == {"m1", "m2"}
    assert hub.told("EvictionsUnbraked") == 3
    assert metrics.LOSS_BRAKE._value.get() == 0


async def test_one_of_three_is_driven_out_in_time(hub: LossHub) -> None:
    hub.cut.names = {"m1"}
    await hub.run(320)
    assert hub.driven_out() == {"m1"}
    states = {name: read_metric("reberth_federation_clusters", state=name) for name in STATES}
    assert {name: count for name, count in states.items() if count} == {"ready": 2, "unreachable": 1}
    assert read_metric("reberth_federation_member_word_age_seconds", member="m1") >= 320
    assert read_metric("reberth_federation_member_word_age_seconds", member="m2") <= 20
    hub.drop(resources.CLUSTERS, joined("m1"))
    await hub.run(1)
    assert REGISTRY.get_sample_value("reberth_federation_member_word_age_seconds", {"member": "m1"}) is None
    assert read_metric("reberth_federation_clusters", state="unreachable") == 0
    assert not hub.told("EvictionsBraked")
