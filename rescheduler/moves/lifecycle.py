"""What comes next in a move, told from what is known of it.

A move goes through eight steps, and a crash may stop it after each of them. So no step is known from where
the program stands: it follows from the history, the ledger, the note and the pod as they are. Whoever takes
a move over looks at these four and goes on.

* Planned: nothing has been done to the pod. Debit, note, on to Noted. A move that somebody else left here is
  undone.
* Noted: the eviction may be sent, or may have been sent. If the pod is gone or terminating, it counts as
  evicted, whoever did it. If it lives and the move has met a "no", or has lost its time, its note or its
  debit, the move is undone. Else: validate, and evict.
* Evicted: the debit is spent, the replacement awaited.

A move whose history is gone with its workload leaves nothing behind: no note, and no debit in doubt.

To undo is to remove the note, return the debit and close the move, in this order: what is interrupted in it
is found Noted without a note, or Planned, and is undone to the end.
"""

from enum import Enum, StrEnum

import msgspec

from reberth.memory.history import is_expired
from reberth.records import Debit, DebitState, OpenMove, Phase, Pod
from reberth.values.refusal import Refused

MANUAL = "manual"
"""The policy of a move that a person asks for."""

INTERRUPTED = Refused("Interrupted", "the move was interrupted before its note was written")
EXPIRED = Refused("Expired", "the move's time was over before the pod was evicted")
NOTE_LOST = Refused("NoteLost", "the node does not carry the move's note any more")
DEBIT_LOST = Refused("DebitLost", "the ledger does not hold the move's debit any more")


class PodState(StrEnum):
    """What a look-up has shown of the pod of a move."""

    ALIVE = "alive"
    TERMINATING = "terminating"
    GONE = "gone"


class MoveStep(Enum):
    """What is to be done next."""

    ENTER_DEBIT = "enter the debit"
    WRITE_NOTE = "write the note"
    ADVANCE_TO_NOTED = "say that it is noted"
    EVICT = "validate and evict"
    ADVANCE_TO_EVICTED = "say that it is evicted"
    SPEND_DEBIT = "mark the debit as spent"
    VERIFY = "wait for the replacement"
    REMOVE_NOTE = "remove the note"
    RETURN_DEBIT = "return the debit"
    CLOSE = "close the move as refused"
    FORGET = "end the move without a history"


class MoveState(msgspec.Struct, frozen=True):
    """What is known of an open move. `refused` is the "no" that it has met."""

    entry: OpenMove
    debit: Debit | None
    noted: bool
    pod: PodState
    resumed: bool = False
    refused: Refused | None = None
    lost: bool = False  # its history is gone
    node_version: str = ""  # of the node with the note
    history_version: str = ""  # of the history that says Noted


def judge_pod(pod: Pod | None, uid: str) -> PodState:
    """Tell what has become of the pod of this uid, by the one that now has its name."""
    if pod is None or pod.metadata.uid != uid:
        return PodState.GONE
    return PodState.TERMINATING if pod.metadata.deletion_timestamp else PodState.ALIVE


def next_step(seen: MoveState, *, now: float) -> MoveStep:
    if seen.lost:
        return _forget(seen)
    if seen.entry.phase == Phase.EVICTED:
        return MoveStep.SPEND_DEBIT if _is_tentative(seen) else MoveStep.VERIFY
    if seen.entry.phase == Phase.NOTED and seen.pod != PodState.ALIVE:
        return MoveStep.ADVANCE_TO_EVICTED
    if why_undone(seen, now=now):
        return _undo(seen)
    return MoveStep.EVICT if seen.entry.phase == Phase.NOTED else _prepare(seen)


def why_undone(seen: MoveState, *, now: float) -> Refused | None:
    """Tell why a move whose pod is not evicted must not go on."""
    if seen.refused:
        return seen.refused
    if seen.entry.phase == Phase.PLANNED:
        return INTERRUPTED if seen.resumed else None
    if is_expired(seen.entry, now):
        return EXPIRED
    if not seen.noted:
        return NOTE_LOST
    return None if seen.debit else DEBIT_LOST


def _prepare(seen: MoveState) -> MoveStep:
    if seen.debit is None:
        return MoveStep.ENTER_DEBIT
    return MoveStep.ADVANCE_TO_NOTED if seen.noted else MoveStep.WRITE_NOTE


def _forget(seen: MoveState) -> MoveStep:
    if seen.noted:
        return MoveStep.REMOVE_NOTE
    if not _is_tentative(seen):
        return MoveStep.FORGET
    return MoveStep.RETURN_DEBIT if seen.pod == PodState.ALIVE else MoveStep.SPEND_DEBIT


def _is_tentative(seen: MoveState) -> bool:
    return seen.debit is not None and seen.debit.state == DebitState.TENTATIVE


def _undo(seen: MoveState) -> MoveStep:
    if seen.noted:
        return MoveStep.REMOVE_NOTE
    return MoveStep.RETURN_DEBIT if seen.debit else MoveStep.CLOSE
