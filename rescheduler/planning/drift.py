"""Does the running scheduler do what the forecast says? Told from the pods that it binds, one by one.

Each is forecast on the cluster as it was just before its binding. A scheduler that is configured otherwise
than we were told puts many of them where the forecast gives them no chance at all.
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
    """How the running scheduler is compared with the forecast, pod by pod."""

    per_minute: Annotated[int, Meta(ge=0)] = 60
    """Compare no more newly bound pods; 0 compares none."""
    last: Annotated[int, Meta(ge=1)] = 100
    """Judge by so many of the last ones."""
    fewest: Annotated[int, Meta(ge=1)] = 20
    """Judge by no fewer."""
    least: Percentage = Percentage(0.6)
    """A smaller share that landed as forecast says that the scheduler is configured otherwise."""


class Binding(NamedTuple):
    """A pod of this uid, which waits in the snapshot, gets this node."""

    uid: str
    node: str


def judge_binding(binding: Binding, snapshot: Snapshot, model: SchedulerModel) -> bool | None:
    """Tell whether the pod lands where the forecast sees it; None: that tells nothing.

    It tells nothing if there is no forecast, or one that gives every node a chance.
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
    """How many of the last bindings were as forecast."""

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
        """Tell that too few were, once there are enough to tell."""
        share, count = self.share, len(self._last)
        if share is None or count < settings.fewest or share >= settings.least:
            return None
        reason = (
            f"your scheduler configuration file does not match the running scheduler: {share:.0%} of the "
            f"last {count} pods landed as forecast, fewer than {settings.least:.0%}"
        )
        return Refused(RULE, reason)


class Sampler:
    """Admits so many a minute, evenly, with a few at once."""

    def __init__(self, *, burst: int = 10) -> None:
        self._bucket = TokenBucket(burst)

    def admit(self, now: float, per_minute: int) -> bool:
        self._bucket.fill(now, rate=per_minute / 60)
        if not per_minute or self._bucket.tokens < 1:
            return False
        self._bucket.tokens -= 1
        return True
