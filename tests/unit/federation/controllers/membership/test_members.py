"""The members controller against a fake hub and members that answer as the tests say."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from federation.api import Cluster
from federation.controllers.membership.members import MembersController, MemberSettings
from federation.hub.sessions import Sessions
from federation.membership.lost_members import find_loss
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.objects.conditions import find_condition
from reberth.values.errors import ServerFault
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import bare_cluster

pytestmark = pytest.mark.looptime


class FakeMember:
    """A member with these group versions; some of them may be dead."""

    def __init__(self, **kinds: str) -> None:
        self.kinds = kinds
        self.dead: set[str] = set()
        self.cache = NotifyingCache(lambda _, __: None, version=(1, 36))
        self.listed = asyncio.Event()
        self.api = self

    async def probe(self, *, within: float) -> None:
        assert within
        await asyncio.sleep(0)

    async def read_path(self, path: str, *, subject: str) -> Mapping[str, Any]:
        if path == "/version":
            return {"gitVersion": "v1.36.3"}
        if path == "/apis":
            groups = [each for each in self.kinds if each != "v1"]
            return {"groups": [{"versions": [{"groupVersion": f"{each}/v1"}]} for each in groups]}
        group = path.removeprefix("/apis/").removesuffix("/v1").removeprefix("/api") or "v1"
        if group in self.dead:
            raise ServerFault(f"get {subject}", "the aggregated API server is away")
        kind = self.kinds[group]
        return {"resources": [{"name": f"{kind.lower()}s", "kind": kind, "namespaced": True}]}


class MembersHub(FakeHub):
    def __init__(self, **members: FakeMember) -> None:
        super().__init__(resources.CLUSTERS)
        self.applied: list[str] = []
        self.problems: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self.ids = dict.fromkeys(members, "uid-of-kube-system")
        sessions = SimpleNamespace(
            get=members.get,
            listen=lambda _: None,
            problems=self.problems,
            mark=lambda *_, **__: None,
            identities=SimpleNamespace(of=self.ids.get, owners=self.owners),
        )
        self.members = MembersController(self.hub, cast("Sessions", sessions), MemberSettings())
        self.controllers = [self.members]

    async def apply_object(self, _: Any, name: str, __: Any, **___: Any) -> None:
        self.applied.append(name)

    async def look(self, seconds: float = 90) -> None:
        """Run on: what a run has left in its queues' timers is queued again."""
        self.put(resources.CLUSTERS, self.find())
        await self.run(seconds)

    def find(self, name: str = "m1") -> Cluster:
        found: Cluster | None = self.cache.of(resources.CLUSTERS.kind).named("", name)
        assert found is not None
        return found

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        said = self.find().status.conditions or ()
        return {each.type: (each.status, each.message or "") for each in said}

    @property
    def apis(self) -> list[str]:
        return [each.group_version for each in self.find().status.api_enablements or ()]


def joined(name: str = "m1", **more: Any) -> Cluster:
    made = bare_cluster(name, spec={"syncMode": "Push"}, **more)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, namespace=""))


async def test_a_member_with_one_dead_group_serves_all_others_and_the_condition_names_it() -> None:
    member = FakeMember(v1="Pod", apps="Deployment", **{"metrics.k8s.io": "PodMetrics"})
    member.dead.add("metrics.k8s.io")
    hub = MembersHub(m1=member)
    hub.put(resources.CLUSTERS, joined())
    await hub.run(30)
    assert hub.apis == ["v1", "apps/v1"]
    status, message = hub.conditions["CompleteAPIEnablements"]
    assert status == "False"
    assert "metrics.k8s.io/v1" in message
    assert hub.conditions["Ready"][0] == "True"
    member.dead.clear()
    await hub.look()
    assert hub.apis == ["v1", "apps/v1", "metrics.k8s.io/v1"]
    assert hub.conditions["CompleteAPIEnablements"][0] == "True"
    member.dead |= {"metrics.k8s.io", "apps"}
    await hub.look()
    assert hub.apis == ["v1", "apps/v1", "metrics.k8s.io/v1"], "what is away for a while keeps its kinds"
    assert hub.conditions["CompleteAPIEnablements"][0] == "False"
    del member.kinds["metrics.k8s.io"]
    member.dead = {"v1"}
    await hub.look()
    assert hub.apis == ["v1", "apps/v1", "metrics.k8s.io/v1"], "without the core nothing is known"
    member.dead.clear()
    await hub.look()
    assert hub.apis == ["v1", "apps/v1"]


async def test_a_namespace_or_finalizer_that_was_deleted_comes_back_within_a_minute() -> None:
    hub = MembersHub(m1=FakeMember(v1="Pod"))
    hub.put(resources.CLUSTERS, joined())
    await hub.run(50)
    assert hub.applied == ["karmada-es-m1", "m1"]
    hub.applied.clear()
    await hub.look(21)
    assert hub.applied == ["karmada-es-m1", "m1"]


async def test_a_cluster_says_which_member_it_stands_for_and_when_that_changes() -> None:
    hub = MembersHub(m1=FakeMember(v1="Pod"))
    hub.put(resources.CLUSTERS, joined())
    await hub.run(5)
    assert hub.find().spec.id == "uid-of-kube-system"
    assert "ClusterIdentityChanged" not in {reason for reason, _ in hub.events}
    hub.ids["m1"] = "another"
    await hub.look(20)
    assert hub.find().spec.id == "another"
    assert ("ClusterIdentityChanged", "the member is another now; it was uid-of-kube-system") in hub.events
    hub.ids["m1"] = ""
    await hub.look(20)
    assert hub.find().spec.id == "another", "a member that does not tell it is who it was"


async def test_a_second_cluster_for_a_member_is_not_ready_and_says_whose_it_is() -> None:
    hub = MembersHub()
    hub.put(resources.CLUSTERS, joined())
    hub.problems["m1"] = "its API server is that of Cluster m0"
    hub.owners["m1"] = "m0"
    await hub.run(5)
    assert hub.conditions["Ready"] == ("False", "its API server is that of Cluster m0")
    assert [each.reason for each in hub.find().status.conditions or ()] == ["SameMemberAsAnotherCluster"]
    assert ("SameMemberAsAnotherCluster", "its API server is that of Cluster m0") in hub.events
    assert not hub.find().spec.id
    assert [each.effect for each in hub.find().spec.taints or ()] == ["NoSchedule"]


async def test_a_member_that_has_not_told_who_it_is_is_not_used_yet() -> None:
    hub = MembersHub(m1=FakeMember(v1="Pod"))
    del hub.ids["m1"]
    hub.put(resources.CLUSTERS, joined())
    await hub.run(5)
    assert hub.conditions["Ready"] == ("False", "it has not told who it is yet")
    ready = find_condition(hub.find().status.conditions, "Ready")
    assert ready is not None
    assert find_loss((ready,), 0.0) is None, "it answers: its workloads may be fine"
