"""A rehearsal: the controllers' decisions, carried out against a copy of the hub until nothing changes.

One round is what the controllers of a process do when they see all objects for the first time. What a round
changes is seen by the next one, as controllers see their own writes. Members say nothing new meanwhile, and
the clock stands still: a step that needs either of them is not made, and the plan says what it waits for.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgspec.structs import replace

from federation.api import ResourceBinding, TargetCluster
from federation.failover.eviction_causes import EvictionCauses
from federation.failover.eviction_history import GiveUpRules
from federation.failover.eviction_tasks import Patience
from federation.failover.pending_replicas import PendingRules
from federation.failover.storm_brake import StormBrake, StormRules
from federation.objects.names import Key
from federation.planning.binding_scheduler import BindingScheduler, SchedulingRules
from federation.planning.hub_objects import HubObjects
from federation.planning.plan import Action, Clusters, PlannedStep
from federation.scheduling import Decision, name_of
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import TimeError, write_time

MOST_ROUNDS = 100


class PlanRules(NamedTuple):
    """The settings on which decisions depend; `controllers` are those that run."""

    controllers: frozenset[str]
    scheduling: SchedulingRules
    patience: Patience
    failback_at_once: int
    failback_handover: float
    rebalancer_handover: float
    lost_after: float | None = None
    brake_fraction: float = 1.0
    brake_longest: float = 0.0
    let_go_after: float = 600.0
    give_up: GiveUpRules = GiveUpRules()
    storm: StormRules = StormRules()
    pending: PendingRules | None = None


class Rehearsal:
    """What all stages share: the hub, the memory of its controllers, and the steps so far."""

    def __init__(self, hub: HubObjects, rules: PlanRules, *, now: float) -> None:
        self.hub = hub
        self.rules = rules
        self.now = now
        self.steps: list[PlannedStep] = []
        self.evicted_from: set[str] = set()
        """The clusters that workloads have their turn to leave now."""
        self.storm = StormBrake(rules.storm)
        """Where workloads failed when failovers were looked at last."""
        self.decisions: dict[Key, Decision] = {}
        self.warnings: dict[str, None] = {}
        self.scheduler = BindingScheduler(
            lambda: hub.cluster_rows, rules.scheduling, on_fault=lambda fault: self.warn(str(fault))
        )
        self.causes = EvictionCauses(lambda: now)
        for cluster in hub.cluster_rows:
            self.causes.on_change(cluster)
        for key, binding in hub.list_bindings():
            self.scheduler.restore(key, binding, now=now)

    def warn(self, text: str) -> None:
        self.warnings[text] = None

    def tell(
        self, action: Action, subject: str, reason: str, *, origin: Clusters = (), to: Clusters = ()
    ) -> None:
        self.steps.append(PlannedStep(action, subject, reason, origin or None, to or None))
        if action is Action.EVICT:
            self.evicted_from.update(each.name for each in origin)

    def tell_move(self, action: Action, before: ResourceBinding, after: ResourceBinding, reason: str) -> None:
        """Tell of new clusters, with the old replicas that stay for now."""
        self.tell(action, name_of(after), reason, origin=list_clusters(before), to=list_clusters(after))
        handover = after.spec.handover
        if handover is not None and handover.clusters:
            step = replace(self.steps[-1], kept=handover.clusters, until=handover.until)
            self.steps[-1] = step

    @contextmanager
    def contained(self, subject: str) -> Iterator[None]:
        """One object that cannot be read fails alone, as in the controllers."""
        try:
            yield
        except ObjectError as error:
            self.warn(str(error))
        except TimeError as error:
            self.warn(f"{subject}: {error}")


Stage = Callable[[Rehearsal], bool]
"""Carry out what one controller would do now; tell whether that changed anything."""


def run_stages(rehearsal: Rehearsal, stages: list[Stage]) -> None:
    """Repeat all stages until none changes anything."""
    for _ in range(MOST_ROUNDS):
        if not sum(stage(rehearsal) for stage in stages):
            return
    rehearsal.warn(f"not settled after {MOST_ROUNDS} rounds at {write_time(rehearsal.now)}")


def list_clusters(binding: ResourceBinding) -> tuple[TargetCluster, ...]:
    return binding.spec.clusters or ()
