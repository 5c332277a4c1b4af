"""Scheduler drift: the running scheduler does not place pods as the forecast says.

Each newly bound pod is forecast on the cluster as it was just before its binding. If the scheduler is
configured differently from the configuration file that we read, it binds many pods to nodes to which the
forecast gives no chance at all.
"""

from collections import Counter, deque
from collections.abc import Collection
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
    namespace: str = ""


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


class _Verdict(NamedTuple):
    namespace: str
    agreed: bool


class HitRate:
    """The share of the last bindings that were as forecast.

    A scheduler that is configured differently places the pods of all namespaces differently. So at most half
    of the bindings are of one namespace, and if only one namespace is not as forecast, that is no drift. Few
    bindings of others are enough to tell: the owner of a namespace can bind his own pods against all rules,
    and must not stop the moves of everybody. Landings elsewhere are also told by the histories of the moves.
    """

    def __init__(self) -> None:
        self._last: deque[_Verdict] = deque()

    def enter(self, agreed: bool, settings: DriftSettings, *, namespace: str) -> None:  # noqa: FBT001 - it is a fact, not a flag
        theirs = [each for each in self._last if each.namespace == namespace]
        if len(theirs) >= max(settings.last // 2, settings.fewest):
            self._last.remove(theirs[0])  # the oldest of two equal ones
        self._last.append(_Verdict(namespace, agreed))
        while len(self._last) > settings.last:
            self._last.popleft()

    @property
    def share(self) -> float | None:
        return _find_share(self._last)

    def find_drift(self, settings: DriftSettings) -> Refused | None:
        """Report drift if too few were, once enough were compared."""
        share, count = self.share, len(self._last)
        if share is None or count < settings.fewest or share >= settings.least:
            return None
        others = self._list_others()
        if (_find_share(others) or 0.0) >= settings.least:
            return None
        reason = (
            f"your scheduler configuration file does not match the running scheduler: {share:.0%} of the "
            f"last {count} pods landed as forecast, fewer than {settings.least:.0%}"
        )
        return Refused(RULE, reason)

    def _list_others(self) -> list[_Verdict]:
        """List the bindings outside of the namespace with the most wrong forecasts."""
        misses = Counter(each.namespace for each in self._last if not each.agreed)
        worst = min(misses, key=lambda namespace: (-misses[namespace], namespace))
        return [each for each in self._last if each.namespace != worst]


def _find_share(verdicts: Collection[_Verdict]) -> float | None:
    return sum(each.agreed for each in verdicts) / len(verdicts) if verdicts else None


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
