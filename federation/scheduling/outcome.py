"""What a scheduling comes to: a decision with its reasons, or a refusal that says why there is none."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum

import msgspec

from federation.api import TargetCluster


class Reason(StrEnum):
    """Why the condition Scheduled is what it is; only the first stands for true."""

    SUCCESS = "Success"
    NO_CLUSTER_FIT = "NoClusterFit"
    UNSCHEDULABLE = "Unschedulable"
    SCHEDULER_ERROR = "SchedulerError"


class SchedulingRefusal(msgspec.Struct, frozen=True):
    """No clusters, and why."""

    reason: Reason
    message: str


class ClusterVerdict(msgspec.Struct, frozen=True):
    """What the plugins say of one cluster, and how many more replicas it has room for."""

    passed: bool
    reasons: dict[str, str]
    scores: dict[str, int]
    available: int


class Failure(msgspec.Struct, frozen=True, rename="camel"):
    """A group of clusters that was tried in vain; the message is that of its Event."""

    affinity_name: str
    message: str


class Decision(msgspec.Struct, frozen=True):
    """Where a workload is to be.

    Without success these are the clusters that it has: nothing is taken away before there is a
    substitute. `scheduled_at` is the new lastScheduledTime, None where it stays as it is. `retry` asks
    for another attempt, though no object changes. `cause` is why it was scheduled at all. `unreported` are
    clusters that have yet to say what they serve, None where the ones known before stand.
    """

    clusters: tuple[TargetCluster, ...]
    affinity_name: str
    reason: Reason
    message: str
    verdicts: dict[str, ClusterVerdict]
    cause: str = ""
    failures: tuple[Failure, ...] = ()
    scheduled_at: float | None = None
    retry: bool = False
    unreported: tuple[str, ...] | None = None


def choose_refusal(refusals: Sequence[SchedulingRefusal]) -> tuple[SchedulingRefusal, bool]:
    """Give the refusal that counts, the first, and whether time alone may help.

    It does not help where no cluster passes the filters: an object must change for that.
    """
    return refusals[0], any(each.reason is not Reason.NO_CLUSTER_FIT for each in refusals)


def describe_success(clusters: Iterable[TargetCluster], *, is_namespaced: bool) -> str:
    """Give the text of a success."""
    result = ", ".join(f"{target.name}:{target.replicas}" for target in clusters)
    colon = ":" if is_namespaced else ""
    return f"Binding has been scheduled successfully. Result{colon} {{{result}}}"


class Step(StrEnum):
    """The steps of a decision, by the names that Karmada's metrics give them."""

    FILTER = "Filter"
    SCORE = "Score"
    SELECT = "Select"
    ASSIGN = "AssignReplicas"


Timed = Callable[[Step], AbstractContextManager[object]]
"""Returns a context manager that times one step."""

_NOTHING = nullcontext()


def untimed(_: Step) -> AbstractContextManager[None]:
    return _NOTHING
