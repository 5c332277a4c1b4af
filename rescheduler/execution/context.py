"""What the execution of moves works with: the cluster's resources, and a handle for each move."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, Protocol

from reberth.client.api import Api
from reberth.client.events import EventRecorder
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import (
    BUDGET,
    NODE,
    POD,
    PODS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
    Resource,
)
from reberth.cluster.pods.identity import Signature
from reberth.cluster.snapshot import Snapshot
from reberth.memory.history import LONGEST_READY_TIME
from reberth.memory.notes import Note
from reberth.memory.rates import DisruptionLimits, resolve_limits
from reberth.records import (
    EvictionHistory,
    Node,
    OpenMove,
    Owner,
    Pod,
    RememberedRefusal,
    ReplicationController,
    WorkloadIdentity,
)
from reberth.runtime.worker_thread import Offload, run_inline
from reberth.values.errors import NotFound
from reberth.values.refusal import Refused
from rescheduler.execution.dry_runs.guard import DryRunGuard
from rescheduler.execution.extenders import ExtenderClient
from rescheduler.execution.ledger_writer import LedgerWriter
from rescheduler.execution.store import MoveStore
from rescheduler.model.plan import LandingScores
from rescheduler.model.refusal_memory import WorkloadName
from rescheduler.observe.rule_context import compile_budget
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from rescheduler.telemetry.events import MoveReporter

_KINDS_WITH_REPLICAS: tuple[Kind[Any, Any], ...] = (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)


class Changes(Protocol):
    """Changes of one object."""

    def wait(self) -> Awaitable[None]:
        """Wait for a change since the end of the last wait."""


FRESH = 1.0
"""Seconds; a cache that has every change but those of this time is believed."""


class SyncedCache(Protocol):
    """A cache of the cluster that is kept in sync: of pods, nodes and the owners of pods at least."""

    @property
    def cache(self) -> Cache: ...

    def is_current(self, resource: Resource[Any], namespace: str, name: str, *, within: float) -> bool:
        """Tell whether the cache has this object, or lacks it, as the server did within so many seconds."""

    def changes_of(self, uid: str) -> AbstractContextManager[Changes]:
        """Give the changes of the object with this uid and of the pods that it controls."""


class PodForecasts(Protocol):
    """Forecasts for single pods of one snapshot."""

    def find_destinations(self, pod: Pod) -> tuple[str, ...] | Refused:
        """Give the nodes that the pod may be moved to, best first."""

    def refuse_destinations(self, pod: Pod, destinations: tuple[str, ...]) -> Refused | None:
        """Refuse destinations if the pod fits on none of them."""

    def score_landing(self, move: OpenMove, landed_on: str) -> LandingScores | None:
        """Score the source node and the node where the replacement landed."""


class MoveForecast(Protocol):
    """Where a pod would land, and how kube-scheduler would score it."""

    @property
    def schedulers(self) -> frozenset[str]:
        """The schedulerNames that it can forecast."""

    def look_at(self, snapshot: Snapshot) -> PodForecasts:
        """Begin with a snapshot."""


def never_stop(_policy: str) -> Refused | None:
    """Stop no move: for a command, whose move neither a mode nor a brake stops."""
    return None


class ReasonCheck(Protocol):
    """Asks the policies of moves on one snapshot whether they still have a reason for them."""

    def refuse(self, move: OpenMove, *, resumed: bool) -> Refused | None:
        """Refuse the move if the reason has gone. A resumed move was begun by an earlier leader."""


class _EveryReason:
    def refuse(self, move: OpenMove, *, resumed: bool) -> Refused | None:
        del move, resumed
        return None


def never_reasonless(_snapshot: Snapshot) -> ReasonCheck:
    """Refuse no move: for a command, whose moves a person requests."""
    return _EveryReason()


@dataclass(frozen=True, kw_only=True)
class ClusterResources:
    """What a process needs to see and change the cluster, whether it leads or not.

    Without a forecast, the outcome of a move is `Unknown`.
    """

    api: Api
    mirror: SyncedCache
    extenders: ExtenderClient
    recorder: EventRecorder
    settings: Callable[[], ReschedulerSettings]
    policy: Callable[[], ReschedulerPolicy]
    clock: Callable[[], float]
    """The API server's time, by which everything is written and judged."""
    forecast: MoveForecast | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionContext(ClusterResources):
    """What all moves of one leader share."""

    store: MoveStore
    tell: Callable[[str], None]
    offload: Offload = run_inline
    stop_reason: Callable[[str], Refused | None] = never_stop
    """Why a move of this policy must not be made now."""
    find_reasons: Callable[[Snapshot], ReasonCheck] = never_reasonless

    @cached_property
    def ledger(self) -> LedgerWriter:
        """The debits of this leader's moves."""
        return LedgerWriter(self.store, limits=lambda: self.policy().limits.rates, clock=self.clock)

    @cached_property
    def dry_runs(self) -> DryRunGuard:
        """Whether replacements may be created as a dry run."""
        return DryRunGuard(self.api)

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        """Read a pod from the API server; None if there is none."""
        try:
            return await self.api.get(PODS, name, namespace=namespace)
        except NotFound:
            return None

    async def look_at_pod(self, namespace: str, name: str) -> Pod | None:
        """Give a pod from the cache if its watch has just brought something; else read it.

        A watch brings changes in their order, so the cache is as new as the last thing that it has brought:
        in a busy cluster a read tells hardly more. It is not believed while the pods are listed, or are about
        to be; nor if what the watch brings may be a backlog that is older. A pod that is not well in the
        cache is always read, and so is one whose newest version the cache could not take.
        """
        is_current = self.mirror.is_current(PODS, namespace, name, within=FRESH)
        found = self.find_pod(namespace, name) if is_current else None
        return found or await self.read_pod(namespace, name)

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """Give a pod from the cache, unless it is terminating there."""
        row = self.mirror.cache.of(POD).named(namespace, name)
        return row.pod if row and not row.is_terminating else None

    def is_budgeted(self, pod: Pod) -> bool:
        """Tell whether a cached PodDisruptionBudget selects a pod."""
        meta = pod.metadata
        budgets = self.mirror.cache.of(BUDGET).within(meta.namespace)
        return any(compile_budget(each).matches(meta.labels or {}) for each in budgets)

    def find_node(self, name: str) -> Node | None:
        """Give a node from the cache."""
        row = self.mirror.cache.of(NODE).named("", name)
        return row.record if row else None

    def find_rates(self, namespace: str, workload: WorkloadIdentity) -> DisruptionLimits:
        """Give the rates for a disruption of a workload now, with percentages counted out."""
        cache = self.mirror.cache
        return resolve_limits(
            self.policy().limits.rates,
            cluster=lambda: cache.pod_counts.in_cluster,
            namespace=lambda: cache.pod_counts.in_namespace(namespace),
            workload=lambda: cache.count_workload(namespace, workload),
        )

    def count_most_moves(self, signature: Signature) -> int | None:
        """Count how many moves of a workload may be under way now; None: any number."""
        most, count = self.policy().limits.per_workload, self.mirror.cache.count_workload
        return most.among(partial(count, signature.namespace, signature.root)).number if most else None

    def find_most_moves(self, uid: str) -> int | None:
        """Do the same for the workload of the pod with this uid; of a pod that has gone, give the minimum."""
        cache, most = self.mirror.cache, self.policy().limits.per_workload
        row = cache.of(POD).by_uid(uid)
        signature = cache.sign(row.template) if row else None
        if isinstance(signature, Signature):
            return self.count_most_moves(signature)
        return most.number if most else None

    def find_progress_deadline(self, signature: Signature) -> float:
        """Give the time that a Deployment gives its pods to be Ready; 0 for other workloads."""
        found = self.mirror.cache.find_deployment(signature.namespace, signature.root)
        return float((found.spec.progress_deadline_seconds if found else None) or 0)

    def find_controller(self, uid: str) -> Owner | ReplicationController | None:
        """Give the controller of pods if it is of a kind that is cached with its replicas."""
        tables = map(self.mirror.cache.of, _KINDS_WITH_REPLICAS)
        return next(filter(None, (table.by_uid(uid) for table in tables)), None)

    def find_min_ready(self, uid: str) -> float:
        """Give for how long a controller wants its pods to be Ready before they count; an hour at most."""
        found = self.find_controller(uid)
        return min(float((found.spec.min_ready_seconds if found else None) or 0), LONGEST_READY_TIME)


def make_execution_context(
    resources: ClusterResources,
    store: MoveStore,
    *,
    tell: Callable[[str], None],
    offload: Offload = run_inline,
    stop_reason: Callable[[str], Refused | None] = never_stop,
    find_reasons: Callable[[Snapshot], ReasonCheck] = never_reasonless,
) -> ExecutionContext:
    """Add to the resources of a process what only a leader has."""
    shared = {each.name: getattr(resources, each.name) for each in fields(ClusterResources)}
    return ExecutionContext(
        **shared,
        store=store,
        tell=tell,
        offload=offload,
        stop_reason=stop_reason,
        find_reasons=find_reasons,
    )


@dataclass(frozen=True)
class MoveHooks:
    """What is called on the way: when a pod is evicted, when it was granted, when the next one lands.

    `on_grant` is given the workload and the refusals that the grant disproves.
    """

    on_eviction: Callable[[], None] = lambda: None
    on_landing: Callable[[], None] = lambda: None
    on_grant: Callable[[WorkloadName, tuple[RememberedRefusal, ...]], None] = lambda _name, _disproved: None


NO_HOOKS = MoveHooks()


@dataclass(frozen=True)
class MoveHandle:
    """One move that is being executed: its workload, and the history that records it.

    A move that an earlier leader began has no `note` to write: if its note is missing, it is undone.
    """

    namespace: str
    history: str
    workload: WorkloadIdentity
    reporter: MoveReporter
    note: Note | None = None
    hooks: MoveHooks = NO_HOOKS

    @property
    def name(self) -> WorkloadName:
        """The workload as a plan names it."""
        return WorkloadName(self.namespace, f"{self.workload.kind}/{self.workload.name}")


def make_handle(context: ExecutionContext, history: EvictionHistory) -> MoveHandle:
    """Make a handle for an open move of this history."""
    namespace, workload = history.metadata.namespace, history.spec.workload
    reporter = MoveReporter(namespace, workload, tell=context.tell, recorder=context.recorder)
    return MoveHandle(namespace, history.metadata.name, workload, reporter)
