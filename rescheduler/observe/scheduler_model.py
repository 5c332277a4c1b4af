"""The scheduler as the forecast simulates it, and our extender's advice to it."""

from dataclasses import dataclass, field

from reberth.cluster.pods.requests import Version
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.extender import (
    DEFAULTS,
    ExtenderForecastSettings,
    ReberthExtender,
    SnapshotMemory,
    find_reberth_extenders,
)
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.profile import KubeScheduler
from reberth.forecast.state.view import View, view_snapshot
from reberth.memory.advice import PodAdvice


@dataclass(frozen=True, eq=False)
class AdvisedScheduler:
    """The scheduler, with the advice of our extender on one snapshot if the scheduler asks it."""

    scheduler: KubeScheduler
    extenders: tuple[ReberthExtender, ...] = ()


@dataclass(frozen=True)
class SchedulerModel:
    """All that a forecast depends on beside the cluster: Kubernetes' version and both configurations."""

    version: Version
    scheduler: KubeScheduler
    extender: ExtenderForecastSettings = DEFAULTS

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The schedulers whose pods can be forecast: those with a profile."""
        return frozenset(self.scheduler.profiles)

    def look_at(self, snapshot: Snapshot) -> View:
        return view_snapshot(SnapshotFacts(snapshot, self.version))

    def advise(self, memory: SnapshotMemory) -> AdvisedScheduler:
        """Give the scheduler with the advice that our extender draws from this memory."""
        return AdvisedScheduler(self.scheduler, find_reberth_extenders(self.scheduler, memory))


@dataclass(frozen=True, eq=False)
class CachedAdvice(SnapshotMemory):
    """Keeps the advice on the last pod: many questions about one pod follow one another."""

    _last: dict[IncomingPod, PodAdvice] = field(default_factory=dict, repr=False)

    def advise(self, incoming: IncomingPod) -> PodAdvice:
        if incoming not in self._last:
            self._last.clear()
            self._last[incoming] = super().advise(incoming)
        return self._last[incoming]
