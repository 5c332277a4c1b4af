"""Expired notes are found; all others are left alone."""

import asyncio
from typing import cast

import pytest

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import NODE, NODES
from reberth.memory.notes import ANNOTATION, Notes, compose_note, render_notes
from reberth.records import Node
from reberth.values import errors
from rescheduler.daemon.note_expiry import find_nodes_with_expired_notes, remove_expired_notes
from tests.support import builders
from tests.support.memory.objects import NOW, WEB
from tests.support.rescheduler.crash_simulator import FakeApi, FakeMirror, World, make_context


def noted(name: str, *lives: float) -> Node:
    notes = [
        compose_note(WEB, f"m{place}", policy="p", reason="r", now=NOW, life=life)
        for place, life in enumerate(lives)
    ]
    text = render_notes(Notes(ours=tuple(notes)))
    return annotated(name, text) if text else annotated(name, "{}")


def annotated(name: str, text: str) -> Node:
    made = builders.node(name, annotations={ANNOTATION: text})
    made["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    return builders.as_record(Node, made)


def test_only_nodes_with_an_expired_note_of_ours_are_named() -> None:
    cache = Cache(version=(1, 36))
    spoilt, bare = annotated("spoilt", "not JSON"), annotated("bare", "")
    nodes = [noted("both", 10, 100), noted("fresh", 100), noted("none"), noted("old", 10), spoilt, bare]
    cache.replace(NODE, nodes, "1")
    assert list(find_nodes_with_expired_notes(cache.of(NODE), lambda: NOW + 50)) == ["both", "old"]
    assert list(find_nodes_with_expired_notes(cache.of(NODE), lambda: NOW)) == []


@pytest.mark.looptime
async def test_expired_notes_are_removed_even_after_errors() -> None:
    world = World()
    api = FakeApi(world, troubles={1: errors.Forbidden("write", "not now")})
    context = make_context(world, api)
    text = render_notes(Notes(ours=(compose_note(WEB, "m1", policy="p", reason="r", now=NOW, life=5),)))
    world.put(NODES, builders.as_record(Node, builders.node("n1", annotations={ANNOTATION: text or ""})))
    cast("FakeMirror", context.mirror).sync()
    task = asyncio.create_task(remove_expired_notes(context))
    await asyncio.sleep(4)
    assert (world.noted(), api.writes) == ({"m1"}, 0)
    await asyncio.sleep(3.5)
    assert world.noted() == set()
    assert api.writes == 2
    task.cancel()
