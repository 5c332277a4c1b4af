"""The next step of a move, decided from the state that is stored in the cluster.

A crash can stop a move between any two of its writes. So the next step never depends on where the program
was: it follows from four things that survive the process, which are the workload's eviction history, the move
ledger, the note on the source node, and the pod. A new leader reads these four and continues.

* The history says Noted: the move is announced, and its eviction may have been sent. If the pod is gone or
  terminating, the move counts as evicted, even if somebody else deleted the pod. Otherwise the debit and the
  note are written, side by side; when all three were answered, the pod is evicted.
* If the pod is alive and the move was refused or is expired, it is undone. So is one of an earlier leader
  without note or debit: its plan is old, and undoing it costs nothing. But a move of an earlier leader is not
  undone while that leader's eviction may still be on its way: it would be evicted without note or debit.
* The pod of an earlier leader's move is not evicted before debit and note were written again: what that
  leader has sent to undo the move may be on its way, and meets a conflict then.
* If the pod is gone or terminating: mark the debit as Spent, then wait for the replacement.

Why the order is this one:

* The history comes first, and is answered before anything else is sent. A move that is recorded nowhere could
  not be found after a crash, and its note and its debit would stay behind. And a history that arrives late,
  when the next leader has already returned the debit, is an open move without debit and note: it is undone.
* The debit comes before the eviction. If it came after, a crash in between would leave an eviction that no
  rate counts.
* The note comes before the eviction. The replacement is scheduled within milliseconds of the eviction;
  without the note it could return to the source node.
* The debit is marked as Spent after the eviction. A tentative debit counts in every rate until it is spent or
  returned; a spent one counts for the period of the rate. If it were marked before the eviction, that period
  would begin too early; if it were never marked, it would count forever.

To undo a move, its note is removed and its debit is returned, side by side; then the history is closed. If
that is interrupted, the move is still open in the history: the next leader finds it without note or debit,
and finishes undoing it.

If the workload was deleted together with its history, nothing else may stay behind: a move whose pod is alive
is undone like any other one.
"""

from enum import Enum, StrEnum

import msgspec
from msgspec.structs import replace

from reberth.memory.backoff import instant
from reberth.memory.history import is_expired
from reberth.memory.notes import NOTE_LOST
from reberth.records import Debit, DebitState, OpenMove, Phase, Pod, RememberedRefusal
from reberth.values.refusal import Refused
from reberth.values.timestamp import TimeError, parse_time, write_micro_time

MANUAL = "manual"
"""The policy name of a move that a person requested."""

INTERRUPTED = Refused("Interrupted", "the move was interrupted before its debit and its note were written")
EXPIRED = Refused("Expired", "the move expired before its pod was evicted")
DEBIT_LOST = Refused("DebitLost", "the move ledger no longer has the debit of the move")


class PodState(StrEnum):
    """The pod of a move, as it was last read."""

    ALIVE = "alive"
    TERMINATING = "terminating"
    GONE = "gone"


class MoveStep(Enum):
    """One step of a move, or its end; the value is what the log says of it."""

    PREPARE = "reserve disruption budget and write the note"
    RENEW = "write disruption budget and note again"
    EVICT = "validate and evict"
    AWAIT_EVICTION = "wait: an eviction that was sent before may still take effect"
    COUNT = "count the disruption"
    VERIFY = "wait for the replacement"
    UNDO = "remove the note and return the disruption budget"
    CLOSE = "close the move as refused"


class MoveState(msgspec.Struct, frozen=True):
    """What is known of an open move. `refused` is the first refusal that it met."""

    entry: OpenMove
    debit: Debit | None
    noted: bool
    pod: PodState
    evicted_at: float | None = None  # when the pod began to terminate, if that is known
    granted: bool = False  # the eviction was granted to us: nobody else deleted the pod
    disproved: tuple[RememberedRefusal, ...] = ()  # by the grant
    resumed: bool = False  # an earlier leader began it
    renewed: bool = False  # its debit and its note were written by this one
    in_doubt: bool = False  # an eviction that was sent before may still take effect
    refused: Refused | None = None
    node_version: str = ""  # resourceVersion of the source node with the note: extenders must have seen it
    history_version: str = ""  # resourceVersion of the history that says Noted: likewise


def judge_pod(pod: Pod | None, uid: str) -> PodState:
    """Tell the state of the pod with this uid. `pod` is the one that has its name now, if any."""
    if pod is None or pod.metadata.uid != uid:
        return PodState.GONE
    return PodState.TERMINATING if pod.metadata.deletion_timestamp else PodState.ALIVE


def find_termination(pod: Pod | None) -> float | None:
    """Tell when a pod began to terminate: its deletion timestamp is the end of the grace period."""
    meta = pod.metadata if pod else None
    if meta is None or meta.deletion_timestamp is None or meta.deletion_grace_period_seconds is None:
        return None
    try:
        return parse_time(meta.deletion_timestamp) - meta.deletion_grace_period_seconds
    except TimeError:
        return None


def take_sighting(state: MoveState, pod: Pod | None, *, now: float) -> MoveState:
    """Take over what was just read under the name of the pod.

    Of a pod that is gone nobody knows since when. The move then records when that was found, which is later;
    nothing is measured from it.
    """
    seen = judge_pod(pod, state.entry.pod_uid)
    if seen is PodState.ALIVE or state.entry.phase is not Phase.NOTED:
        return replace(state, pod=seen)
    began = find_termination(pod) if seen is PodState.TERMINATING else None
    return record_eviction(replace(state, pod=seen), began, now=now)


def record_eviction(state: MoveState, began: float | None, *, now: float) -> MoveState:
    """Record in memory that the pod has been evicted; the history says so when the move is closed."""
    time = now if began is None else min(began, now)
    entry = replace(state.entry, phase=Phase.EVICTED, evicted_at=write_micro_time(time))
    return replace(state, entry=entry, evicted_at=None if began is None else time)


def next_step(state: MoveState, *, now: float) -> MoveStep:
    """Tell the next step of a move; the module says why the steps have this order."""
    if _is_evicted(state):
        return MoveStep.COUNT if _is_tentative(state) else MoveStep.VERIFY
    if undo_reason(state, now=now):
        if state.in_doubt and state.entry.phase == Phase.NOTED:
            return MoveStep.AWAIT_EVICTION
        return MoveStep.UNDO if state.noted or state.debit else MoveStep.CLOSE
    if not (state.noted and state.debit):
        return MoveStep.PREPARE
    return MoveStep.RENEW if state.resumed and not state.renewed else MoveStep.EVICT


def undo_reason(state: MoveState, *, now: float) -> Refused | None:
    """Tell why a move whose pod is not evicted must be undone."""
    if state.refused:
        return state.refused
    if state.entry.phase == Phase.PLANNED or (state.resumed and not (state.noted or state.debit)):
        return INTERRUPTED
    if is_expired(state.entry, now):
        return EXPIRED
    if state.resumed and not state.noted:
        return NOTE_LOST
    return DEBIT_LOST if state.resumed and not state.debit else None


def count_from(state: MoveState) -> float:
    """Give the time from which the disruption of an evicted move counts."""
    return instant(state.entry.evicted_at)


def _is_evicted(state: MoveState) -> bool:
    return state.entry.phase == Phase.EVICTED or (
        state.entry.phase == Phase.NOTED and state.pod != PodState.ALIVE
    )


def _is_tentative(state: MoveState) -> bool:
    return state.debit is not None and state.debit.state == DebitState.TENTATIVE
