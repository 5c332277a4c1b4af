"""What the executor works with, and what it is told of one move."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from reberth.client.api import Api
from reberth.client.events import Recorder
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import NODE
from reberth.cluster.resources import BUDGETS, PODS
from reberth.cluster.snapshot import Snapshot
from reberth.memory.notes import Note
from reberth.records import EvictionHistory, Node, OpenMove, Pod, PodDisruptionBudget, WorkloadIdentity
from reberth.values.errors import NotFound
from reberth.values.refusal import Refused
from rescheduler.execution.extenders import Asker
from rescheduler.execution.store import Store
from rescheduler.execution.worker_thread import Think, think_here
from rescheduler.model.plan import LandingScores
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from rescheduler.telemetry.events import MoveReporter


class Sight(Protocol):
    """A cluster's mirror, of pods, nodes and the owners of pods at least."""

    @property
    def cache(self) -> Cache: ...

    def changed(self, *, since: int) -> Awaitable[int]:
        """Wait for a change after that one, and give the newest."""


class Forecast(Protocol):
    """Where a pod would land, and what that is worth."""

    @property
    def schedulers(self) -> frozenset[str]:
        """The names of the schedulers that it knows."""

    def find_destinations(self, snapshot: Snapshot, pod: Pod) -> tuple[str, ...] | Refused:
        """Give the nodes that are worth a move, best first."""

    def refuse_destinations(
        self, snapshot: Snapshot, pod: Pod, destinations: tuple[str, ...]
    ) -> Refused | None:
        """Tell why the pod fits on none of them."""

    def score_landing(self, snapshot: Snapshot, move: OpenMove, landed_on: str) -> LandingScores | None:
        """Compare the node that the pod left with the one where its replacement landed."""


@dataclass(frozen=True)
class Equipment:
    """What all moves have in common. Without a forecast nobody can tell what a landing is worth."""

    api: Api
    store: Store
    sight: Sight
    asker: Asker
    recorder: Recorder
    settings: Callable[[], ReschedulerSettings]
    policy: Callable[[], ReschedulerPolicy]
    clock: Callable[[], float]
    tell: Callable[[str], None]
    forecast: Forecast | None = None
    think: Think = think_here
    halt: Callable[[str], Refused | None] = lambda _policy: None
    """What forbids any eviction of a policy for now."""

    async def look_up(self, namespace: str, name: str) -> Pod | None:
        """Give the pod of this name as it is now."""
        try:
            return await self.api.get(PODS, name, namespace=namespace)
        except NotFound:
            return None

    async def list_budgets(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        """Give the PodDisruptionBudgets of a namespace as they are now."""
        pages = self.api.list_pages(BUDGETS, namespace=namespace)
        return tuple([budget async for page in pages for budget in page.objects])

    def find_node(self, name: str) -> Node | None:
        """Give a node as it is mirrored."""
        row = self.sight.cache.of(NODE).named("", name)
        return row.record if row else None


@dataclass(frozen=True)
class Case:
    """One move in hand: whose it is and where it is written down.

    A move that another process has begun has no `note` to write: without one there it is undone.
    """

    namespace: str
    history: str
    workload: WorkloadIdentity
    reporter: MoveReporter
    note: Note | None = None
    others: tuple[OpenMove, ...] = ()
    on_landing: Callable[[], None] = lambda: None


def make_case(equipment: Equipment, history: EvictionHistory) -> Case:
    """Make the case of any open move of a history."""
    namespace, workload = history.metadata.namespace, history.spec.workload
    reporter = MoveReporter(namespace, workload, tell=equipment.tell, recorder=equipment.recorder)
    return Case(namespace, history.metadata.name, workload, reporter, others=tuple(history.status.open or ()))
