"""What a member has on the hub, against a fake hub that records its writes."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding
from federation.controllers.membership.member_cleanup import FINALIZER, MemberCleanup
from federation.failover.eviction_causes import EvictionCauses
from federation.objects import resources
from reberth.records import ObjectMeta
from reberth.values import errors
from reberth.values.timestamp import write_time
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import NOW, bare_cluster, claimed_binding, given, work

pytestmark = pytest.mark.looptime
LET_GO = 60.0
WORKS = "karmada-es-m1"


class Housed(FakeHub):
    """A hub with a namespace for each member; objects that are applied and removed are recorded."""

    def __init__(self) -> None:
        super().__init__(resources.CLUSTERS, resources.BINDINGS, resources.WORKS)
        self.cleanup = MemberCleanup(self.hub, EvictionCauses(self.hub.clock), let_go_after=LET_GO)
        self.applied: list[tuple[str, Any]] = []
        self.removed: list[str] = []
        self.is_namespace_there = True
        for each in (resources.WORKS, resources.BINDINGS, resources.CLUSTER_BINDINGS):
            self.hold(each)

    async def apply_object(self, _: Any, name: str, body: Any, **__: Any) -> None:
        self.applied.append((name, body["metadata"].get("finalizers")))

    async def get(self, _: Any, name: str) -> Any:
        if not self.is_namespace_there:
            raise errors.NotFound(f"get namespace {name}", "not found")
        return resources.NAMESPACES.kind.record(metadata=ObjectMeta(name, uid="n"))

    async def remove_object(self, _: Any, name: str, *, uid: str, namespace: str) -> None:
        assert uid
        self.removed.append(f"{namespace}/{name}")

    async def clean_up(self, *, after: float = 0) -> float | None:
        await asyncio.sleep(after)
        return await self.cleanup.clean_up(cluster(deleted=True))


def cluster(*, deleted: bool = False) -> Cluster:
    made = bare_cluster()
    stamp = write_time(NOW) if deleted else None
    return replace(made, metadata=replace(made.metadata, namespace="", deletion_timestamp=stamp))


def bound(name: str, *tasks: str, at: str = "m1") -> ResourceBinding:
    evictions = [{"fromCluster": each} for each in tasks]
    return claimed_binding(
        name=name, clusters=given(**{at: 1}), gracefulEvictionTasks=evictions, placement={}
    )


def held(name: str, *, deleted: bool = False) -> Any:
    made = work({"metadata": {"name": name, "namespace": WORKS}, "spec": {}})
    stamp = write_time(NOW) if deleted else None
    return replace(made, metadata=replace(made.metadata, uid=name, deletion_timestamp=stamp))


async def test_a_member_has_a_namespace_and_a_finalizer_and_they_are_made_again_after_a_minute() -> None:
    hub = Housed()
    await hub.cleanup.set_up(cluster())
    assert hub.applied == [(WORKS, None), ("m1", [FINALIZER])]
    assert hub.events == [("CreateExecutionSpaceSucceed", f"Created namespace {WORKS}.")]
    await asyncio.sleep(59)
    await hub.cleanup.set_up(cluster())
    assert len(hub.applied) == 2
    await asyncio.sleep(2)
    await hub.cleanup.set_up(cluster())
    assert len(hub.applied) == 4
    hub.cleanup.forget("m1")
    await hub.cleanup.set_up(cluster())
    assert len(hub.applied) == 6


async def test_a_deleted_member_that_has_nothing_loses_its_namespace_and_then_its_finalizer() -> None:
    hub = Housed()
    hub.put(resources.BINDINGS, bound("elsewhere", at="m2"))
    assert await hub.clean_up() is None
    assert hub.removed == [f"/{WORKS}"]
    assert hub.applied == [("m1", [])]
    assert hub.events == [("RemoveExecutionSpaceSucceed", f"Removed namespace {WORKS}.")]
    hub.is_namespace_there = False
    assert await hub.clean_up() is None
    assert len(hub.removed) == 1


async def test_works_are_deleted_once_and_the_finalizer_stays_until_they_are_gone() -> None:
    hub = Housed()
    hub.put(resources.WORKS, held("a"))
    hub.put(resources.WORKS, held("b", deleted=True))
    assert await hub.clean_up() == 1.0
    assert hub.removed == [f"{WORKS}/a"]
    assert not hub.applied
    for name in "ab":
        hub.drop(resources.WORKS, held(name))
    assert await hub.clean_up() is None
    assert hub.applied == [("m1", [])]


async def test_workloads_without_a_replacement_are_waited_for_and_named_but_not_for_ever() -> None:
    hub = Housed()
    for number in range(7):
        hub.put(resources.BINDINGS, bound(f"b{number}", "m1"))
    hub.put(resources.WORKS, held("a"))
    assert await hub.clean_up(after=LET_GO - 1) == 1.0
    assert not hub.removed
    ((reason, note),) = hub.events
    assert reason == "WaitingForSubstitutes"
    assert "default/b0" in note
    assert note.endswith("and 2 more")
    assert await hub.clean_up(after=2) == 1.0
    assert hub.removed == [f"{WORKS}/a"]


async def test_nobody_is_let_go_whose_turn_to_leave_has_not_come() -> None:
    hub = Housed()
    names = ("a", "b", "c")
    for name in names:
        hub.put(resources.BINDINGS, bound(name))
    hub.put(resources.WORKS, held("a"))
    for name in names:
        await hub.clean_up(after=LET_GO - 1)
        hub.put(resources.BINDINGS, bound(name, "m1"))
    await hub.clean_up()
    await hub.clean_up(after=LET_GO - 1)
    assert not hub.removed, "the last one had its turn less than that ago"
    await hub.clean_up(after=2)
    assert hub.removed


async def test_nobody_is_let_go_while_evictions_from_another_cluster_come_first() -> None:
    hub = Housed()
    hub.put(resources.BINDINGS, bound("a"))
    hub.put(resources.WORKS, held("a"))
    for _ in range(5):
        assert await hub.clean_up(after=LET_GO) == 1.0
    assert not hub.removed, "its turn has not come yet"
    hub.put(resources.BINDINGS, bound("a", "m1"))
    await hub.clean_up(after=LET_GO - 1)
    assert not hub.removed, "its turn came less than that ago"
    await hub.clean_up(after=2)
    assert hub.removed


@pytest.mark.parametrize("who", ["another scheduler's", "none that evicts"])
async def test_workloads_that_nobody_evicts_do_not_keep_a_member_for_ever(who: str) -> None:
    hub = Housed()
    there = bound("a")
    if who == "none that evicts":
        hub.cleanup = MemberCleanup(hub.hub, None, let_go_after=LET_GO)
    else:
        there = replace(there, spec=replace(there.spec, scheduler_name="another"))
    hub.put(resources.BINDINGS, there)
    hub.put(resources.WORKS, held("a"))
    await hub.clean_up(after=LET_GO - 1)
    assert not hub.removed
    await hub.clean_up(after=2)
    assert hub.removed
