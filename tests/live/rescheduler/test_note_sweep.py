"""Notes that are swept from a node of a real API server."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio
from msgspec.structs import replace

from localcluster.client import Client
from localcluster.cluster import Cluster
from reberth.client.api import Api
from reberth.client.lease import Leadership
from reberth.client.mirror import Mirror, mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES, HISTORIES, NODE, NODES
from reberth.cluster.pods.identity import Signature
from reberth.cluster.pods.requests import NEWEST
from reberth.memory.history import start_history
from reberth.memory.notes import ANNOTATION, Note, Notes, compose_note, read_notes, render_notes
from reberth.records import HistoryStatus, Outcome, WorkloadIdentity
from reberth.values.refusal import Refused
from rescheduler.daemon.note_sweeper import NoteSweeper
from rescheduler.execution.store import MoveStore
from rescheduler.settings import LONGEST_REQUEST, ReschedulerSettings
from tests.live.support.fault_client import direct
from tests.live.support.memory_objects import definitions, keep, sent, tidy_client
from tests.support import builders
from tests.support.memory.objects import HOUR, MINUTE, past

pytestmark = pytest.mark.live

NEEDED = [one for one in ALL_RESOURCES if one.name in ("nodes", "evictionhistories", "replicasets", "jobs")]
SET = WorkloadIdentity("apps/v1", "StatefulSet", "db", "uid-of-the-set")
DB = Signature("default", SET, SET)
NAME = "swept"


@pytest_asyncio.fixture
async def client(bare: Cluster) -> AsyncIterator[Client]:
    async with definitions(bare), tidy_client(bare) as client:
        yield client
        await client.delete(f"{NODES.path()}/{NAME}")


def note(move: str, *, at: float, life: float, strict: bool = False) -> Note:
    return compose_note(DB, move, policy="p", reason="r", now=at, life=life, strict=strict)


class Sweeping:
    """A sweeper with a mirror of the cluster; its clock goes on as it is told."""

    def __init__(self, api: Api, mirror: Mirror, client: Client) -> None:
        self.later = 0.0
        self._mirror = mirror
        self._client = client
        loop = asyncio.get_running_loop()
        context = SimpleNamespace(
            api=api,
            mirror=mirror,
            store=MoveStore(api, Leadership("me", deadline=float("inf"), clock=loop.time)),
            settings=ReschedulerSettings,
            clock=lambda: api.clock.now() + self.later,
        )
        self._sweeper = NoteSweeper(cast("Any", context), lambda: {"held"})

    async def left(self, *, later: float) -> set[str]:
        """Sweep so many seconds later, and give the moves whose notes the node still carries."""
        self.later = later
        version = await self._read_version()
        async with asyncio.timeout(10):
            while self._mirror.cache.seen(NODE) < version:
                await asyncio.sleep(0.01)
        await self._sweeper.sweep()
        node = await self._client.get(f"{NODES.path()}/{NAME}")
        notes = read_notes(node["metadata"].get("annotations", {}).get(ANNOTATION))
        assert not isinstance(notes, Refused)
        return {each.mark.id for each in notes.ours if each.mark}

    async def _read_version(self) -> int:
        node = await self._client.get(f"{NODES.path()}/{NAME}")
        return int(node["metadata"]["resourceVersion"])


async def test_strict_notes_go_at_once_orphans_a_minute_and_expired_ones_ten_minutes_later(
    client: Client, bare: Cluster
) -> None:
    async with direct(bare) as api:
        await api.version()
        now = api.clock.now()
        refused = past(Outcome.REFUSED, evicted=False, id="undone")
        status = HistoryStatus(past=(refused, past(Outcome.SAME, id="moved")))
        history = replace(start_history(DB), status=status)
        await keep(client, HISTORIES, sent(HISTORIES, history))
        notes = Notes(
            ours=(
                note("strict", at=now - HOUR, life=HOUR - 5, strict=True),
                note("soon", at=now - HOUR, life=HOUR + 30),
                note("undone", at=now - MINUTE, life=HOUR),
                note("moved", at=now - MINUTE, life=HOUR),
                note("held", at=now + 2 * MINUTE, life=HOUR),
                note("unknown", at=now + 2 * MINUTE, life=HOUR),
            )
        )
        node = builders.node(NAME, annotations={ANNOTATION: render_notes(notes)})
        await client.create(NODES.path(), node)
        async with mirroring(api, Cache(version=NEWEST), NEEDED) as mirror:
            await mirror.synced()
            sweeping = Sweeping(api, mirror, client)
            patient = {"soon", "undone", "moved", "held", "unknown"}
            assert await sweeping.left(later=0) == patient
            assert await sweeping.left(later=LONGEST_REQUEST - 1) == patient
            assert await sweeping.left(later=LONGEST_REQUEST + 1) == {"moved", "held"}
            assert await sweeping.left(later=HOUR + 3 * MINUTE) == {"moved", "held"}
            assert await sweeping.left(later=HOUR + 13 * MINUTE) == set()
