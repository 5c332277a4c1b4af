"""The outcome of a scheduling: a decision with its reasons, or a refusal."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum

import msgspec

from federation.api import TargetCluster


class Reason(StrEnum):
    """Reasons of the condition Scheduled; only Success goes with status True."""

    SUCCESS = "Success"
    NO_CLUSTER_FIT = "NoClusterFit"
    UNSCHEDULABLE = "Unschedulable"
    SCHEDULER_ERROR = "SchedulerError"


class SchedulingRefusal(msgspec.Struct, frozen=True):
    """Why there are no clusters for a binding; `steady` says it without the figures of the moment."""

    reason: Reason
    message: str
    steady: str = ""


class ClusterVerdict(msgspec.Struct, frozen=True):
    """The verdict of the plugins on one cluster, and how many more replicas fit there."""

    passed: bool
    reasons: dict[str, str]
    scores: dict[str, int]
    available: int


class Failure(msgspec.Struct, frozen=True, rename="camel"):
    """A cluster group that was tried without success, with the message of its Event."""

    affinity_name: str
    message: str


class Decision(msgspec.Struct, frozen=True):
    """The clusters of a workload, with the reasons.

    Without success they are its present clusters: nothing is taken away before there is a replacement.
    `scheduled_at` is the new lastScheduledTime, None if it does not change. `retry` asks for another attempt
    even if no object changes. `cause` is why it was scheduled at all. `unreported` are clusters that have
    not reported their API resources yet; None keeps the list as it is. `steady` is the message without the
    figures of the moment: the condition has it, so that it is not written with every change of room.
    `look_at` is when the next block of a cluster ends: another decision may be possible then.
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
    steady: str = ""
    look_at: float | None = None


def choose_refusal(refusals: Sequence[SchedulingRefusal]) -> tuple[SchedulingRefusal, bool]:
    """Return the refusal of the first group, and whether a retry may help although no object changes.

    It does not help if no cluster passes the filters: for that an object has to change.
    """
    return refusals[0], any(each.reason is not Reason.NO_CLUSTER_FIT for each in refusals)


def describe_success(clusters: Iterable[TargetCluster], *, is_namespaced: bool) -> str:
    """Write the message of a success."""
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
