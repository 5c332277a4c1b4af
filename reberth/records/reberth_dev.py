"""Reberth's custom resources: eviction histories, the move ledger, and node scores of add-ons."""

from enum import StrEnum
from typing import Self

import msgspec

from reberth.records.meta import Condition, ObjectMeta, Record

REBERTH_API_VERSION = "reberth.dev/v1alpha1"
LEDGER_API_VERSION = "reberth.dev/v1alpha2"


GIVEN_UP = "GivenUp"
"""The condition of a history whose moves were fruitless too often."""


class WorkloadIdentity(Record, frozen=True):
    """An owner of pods, in the same namespace."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class Phase(StrEnum):
    """The phase of an open move."""

    PLANNED = "Planned"
    NOTED = "Noted"
    EVICTED = "Evicted"


class Outcome(StrEnum):
    """The outcome of a closed move."""

    BETTER = "Better"
    SAME = "Same"
    WORSE = "Worse"
    RETURNED = "Returned"
    PENDING = "Pending"
    NOT_READY = "NotReady"
    GONE = "Gone"
    REFUSED = "Refused"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, _value: object) -> Self:
        """Accept an outcome that a newer version wrote: it must not make the whole history unreadable."""
        return cls("Unknown")


class OpenMove(Record, frozen=True):
    id: str
    pod: str
    pod_uid: str = msgspec.field(name="podUID")
    controller_uid: str = msgspec.field(name="controllerUID")
    from_: str = msgspec.field(name="from")
    planned_at: str
    expires_at: str
    phase: Phase
    destinations: tuple[str, ...] | None = None
    policy: str = ""
    reason: str = ""
    evicted_at: str | None = None
    awaited_until: str | None = None  # if later than expires_at
    known_pods: tuple[str, ...] | None = None


class PastMove(Record, frozen=True):
    """A move that was closed at `closed_at`; without `evicted_at` its pod was never evicted."""

    id: str
    pod: str
    pod_uid: str = msgspec.field(name="podUID")
    from_: str = msgspec.field(name="from")
    outcome: Outcome
    closed_at: str
    policy: str = ""
    reason: str = ""
    controller_uid: str | None = msgspec.field(default=None, name="controllerUID")
    landed_on: str | None = None
    as_forecast: bool | None = None
    replacement_uid: str | None = msgspec.field(default=None, name="replacementUID")
    evicted_at: str | None = None
    score_before: int | None = None
    score_after: int | None = None
    time_to_ready: int | None = None  # seconds
    block_until: str | None = None


class RememberedRefusal(Record, frozen=True):
    """What refused the last moves of the workload, and until when none that it concerns is tried again."""

    rule: str
    refused_at: str  # the last time
    until: str
    key: str = ""  # the pod, node, namespace or webhook that the rule is about
    count: int = 1  # in a row
    reason: str = ""


class HistorySpec(Record, frozen=True):
    workload: WorkloadIdentity = WorkloadIdentity()


class HistoryStatus(Record, frozen=True):
    open: tuple[OpenMove, ...] | None = None
    past: tuple[PastMove, ...] | None = None
    refused: tuple[RememberedRefusal, ...] | None = None
    given_up_until: str | None = None
    conditions: tuple[Condition, ...] | None = None


class EvictionHistory(Record, frozen=True):
    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    spec: HistorySpec = HistorySpec()
    status: HistoryStatus = HistoryStatus()


class DebitState(StrEnum):
    """A debit is Tentative until the eviction that it pays for is known to have happened."""

    TENTATIVE = "Tentative"
    SPENT = "Spent"


class Debit(Record, frozen=True):
    move: str
    time: str
    state: DebitState
    namespace: str = ""
    workload_uid: str = msgspec.field(default="", name="workloadUID")
    pod: str = ""
    pod_uid: str = msgspec.field(default="", name="podUID")
    policy: str = ""
    pool: str = ""  # of the source node


class LedgerSlot(Record, frozen=True):
    """Disruptions that happened close together; all count until the newest of them no longer does."""

    time: str  # of the newest
    count: int
    namespaces: str = ""
    workloads: str = ""


class SpentMoves(Record, frozen=True):
    """Moves that are known to have been spent, their ids separated by spaces."""

    until: str
    moves: str


class ForgottenTimes(Record, frozen=True):
    """Up to when disruptions are no longer in the ledger."""

    cluster_until: str = ""
    namespace_until: str = ""
    workload_until: str = ""


class KeptPeriod(Record, frozen=True):
    """The period of a rate that counts disruptions, extended by the possible difference between clocks."""

    scope: str  # of the rate: cluster, namespace or workload
    seconds: int
    until: str


class LedgerSummary(Record, frozen=True):
    """What kubectl prints, as of the last change."""

    tentative: int
    spent: int
    bytes: int


class LedgerStatus(Record, frozen=True):
    debits: tuple[Debit, ...] | None = None
    slots: tuple[LedgerSlot, ...] | None = None
    spent_moves: tuple[SpentMoves, ...] | None = None
    periods: tuple[KeptPeriod, ...] | None = None
    forgotten: ForgottenTimes = ForgottenTimes()
    summary: LedgerSummary | None = None


class MoveLedger(Record, frozen=True):
    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    status: LedgerStatus = LedgerStatus()


class PlacementScore(Record, frozen=True):
    """One score. Any `value` is accepted here; `memory.addon_scores` decides later whether it counts."""

    name: str = ""
    value: object = None


class ScoreSpec(Record, frozen=True):
    node_name: str = ""
    source: str = ""


class ScoreStatus(Record, frozen=True):
    scores: tuple[PlacementScore, ...] | None = None
    valid_until: str | None = None
    conditions: tuple[Condition, ...] | None = None


class NodePlacementScore(Record, frozen=True):
    metadata: ObjectMeta
    spec: ScoreSpec = ScoreSpec()
    status: ScoreStatus = ScoreStatus()
