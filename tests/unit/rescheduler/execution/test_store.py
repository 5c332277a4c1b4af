"""Writes begin with the newest version that is known, and read only where that is not enough."""

from typing import Any

import pytest
from msgspec.structs import replace

from reberth.cluster.kinds import HISTORIES, NODES, Resource
from reberth.memory.history import open_move, start_history
from reberth.memory.notes import Notes, compose_note
from reberth.records import EvictionHistory, HistoryStatus, Node, Record, WorkloadIdentity
from reberth.values import errors
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.store import HISTORY_GONE, NODE_GONE, carries_note
from tests.support.memory.objects import DEPLOYMENT, NOW, WEB, move
from tests.support.rescheduler.crash_simulator import FakeApi, FakeMirror, World, make_context

pytestmark = pytest.mark.looptime

NAME = start_history(WEB).metadata.name
FULL = Refused("Full", "no room")


class ToldApi(FakeApi):
    """Tells what it was asked for."""

    def __init__(self, world: World, **given: Any) -> None:
        super().__init__(world, **given)
        self.asked: list[str] = []

    async def get(self, resource: Resource[Any], name: str, **place: str) -> Any:
        self.asked.append("get")
        return await super().get(resource, name, **place)

    async def create(self, resource: Resource[Any], body: Any, **place: str) -> Any:
        self.asked.append("create")
        return await super().create(resource, body, **place)

    async def replace(self, resource: Resource[Any], name: str, body: Any, **place: str) -> Any:
        self.asked.append("replace")
        return await super().replace(resource, name, body, **place)

    async def delete(self, resource: Resource[Any], name: str, **place: str) -> None:
        self.asked.append("delete")
        await super().delete(resource, name, **place)

    async def merge(self, resource: Resource[Any], name: str, patch: Any, **place: str) -> Any:
        self.asked.append("merge")
        return await super().merge(resource, name, patch, **place)


def equip(world: World, troubles: dict[int, ReberthError] | None = None) -> tuple[ToldApi, ExecutionContext]:
    api = ToldApi(world, troubles=troubles)
    return api, make_context(world, api)


def keep_history(world: World, history: EvictionHistory | None = None) -> Record:
    return world.put(HISTORIES, history or start_history(WEB))


def add(name: str) -> Any:
    return lambda history: open_move(history, move(name))


def list_open(history: EvictionHistory | Refused | None) -> list[str]:
    assert isinstance(history, EvictionHistory)
    return [one.id for one in history.status.open or ()]


async def test_a_known_object_is_written_without_a_read_and_its_answer_is_known_then() -> None:
    keep_history(world := World())
    api, context = equip(world)
    for number in (1, 2, 3):
        await context.store.change_history("shop", NAME, add(f"m{number}"))
    assert api.asked == ["replace"] * 3
    assert list_open(context.store.find_history("shop", NAME)) == ["m1", "m2", "m3"]


async def test_after_a_conflict_the_object_is_read() -> None:
    keep_history(world := World())
    api, context = equip(world)
    _, other = equip(world)
    await other.store.change_history("shop", NAME, add("m1"))
    history = await context.store.change_history("shop", NAME, add("m2"))
    assert api.asked == ["replace", "get", "replace"]
    assert list_open(history) == ["m1", "m2"]


async def test_after_an_uncertain_answer_the_object_is_read() -> None:
    keep_history(world := World())
    api, context = equip(world, {1: errors.Unanswered("replace", "reset")})
    history = await context.store.change_history("shop", NAME, add("m1"))
    assert api.asked == ["replace", "get", "replace"]
    assert list_open(history) == ["m1"]


async def test_only_the_newest_version_refuses_or_has_nothing_to_write() -> None:
    keep_history(world := World())
    api, context = equip(world)
    _, other = equip(world)
    await context.store.change_history("shop", NAME, add("m1"))
    await other.store.change_history(
        "shop", NAME, lambda history: replace(history, status=HistoryStatus(open=()))
    )
    api.asked.clear()

    def add_if_empty(history: EvictionHistory) -> EvictionHistory | Refused:
        return FULL if history.status.open else open_move(history, move("m2"))

    assert list_open(await context.store.change_history("shop", NAME, add_if_empty)) == ["m2"]
    assert api.asked == ["get", "replace"]
    assert await context.store.change_history("shop", NAME, add_if_empty) is FULL
    assert list_open(await context.store.change_history("shop", NAME, add("m2"))) == ["m2"]
    assert api.asked == ["get", "replace", "get", "get"]


async def test_the_first_history_of_a_workload_is_created_without_a_read() -> None:
    api, context = equip(World())
    assert list_open(await context.store.start_history(WEB, add("m1"))) == ["m1"]
    assert api.asked == ["create", "replace"]


async def test_a_history_that_somebody_has_just_created_is_read() -> None:
    world = World()
    api, context = equip(world)
    keep_history(world)
    assert list_open(await context.store.start_history(WEB, add("m1"))) == ["m1"]
    assert api.asked == ["create", "get", "replace"]


async def test_the_history_of_a_deleted_workload_of_the_same_name_is_replaced() -> None:
    old = start_history(replace(WEB, root=replace(DEPLOYMENT, uid="uid-before")))
    keep_history(world := World(), old)
    api, context = equip(world)
    history = await context.store.start_history(WEB, add("m1"))
    assert api.asked == ["get", "delete", "create", "replace"]
    assert isinstance(history, EvictionHistory)
    assert history.spec.workload == WorkloadIdentity("apps/v1", "Deployment", "web", "uid-deployment")


async def test_what_was_deleted_is_gone_though_it_is_known() -> None:
    keep_history(world := World())
    _, context = equip(world)
    for key in [key for key in world.objects if key[0] in (HISTORIES.name, NODES.name)]:
        del world.objects[key]
    assert await context.store.change_history("shop", NAME, add("m1")) is HISTORY_GONE
    assert await context.store.change_notes("n1", lambda _: Notes(members=(("x", b"1"),))) is NODE_GONE


async def test_a_note_is_written_to_the_node_of_the_cache_and_again_if_that_is_not_the_newest() -> None:
    world = World()
    api, context = equip(world)
    note = compose_note(WEB, "m1", policy="p", reason="r", now=NOW)
    node = await context.store.change_notes("n1", lambda notes: replace(notes, ours=(*notes.ours, note)))
    assert api.asked == ["merge"]
    assert isinstance(node, Node)
    assert carries_note(node, move("m1"), "shop")
    assert not carries_note(node, move("m2"), "shop")
    assert not carries_note(node, move("m1"), "tenant")
    assert not carries_note(node, move("m1", controller_uid="uid-other"), "shop")
    assert not carries_note(None, move("m1"), "shop")
    world.put(NODES, world.objects[NODES.name, "", "n1"])  # its kubelet has written
    await context.store.change_notes("n1", lambda notes: replace(notes, ours=()))
    assert api.asked == ["merge", "merge", "get", "merge"]
    assert not world.noted()


async def test_without_its_cache_a_store_reads_before_its_first_write() -> None:
    keep_history(world := World())
    api, context = equip(world)
    mirror = context.mirror
    assert isinstance(mirror, FakeMirror)
    mirror.cache.replace(HISTORIES.kind, [], "0")
    assert list_open(await context.store.change_history("shop", NAME, add("m1"))) == ["m1"]
    assert api.asked == ["get", "replace"]
