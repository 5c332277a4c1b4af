"""A cluster in memory in which some evictions are refused, and the leaders of its daemon, in virtual time.

Every workload has a replica on a node that it may no longer be on, and one elsewhere: so all of them are to
be moved once. Plans, moves, histories and the ledger are the real ones; only the API server is simulated.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from reberth.cluster.cache import Cache, Contents
from reberth.cluster.kinds import ALL_RESOURCES, HISTORIES, NODES, PODS, Resource
from reberth.cluster.pods.identity import Signature
from reberth.memory.history import start_history
from reberth.records import (
    EvictionHistory,
    HistoryStatus,
    Node,
    Outcome,
    Pod,
    Record,
    TemplatedOwner,
    WorkloadIdentity,
)
from reberth.runtime.worker_thread import run_inline
from reberth.values.errors import ApiError
from reberth.values.timestamp import write_time
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.daemon.loop import CycleInputs, CycleLoop
from rescheduler.daemon.triggers import Trigger
from rescheduler.execution.context import Changes, ExecutionContext
from rescheduler.execution.dispatcher import MoveDispatcher, MoveEnd
from rescheduler.model.plan import PlannedMove
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.model.refusal_memory import RefusalMemory
from rescheduler.moves.try_budget import PERIOD
from rescheduler.observe.forecaster import Forecaster
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import CycleSettings
from tests.support import builders
from tests.support.memory.objects import DAY, past
from tests.support.rescheduler.crash_simulator import FakeApi, World, make_context
from tests.support.rescheduler.plans import LONG_AGO, MODEL, VERSION

REPLICA_SETS = next(one for one in ALL_RESOURCES if one.name == "replicasets")
GOOD = {"pool": "good"}
READY = {"type": "Ready", "status": "True"}

Refuse = Callable[[str, float], ApiError | None]


class Try(NamedTuple):
    """An eviction that the API server was asked for: seconds from the start, workload, and answer."""

    at: float
    app: str
    granted: bool


class Crowd(World):
    """Workloads app-00, app-01, ...; `refuse` gives the error for an eviction of a workload, if any."""

    def __init__(self, count: int, refuse: Refuse, *, proven: bool = False) -> None:
        super().__init__()
        self.objects.clear()
        self.refuse = refuse
        self.tries: list[Try] = []
        self._number = 0
        for number in range(6):
            self._put_new(NODES, Node, builders.node(f"bad-{number}", cpu="64", memory="256Gi"))
            self._put_new(NODES, Node, builders.node(f"good-{number}", cpu="64", memory="256Gi", labels=GOOD))
        for number in range(count):
            app = f"app-{number:02}"
            self._put_new(REPLICA_SETS, TemplatedOwner, self._make_owner(app))
            self._put_pod(app, f"bad-{number % 6}", created=LONG_AGO)
            self._put_pod(app, f"good-{number % 6}", created=LONG_AGO)
            if proven:
                self._put_history(app)

    @property
    def apps(self) -> list[str]:
        return sorted({name for kind, _, name in self.objects if kind == REPLICA_SETS.name})

    @property
    def moved(self) -> set[str]:
        return {one.app for one in self.tries if one.granted}

    def ask(self, pod: Pod, *, dry_run: bool) -> ApiError | None:
        """Answer an eviction. A refusal of the dry run is a try too: the true one is never asked for."""
        app = pod.metadata.name.rpartition("-")[0]
        at = asyncio.get_running_loop().time()
        error = self.refuse(app, at)
        if error or not dry_run:
            self.tries.append(Try(at, app, error is None))
        return error

    def evict(self, move: str, pod: Pod) -> None:
        """The pod is gone at once, and its replacement stands Ready on the destination."""
        self.evictions.append((move, pod.metadata.uid))
        del self.objects["pods", pod.metadata.namespace, pod.metadata.name]
        app = pod.metadata.name.rpartition("-")[0]
        opened = (one for history in self.histories() for one in history.status.open or ())
        to = next(one.destinations[0] for one in opened if one.id == move and one.destinations)
        self._put_pod(app, to, created=write_time(self.now() + 1), ready=write_time(self.now()))

    def histories(self) -> list[EvictionHistory]:
        found = (one for (kind, _, _), one in self.objects.items() if kind == HISTORIES.name)
        return cast("list[EvictionHistory]", list(found))

    def _put_history(self, app: str) -> None:
        """One pod of the workload was moved long ago."""
        root = WorkloadIdentity("apps/v1", "ReplicaSet", app, f"uid-{app}")
        history = start_history(Signature("default", root, root))
        moved = past(Outcome.BETTER, ago=9 * DAY, node="elsewhere")
        self.put(HISTORIES, replace(history, status=HistoryStatus(past=(moved,))))

    def _put_pod(self, app: str, node: str, *, created: str, ready: str = LONG_AGO) -> None:
        self._number += 1
        made = builders.pod(
            f"{app}-{self._number}",
            node=node,
            cpu="1",
            memory="1Gi",
            labels={"app": app},
            created=created,
            owned_by=builders.owner("ReplicaSet", app, uid=f"uid-{app}"),
            status={"conditions": [READY | {"lastTransitionTime": ready}]},
            uid=f"uid-pod-{self._number}",
            nodeSelector=GOOD,
        )
        self._put_new(PODS, Pod, made)

    def _make_owner(self, app: str) -> builders.Object:
        made = builders.replica_set(app, replicas=2)
        made["metadata"]["uid"] = f"uid-{app}"
        del made["spec"]["template"]  # as for objects that were written by hand, the pods show it
        return made

    def _put_new(self, resource: Resource[Any], kind: type[Any], made: builders.Object) -> None:
        self.put(resource, builders.as_record(kind, made))


class RefusingApi(FakeApi):
    """An API server that some evictions are refused by; `world` decides."""

    world: Crowd

    async def evict(self, name: str, *, namespace: str, dry_run: bool, **given: Any) -> None:
        pod = await self.get(PODS, name, namespace=namespace)
        self._check()
        await asyncio.sleep(0.01)
        error = self.world.ask(pod, dry_run=dry_run)
        if error:
            raise error
        await super().evict(name, namespace=namespace, dry_run=dry_run, **given)


class CrowdMirror:
    """A mirror that always knows everything."""

    def __init__(self, world: Crowd) -> None:
        self._world = world
        self._version = -1
        self._cache = Cache(version=VERSION)

    def is_current(self, *_: Any, **__: Any) -> bool:
        return False  # so pods are read

    @property
    def cache(self) -> Cache:
        if self._version != self._world.version + len(self._world.evictions):
            self._version = self._world.version + len(self._world.evictions)
            for resource in ALL_RESOURCES:
                found: list[Record] = [
                    one for (kind, _, _), one in self._world.objects.items() if kind == resource.name
                ]
                self._cache.replace(resource.kind, found, str(self._world.version))
        return self._cache

    @contextmanager
    def changes_of(self, _uid: str) -> Iterator[Changes]:
        yield self

    async def wait(self) -> None:
        await asyncio.sleep(0.1)


def make_crowd_context(world: Crowd, policy: ReschedulerPolicy) -> ExecutionContext:
    made = make_context(world, RefusingApi(world))
    return dataclasses.replace(
        made, mirror=CrowdMirror(world), policy=lambda: policy, forecast=Forecaster(MODEL)
    )


class SimulatedLeader:
    """One term of a daemon: cycles and moves as the daemon runs them, at its default times."""

    def __init__(self, world: Crowd, policy: ReschedulerPolicy) -> None:
        self.world = world
        self.context = make_crowd_context(world, policy)
        self.dispatcher: MoveDispatcher | None = None
        self.loop = CycleLoop(self._make_inputs(policy), PlanMemory())
        self._trigger = Trigger(CycleSettings)

    async def lead(self, seconds: float) -> None:
        """Lead for a time, and be killed: nothing is tidied up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                self.dispatcher = dispatcher = MoveDispatcher(self.context, group, on_end=self._end_move)
                await dispatcher.resume()
                await self.loop.run(self._trigger, dispatcher)

    def _end_move(self, planned: PlannedMove | None, end: MoveEnd) -> None:
        if planned and end is MoveEnd.EVICTED:
            self.loop.settle(planned)
        elif planned:
            self.loop.forget(planned)
        if self.dispatcher is None or self.dispatcher.waiting or end is MoveEnd.WAITING:
            return
        self._trigger.fire("moves")
        if end is MoveEnd.REFUSED:
            asyncio.get_running_loop().call_later(PERIOD, self._trigger.fire, "moves")

    def _make_inputs(self, policy: ReschedulerPolicy) -> CycleInputs:
        context = self.context
        return CycleInputs(
            contents=self._take_contents,
            policy=lambda: policy,
            model=lambda: MODEL,
            health=ClusterHealth,
            refusals=self._read_refusals,
            clock=context.clock,
            warnings=list,
            offload=run_inline,
            stop_reason=lambda: None,
        )

    def _take_contents(self) -> Contents:
        return self.context.mirror.cache.contents()

    def _read_refusals(self) -> RefusalMemory:
        return RefusalMemory() if self.dispatcher is None else self.dispatcher.read_refusals()


def list_starts(tries: list[Try], app: str) -> Iterator[float]:
    """Give the minutes at which a workload was tried, from its first try on."""
    own = [one.at for one in tries if one.app == app]
    yield from ((at - own[0]) / 60 for at in own)


def count_fullest(tries: list[Try], seconds: float) -> int:
    """Count the refused tries of the fullest window."""
    refused = sorted(one.at for one in tries if not one.granted)
    return max((sum(start <= at < start + seconds for at in refused) for start in refused), default=0)
