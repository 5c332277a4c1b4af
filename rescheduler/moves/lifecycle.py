"""The next step of a move, decided from the state that is stored in the cluster.

A crash can stop a move between any two of its writes. So the next step never depends on where the program
was: it follows from four things that survive the process, which are the workload's eviction history, the move
ledger, the note on the source node, and the pod. A new leader reads these four and continues.

* Planned: nothing has been done to the pod yet. Reserve disruption budget, write the note, record Noted. A
  Planned move of an earlier leader is undone: its plan is old, and undoing it costs nothing.
* Noted: the eviction may have been sent. If the pod is gone or terminating, the move counts as evicted, even
  if somebody else deleted the pod. If the pod is alive and the move was refused, is expired, or has lost its
  note or its debit, the move is undone. Otherwise: validate, and evict. A Noted move of an earlier leader is
  not undone while that leader's eviction may still be on its way: it would be evicted without note or debit.
* Evicted: commit the disruption budget, then wait for the replacement.

Why the order is this one:

* The history comes first. A move that is recorded nowhere could not be found after a crash, and its note and
  its debit would stay behind.
* The debit comes before the eviction. If it came after, a crash in between would leave an eviction that no
  rate counts.
* The note comes before the eviction. The replacement is scheduled within milliseconds of the eviction;
  without the note it could return to the source node.
* Noted is recorded before the eviction. Otherwise a new leader would undo a Planned move whose pod was
  already evicted, and return a debit that was spent.
* The debit is committed after the eviction. A tentative debit counts in every rate until it is committed or
  released; a committed one counts for the period of the rate. If it were committed before the eviction, that
  period would begin too early; if it were never committed, it would count forever.

A move is undone in the order note, debit, history. If that is interrupted, the move is still in the history:
the next leader finds it Planned, or Noted without a note, and finishes undoing it.

If the workload was deleted together with its history, nothing else may stay behind: the note is removed, and
the debit is released if the pod is alive and committed if it is not.
"""

from enum import Enum, StrEnum

import msgspec

from reberth.memory.history import is_expired
from reberth.records import Debit, DebitState, OpenMove, Phase, Pod
from reberth.values.refusal import Refused

MANUAL = "manual"
"""The policy name of a move that a person requested."""

INTERRUPTED = Refused("Interrupted", "the move was interrupted before its note was written")
EXPIRED = Refused("Expired", "the move expired before its pod was evicted")
NOTE_LOST = Refused("NoteLost", "the source node no longer has the note of the move")
DEBIT_LOST = Refused("DebitLost", "the move ledger no longer has the debit of the move")


class PodState(StrEnum):
    """The pod of a move, as it was last read."""

    ALIVE = "alive"
    TERMINATING = "terminating"
    GONE = "gone"


class MoveStep(Enum):
    """One write of a move, or its end; the value is what the log says of it."""

    RESERVE_BUDGET = "reserve disruption budget"
    WRITE_NOTE = "write the note"
    ADVANCE_TO_NOTED = "record phase Noted"
    EVICT = "validate and evict"
    AWAIT_EVICTION = "wait: an eviction that was sent before may still take effect"
    ADVANCE_TO_EVICTED = "record phase Evicted"
    COMMIT_BUDGET = "commit disruption budget"
    VERIFY = "wait for the replacement"
    REMOVE_NOTE = "remove the note"
    RELEASE_BUDGET = "release disruption budget"
    CLOSE = "close the move as refused"
    FORGET = "end a move whose history is gone"


class MoveState(msgspec.Struct, frozen=True):
    """What is known of an open move. `refused` is the first refusal that it met."""

    entry: OpenMove
    debit: Debit | None
    noted: bool
    pod: PodState
    granted: bool = False  # the eviction was granted to us: nobody else deleted the pod
    resumed: bool = False  # an earlier leader began it
    in_doubt: bool = False  # an eviction that was sent before may still take effect
    refused: Refused | None = None
    history_gone: bool = False
    node_version: str = ""  # resourceVersion of the source node with the note: extenders must have seen it
    history_version: str = ""  # resourceVersion of the history that says Noted: likewise


def judge_pod(pod: Pod | None, uid: str) -> PodState:
    """Tell the state of the pod with this uid. `pod` is the one that has its name now, if any."""
    if pod is None or pod.metadata.uid != uid:
        return PodState.GONE
    return PodState.TERMINATING if pod.metadata.deletion_timestamp else PodState.ALIVE


def next_step(state: MoveState, *, now: float) -> MoveStep:
    """Tell the next step of a move; the module says why the steps have this order."""
    if state.history_gone:
        return _forget(state)
    if state.entry.phase == Phase.EVICTED:
        return MoveStep.COMMIT_BUDGET if _is_tentative(state) else MoveStep.VERIFY
    if state.entry.phase == Phase.NOTED and state.pod != PodState.ALIVE:
        return MoveStep.ADVANCE_TO_EVICTED
    if undo_reason(state, now=now):
        is_awaited = state.in_doubt and state.entry.phase == Phase.NOTED
        return MoveStep.AWAIT_EVICTION if is_awaited else _undo(state)
    return MoveStep.EVICT if state.entry.phase == Phase.NOTED else _prepare(state)


def undo_reason(state: MoveState, *, now: float) -> Refused | None:
    """Tell why a move whose pod is not evicted must be undone."""
    if state.refused:
        return state.refused
    if state.entry.phase == Phase.PLANNED:
        return INTERRUPTED if state.resumed else None
    if is_expired(state.entry, now):
        return EXPIRED
    if not state.noted:
        return NOTE_LOST
    return None if state.debit else DEBIT_LOST


def _prepare(state: MoveState) -> MoveStep:
    if state.debit is None:
        return MoveStep.RESERVE_BUDGET
    return MoveStep.ADVANCE_TO_NOTED if state.noted else MoveStep.WRITE_NOTE


def _forget(state: MoveState) -> MoveStep:
    # Only a pod that was seen alive proves that no eviction happened: else the rates must count it.
    if state.noted:
        return MoveStep.REMOVE_NOTE
    if not _is_tentative(state):
        return MoveStep.FORGET
    return MoveStep.RELEASE_BUDGET if state.pod == PodState.ALIVE else MoveStep.COMMIT_BUDGET


def _is_tentative(state: MoveState) -> bool:
    return state.debit is not None and state.debit.state == DebitState.TENTATIVE


def _undo(state: MoveState) -> MoveStep:
    if state.noted:
        return MoveStep.REMOVE_NOTE
    return MoveStep.RELEASE_BUDGET if state.debit else MoveStep.CLOSE
