"""Scheduler drift: the running scheduler does not place pods as the forecast says.

Each newly bound pod is forecast on the cluster as it was just before its binding. If the scheduler is
configured differently from the configuration file that we read, it binds many pods to nodes to which the
forecast gives no chance at all.
"""

from collections import deque
from typing import Annotated, NamedTuple

from msgspec import Meta

from reberth.cluster.snapshot import Snapshot
from reberth.config.settings import Section
from reberth.forecast.extender import SnapshotMemory
from reberth.forecast.forecast import forecast
from reberth.forecast.state.incoming_pod import read_pending_pod
from reberth.forecast.state.verdict import Unforeseeable
from reberth.values.duration import Percentage
from reberth.values.refusal import Refused
from reberth.values.token_bucket import TokenBucket
from rescheduler.observe.scheduler_model import SchedulerModel

RULE = "SchedulerDrift"


class DriftSettings(Section, frozen=True):
    """How the bindings of the running scheduler are compared with the forecast."""

    per_minute: Annotated[int, Meta(ge=0)] = 60
    """Maximum number of newly bound pods that are compared per minute; 0 compares none."""
    last: Annotated[int, Meta(ge=1)] = 100
    """How many of the last compared pods count."""
    fewest: Annotated[int, Meta(ge=1)] = 20
    """Drift is not reported before this many pods were compared."""
    least: Percentage = Percentage(0.6)
    """If a smaller share landed as forecast, the scheduler is configured differently: drift is reported."""


class Binding(NamedTuple):
    """A pod that is pending in the snapshot is bound to this node."""

    uid: str
    node: str


def judge_binding(binding: Binding, snapshot: Snapshot, model: SchedulerModel) -> bool | None:
    """Tell whether the pod landed as forecast.

    None: it says nothing about the forecast, because there is none, or because every node has a chance.
    """
    place, node = snapshot.pods.by_uid(binding.uid), snapshot.nodes.index.get(binding.node)
    if place is None or node is None:
        return None
    view = model.look_at(snapshot)
    advised = model.advise(SnapshotMemory(view.facts, model.extender))
    found = forecast(
        read_pending_pod(view.facts, place), view, advised.scheduler, extenders=advised.extenders
    )
    if isinstance(found, Unforeseeable):
        return None
    if found.chance_of(node) == 0:
        return False
    return None if (found.chances > 0).all() else True


class HitRate:
    """The share of the last bindings that were as forecast."""

    def __init__(self) -> None:
        self._last: deque[bool] = deque()

    def enter(self, agreed: bool, settings: DriftSettings) -> None:  # noqa: FBT001 - it is a fact, not a flag
        self._last.append(agreed)
        while len(self._last) > settings.last:
            self._last.popleft()

    @property
    def share(self) -> float | None:
        return sum(self._last) / len(self._last) if self._last else None

    def find_drift(self, settings: DriftSettings) -> Refused | None:
        """Report drift if too few were, once enough were compared."""
        share, count = self.share, len(self._last)
        if share is None or count < settings.fewest or share >= settings.least:
            return None
        reason = (
            f"your scheduler configuration file does not match the running scheduler: {share:.0%} of the "
            f"last {count} pods landed as forecast, fewer than {settings.least:.0%}"
        )
        return Refused(RULE, reason)


class Sampler:
    """Chooses which bindings are compared: evenly over time, with a few at once."""

    def __init__(self, *, burst: int = 10) -> None:
        self._bucket = TokenBucket(burst)

    def admit(self, now: float, per_minute: int) -> bool:
        self._bucket.fill(now, rate=per_minute / 60)
        if not per_minute or self._bucket.tokens < 1:
            return False
        self._bucket.tokens -= 1
        return True
