"""A cluster in memory to crash moves in: objects with versions, and a replacement for each evicted pod.

It replaces the API client, not the API server: it offers only the calls of a move, with the same errors. At
its nth write it can kill the caller, before or after the write takes effect, or raise one of `troubles`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from msgspec.structs import replace

from reberth.client.api import Api
from reberth.client.events import EventRecorder
from reberth.client.lease import Leadership
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import (
    ALL_RESOURCES,
    BUDGETS,
    HISTORIES,
    LEDGERS,
    NODES,
    PODS,
    REPLICA_SET,
    STATEFUL_SET,
    Resource,
)
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.tables import meta_of
from reberth.memory.notes import ANNOTATION, read_notes
from reberth.protocol.response import Page
from reberth.records import (
    Debit,
    EvictionHistory,
    MoveLedger,
    Node,
    Pod,
    PodDisruptionBudget,
    Record,
    TemplatedOwner,
    TemplatedSpec,
)
from reberth.values import errors
from reberth.values.errors import ApiError, ReberthError
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.execution.context import Changes, ExecutionContext
from rescheduler.execution.executor import Executor
from rescheduler.execution.extenders import ExtenderClient
from rescheduler.execution.recovery import ResumedMove, UnsettledMoves, resume_moves
from rescheduler.execution.store import MoveStore
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from tests.support import builders
from tests.support.memory.objects import NOW, OWNERS, web_pod

REPLICA_SETS, STATEFUL_SETS = (
    next(one for one in ALL_RESOURCES if one.kind is kind) for kind in (REPLICA_SET, STATEFUL_SET)
)
_MIRRORED = (PODS, NODES, REPLICA_SETS, STATEFUL_SETS, HISTORIES, LEDGERS, BUDGETS)
_BUDGET: Mapping[str, Any] = {
    "metadata": {"name": "all", "namespace": "shop", "generation": 1},
    "spec": {"selector": {}},
    "status": {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
    },
}


class Killed(BaseException):
    """The process is no more: nothing in it may catch this."""


class World:
    """The objects, and what happens to pods. The names of a StatefulSet's pods return.

    Where the pods have a PodDisruptionBudget, it allows every eviction.
    """

    def __init__(self, *, names_return: bool = False, budgeted: bool = False) -> None:
        self.objects: dict[tuple[str, str, str], Record] = {}
        self.version = 0
        self.evictions: list[tuple[str, str]] = []  # the move and the pod's uid
        self.late = 0.0
        self._owners = STATEFUL_SETS if names_return else REPLICA_SETS
        self._owner = builders.owner(self._owners.kind.name, "web-5d4f", uid="uid-rs")
        self.put(PODS, web_pod("web-1", owned_by=self._owner, node="n1", age=60.0))
        for name in ("n1", "n2", "n3"):
            self.put(NODES, builders.as_record(Node, builders.node(name)))
        self.replica_set = TemplatedOwner(replace(OWNERS["uid-rs"], uid="uid-rs"), TemplatedSpec(replicas=1))
        self.put(self._owners, self.replica_set)
        if budgeted:
            self.put(BUDGETS, builders.as_record(PodDisruptionBudget, dict(_BUDGET)))

    def now(self) -> float:
        return NOW + self.late + asyncio.get_running_loop().time()

    def put(self, resource: Resource[Any], body: Record) -> Record:
        self.version += 1
        meta = meta_of(body)
        meta = replace(
            meta, resource_version=str(self.version), uid=meta.uid or f"uid-{resource.name}-{self.version}"
        )
        kept: Record = replace(cast("Any", body), metadata=meta)
        self.objects[resource.name, meta.namespace, meta.name] = kept
        return kept

    def evict(self, move: str, pod: Pod) -> None:
        """The pod is gone at once, and its replacement stands on another node."""
        self.evictions.append((move, pod.metadata.uid))
        del self.objects["pods", "shop", pod.metadata.name]
        number = len(self.evictions) + 1
        ready = {
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": write_time(self.now())}]
        }
        name = pod.metadata.name if self._owners is STATEFUL_SETS else f"web-{number}"
        uid, age = f"uid-web-{number}", NOW - self.now()
        self.put(PODS, web_pod(name, uid=uid, owned_by=self._owner, node="n2", age=age, status=ready))

    def history(self) -> EvictionHistory | None:
        found = [one for (kind, _, _), one in self.objects.items() if kind == HISTORIES.name]
        return cast("EvictionHistory", found[0]) if found else None

    def debits(self) -> dict[str, Debit]:
        ledger = cast("MoveLedger | None", self.objects.get((LEDGERS.name, "", "default")))
        return {debit.move: debit for debit in ledger.status.debits or ()} if ledger else {}

    def noted(self) -> set[str]:
        """The moves whose notes n1 carries."""
        node = cast("Node", self.objects[NODES.name, "", "n1"])
        notes = read_notes((node.metadata.annotations or {}).get(ANNOTATION))
        assert not isinstance(notes, Refused)
        return {note.mark.id for note in notes.ours if note.mark}


class FakeApi:
    """One process's client. It dies at its nth write; `refusals` are errors of the nth eviction request."""

    def __init__(
        self,
        world: World,
        *,
        dies_at: int = 0,
        dies_evicting: bool = False,
        after: bool = False,
        refusals: Mapping[int, ApiError] | None = None,
        troubles: Mapping[int, ReberthError] | None = None,
    ) -> None:
        self.world = world
        self.writes = 0
        self.died = False
        self._dies_at = dies_at
        self._dies_evicting = dies_evicting
        self._after = after
        self._refusals = refusals or {}
        self._troubles = troubles or {}
        self._asked = 0
        self._check: Callable[[], None] = lambda: None

    def refuse(self, refusals: Mapping[int, ApiError]) -> None:
        """Refuse the nth eviction requests with these errors."""
        self._refusals = refusals

    def guarded(self, check: Callable[[], None]) -> "FakeApi":
        self._check = check
        return self

    async def get(self, resource: Resource[Any], name: str, *, namespace: str = "") -> Any:
        return self._find(resource, name, namespace=namespace)

    async def list_pages(
        self, resource: Resource[Any], *, namespace: str = "", **_selection: str
    ) -> AsyncIterator[Page[Any]]:
        kept = self.world.objects.items()
        found = [
            one for (kind, within, _), one in kept if kind == resource.name and namespace in ("", within)
        ]
        yield Page(found, str(self.world.version), "")

    async def create(self, resource: Resource[Any], body: Any, *, namespace: str = "") -> Any:
        self._write()
        key = (resource.name, namespace, body.metadata.name)
        if key in self.world.objects:
            raise errors.AlreadyExists("create", body.metadata.name)
        return self._done(self.world.put(resource, body))

    async def replace(
        self, resource: Resource[Any], name: str, body: Any, *, namespace: str = "", subresource: str = ""
    ) -> Any:
        self._write()
        self._compare(self._find(resource, name, namespace=namespace), body.metadata.resource_version)
        assert subresource == "status"
        return self._done(self.world.put(resource, body))

    async def merge(self, resource: Resource[Any], name: str, patch: Mapping[str, Any], **place: str) -> Any:
        self._write()
        found = self._find(resource, name, **place)
        self._compare(found, patch["metadata"]["resourceVersion"])
        given = {**(found.metadata.annotations or {}), **patch["metadata"]["annotations"]}
        kept = {key: value for key, value in given.items() if value is not None}
        return self._done(
            self.world.put(resource, replace(found, metadata=replace(found.metadata, annotations=kept)))
        )

    async def delete(self, resource: Resource[Any], name: str, *, uid: str, namespace: str = "") -> None:
        self._write()
        assert self._find(resource, name, namespace=namespace).metadata.uid == uid
        self._done(self.world.objects.pop((resource.name, namespace, name)))

    async def evict(
        self,
        name: str,
        *,
        namespace: str,
        uid: str,
        version: str | None,
        dry_run: bool,
        annotations: Mapping[str, str],
    ) -> None:
        self._write()
        if self._dies_evicting:
            self._die()
        self._asked += 1
        refusal = self._refusals.get(self._asked)
        pod = self._find(PODS, name, namespace=namespace)
        if isinstance(refusal, Late):
            asyncio.get_running_loop().call_later(3, self.world.evict, annotations["reberth.dev/move"], pod)
        if isinstance(refusal, Overtaken):
            self.world.evict("somebody else", pod)
        if refusal and not isinstance(refusal, Lost | Evacuated):
            raise refusal
        if pod.metadata.uid != uid:
            raise errors.Conflict("evict", "another uid")
        if version is not None:
            self._compare(pod, version)
        if not dry_run:
            self.world.evict(annotations["reberth.dev/move"], pod)
        self._done(pod)
        if refusal:
            raise refusal

    def _find(self, resource: Resource[Any], name: str, *, namespace: str = "") -> Any:
        resource.path(name, namespace=namespace)  # as the real client, which refuses impossible names
        try:
            return self.world.objects[resource.name, namespace, name]
        except KeyError:
            raise errors.NotFound("get", name) from None

    def _compare(self, found: Any, version: str) -> None:
        if found.metadata.resource_version != version:
            raise errors.Conflict("write", "a newer version is there")

    def _write(self) -> None:
        if self.died:
            raise Killed
        self._check()
        self.writes += 1
        if self.writes in self._troubles:
            raise self._troubles[self.writes]
        if self.writes == self._dies_at and not self._after:
            self._die()

    def _done(self, written: Any) -> Any:
        if self.writes == self._dies_at and self._after:
            self._die()
        return written

    def _die(self) -> None:
        self.died = True
        raise Killed


class Lost(errors.Unanswered):
    """It was carried out, and nobody heard of it."""


class Evacuated(errors.TooManyRequests):
    """Somebody else carries it out, and says so by denying it; a dry run he denies in the same words."""


class Late(errors.Unanswered):
    """Nobody heard of it, and it is carried out only seconds later."""


class Overtaken(errors.NotFound):
    """Somebody else has just evicted the pod."""


class FakeMirror:
    """The mirror: true whenever somebody waits for it."""

    def __init__(self, world: World) -> None:
        self.cache = Cache(version=NEWEST)
        self.age = 60.0
        self._world = world
        self.sync()

    def is_current(self, resource: Resource[Any], _namespace: str, _name: str, *, within: float) -> bool:
        return resource in _MIRRORED and self.age < within

    def sync(self) -> None:
        for resource in _MIRRORED:
            found = [one for (kind, _, _), one in self._world.objects.items() if kind == resource.name]
            self.cache.replace(resource.kind, found, str(self._world.version))

    @contextmanager
    def changes_of(self, _uid: str) -> Iterator[Changes]:
        yield self

    async def wait(self) -> None:
        await asyncio.sleep(0.1)
        self.sync()


async def resume(context: ExecutionContext, executor: Executor | None = None) -> list[ResumedMove]:
    """Resume all moves once, with nothing known of earlier tries."""
    unsettled = UnsettledMoves(context.clock)
    return [one async for one in resume_moves(context, executor or Executor(context), unsettled)]


def make_context(world: World, api: FakeApi) -> ExecutionContext:
    loop = asyncio.get_running_loop()
    client, mirror = cast("Api", api), FakeMirror(world)
    return ExecutionContext(
        api=client,
        store=MoveStore(client, Leadership("me", deadline=float("inf"), clock=loop.time), mirror.cache),
        mirror=mirror,
        extenders=cast("ExtenderClient", None),
        recorder=EventRecorder(client, reporter="reberth.dev/test", instance="me", clock=world.now),
        settings=lambda: ReschedulerSettings(extender="none"),
        policy=ReschedulerPolicy,
        clock=world.now,
        tell=lambda _line: None,
    )
