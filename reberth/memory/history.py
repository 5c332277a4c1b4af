"""The eviction history of a workload: its open moves, and the outcomes of past ones.

A move is written twice: as Noted, before anything else is done for it, and when it is closed with an outcome.
That its pod was evicted is not written in between: it follows from the pod, which is gone. Earlier versions
have also written the phases Planned and Evicted. `backoff` defines the consequences of a fruitless move.

Every function takes a history and returns the next one, so that a write that met a conflict can be repeated
on the newer history; a repeated call changes nothing.
"""

import math
from collections.abc import Callable, Collection, Iterable
from statistics import median
from typing import TypeVar

import msgspec

from reberth.cluster.pods.identity import Signature, name_history
from reberth.memory.backoff import (
    DEFAULT_BACK_OFF,
    BackOff,
    closing_time,
    end_block,
    end_giving_up,
    instant,
    is_fruitless,
    still_counts,
)
from reberth.memory.refusals import drop_refusals, put_refusal
from reberth.records import (
    GIVEN_UP,
    REBERTH_API_VERSION,
    Condition,
    EvictionHistory,
    HistorySpec,
    HistoryStatus,
    ObjectMeta,
    OpenMove,
    Outcome,
    OwnerReference,
    PastMove,
    Phase,
    Pod,
    RememberedRefusal,
    WorkloadIdentity,
)
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time, write_time

# The limits in the custom resource's schema.
MOST_PAST = 20
MOST_OPEN = 32
MOST_DESTINATIONS = 64
LANDING_TIME = 300.0  # for which a move draws its replacement, after the pod's grace period
LONGEST_READY_TIME = 3600.0  # that the workload itself can ask for
DEFAULT_GRACE_PERIOD = 30  # seconds, Kubernetes' default of terminationGracePeriodSeconds

MOVES_FULL = Refused("MovesFull", "the eviction history has no room for another open move")
NO_SUCH_MOVE = Refused("NoSuchMove", "the eviction history has no such open move")
PHASE_PASSED = Refused("PhasePassed", "the move has already been closed")

_BAD = frozenset({Outcome.RETURNED, Outcome.PENDING, Outcome.NOT_READY})
_FRUITLESS = ("FruitlessMoves", "too many moves of the workload had no benefit; it is not moved for now")
_OVER = ("TimeOver", "the workload may be moved again")


class Ending(msgspec.Struct, frozen=True):
    """The outcome of a move, and its measurements."""

    outcome: Outcome
    landed_on: str | None = None
    score_before: int | None = None
    score_after: int | None = None
    time_to_ready: float | None = None
    as_forecast: bool | None = None  # None: nothing landed, or nothing drew it to a destination
    replacement_uid: str | None = None  # of a pod that is still pending

    @property
    def is_well(self) -> bool:
        """Whether the move is not known to have made anything worse."""
        return self.outcome not in _BAD

    def __str__(self) -> str:
        landed = f", landed on {self.landed_on}" if self.landed_on else ""
        ready = "" if self.time_to_ready is None else f", Ready after {self.time_to_ready:.0f} s"
        return f"{self.outcome}{landed}{ready}"


def start_history(signature: Signature) -> EvictionHistory:
    """Make the empty history of a pod's workload; it is deleted with the workload."""
    root = signature.root
    owner = OwnerReference(root.api_version, root.kind, root.name, root.uid, block_owner_deletion=False)
    return EvictionHistory(
        ObjectMeta(
            name=name_history(root),
            namespace=signature.namespace,
            owner_references=(owner,) if root.uid else None,
        ),
        REBERTH_API_VERSION,
        "EvictionHistory",
        HistorySpec(root),
    )


def is_history_of(history: EvictionHistory, workload: WorkloadIdentity) -> bool:
    """Distinguish it from the history of an earlier workload of the same name."""
    uid = history.spec.workload.uid
    return not uid or not workload.uid or uid == workload.uid


def draft_move(
    pod: Pod,
    signature: Signature,
    *,
    move: str,
    destinations: tuple[str, ...],
    policy: str,
    reason: str,
    known_pods: tuple[str, ...] = (),
    now: float,
) -> OpenMove:
    """Describe a newly planned move of the pod off its node."""
    grace_period = pod.spec.termination_grace_period_seconds
    if grace_period is None:
        grace_period = DEFAULT_GRACE_PERIOD
    return OpenMove(
        id=move,
        pod=pod.metadata.name,
        pod_uid=pod.metadata.uid,
        controller_uid=signature.controller.uid,
        from_=pod.spec.node_name or "",
        planned_at=write_micro_time(now),
        expires_at=write_time(now + grace_period + LANDING_TIME),
        phase=Phase.NOTED,
        destinations=destinations[:MOST_DESTINATIONS],
        policy=policy,
        reason=reason,
        known_pods=known_pods or None,
    )


def await_ready(
    move: OpenMove,
    history: EvictionHistory,
    *,
    least: float,
    progress_deadline: float = 0.0,
    stays: float = 0.0,
) -> OpenMove:
    """Give the replacement the time that it needs to be Ready, and to stay so: slow is not failed.

    That is the longest of `least`, the Deployment's progress deadline, and twice the longest time that a
    replacement of this workload has needed; and then for as long as it has to stay Ready. The destinations
    draw no longer for it: a replacement that is bound needs no draw, and another pod must not get its place.
    """
    times = [past.time_to_ready for past in history.status.past or () if past.time_to_ready is not None]
    asked_for = min(max(progress_deadline, 2.0 * max(times, default=0)), LONGEST_READY_TIME)
    longer = max(least, asked_for, LANDING_TIME) + stays - LANDING_TIME
    if longer <= 0:
        return move
    return msgspec.structs.replace(move, awaited_until=write_time(instant(move.expires_at) + longer))


def open_move(history: EvictionHistory, move: OpenMove) -> EvictionHistory | Refused:
    """Add an open move; the history may already contain it."""
    opened, past = _moves(history)
    if _find(opened, move.id):
        return history
    if _find(past, move.id):
        return PHASE_PASSED
    if len(opened) >= MOST_OPEN:
        return MOVES_FULL
    return _with_status(history, open=(*opened, move))


def close_move(
    history: EvictionHistory,
    move_id: str,
    ending: Ending,
    *,
    now: float,
    back_off: BackOff = DEFAULT_BACK_OFF,
    evicted_at: str | None = None,
    refusal: RememberedRefusal | None = None,
    disproved: Collection[RememberedRefusal] = (),
) -> EvictionHistory | Refused:
    """Close an open move, unless it is already closed, and apply the consequences.

    The refusal is written in the same step, so that no leader knows of the end without its cause; likewise
    the refusals that its eviction has disproved are dropped.
    """
    opened, past = _moves(history)
    move = _find(opened, move_id)
    if move is None:
        return history if _find(past, move_id) else NO_SUCH_MOVE
    closed = _as_past(move, ending, now, evicted_at or move.evicted_at)
    if is_fruitless(closed):
        until = end_block(closed, [*past, closed], back_off)
        closed = msgspec.structs.replace(closed, block_until=write_time(until))
        history = _give_up(history, end_giving_up([*past, closed], now, back_off))
    status = drop_refusals(history.status, disproved.__contains__)
    status = put_refusal(status, refusal, now) if refusal else status
    history = msgspec.structs.replace(history, status=status)
    still_open = tuple(one for one in opened if one is not move)
    return review(_with_status(history, open=still_open, past=(*past, closed)), now, back_off=back_off)


def review(history: EvictionHistory, now: float, *, back_off: BackOff = DEFAULT_BACK_OFF) -> EvictionHistory:
    """Limit the number of past moves, end an expired giving-up, and set the condition."""
    status = history.status
    given_up = instant(status.given_up_until) > now
    return _with_status(
        history,
        past=_bound(status.past or (), now, back_off),
        given_up_until=status.given_up_until if given_up else None,
        conditions=_conditions(status, now, given_up=given_up),
    )


def is_evicted(move: OpenMove, is_alive: Callable[[str], bool]) -> bool:
    """Tell whether the pod of an open move has been evicted; `is_alive` is asked about the pod's uid."""
    return move.phase is Phase.EVICTED or (move.phase is Phase.NOTED and not is_alive(move.pod_uid))


def is_expired(move: OpenMove, now: float) -> bool:
    return instant(move.expires_at) <= now


def end_readiness(move: OpenMove) -> float:
    """Tell until when a replacement that is bound may become Ready."""
    return instant(move.awaited_until or move.expires_at)


def learn_cost(history: EvictionHistory) -> float | None:
    """Give the cost of a move of this workload: the median seconds until its replacements were Ready."""
    times = [move.time_to_ready for move in history.status.past or () if move.time_to_ready is not None]
    return median(times) if times else None


def _moves(history: EvictionHistory) -> tuple[tuple[OpenMove, ...], tuple[PastMove, ...]]:
    return history.status.open or (), history.status.past or ()


_Move = TypeVar("_Move", OpenMove, PastMove)


def _find(moves: Iterable[_Move], move_id: str) -> _Move | None:
    return next((move for move in moves if move.id == move_id), None)


def _with_status(history: EvictionHistory, **changes: object) -> EvictionHistory:
    status = msgspec.structs.replace(history.status, **changes)
    return msgspec.structs.replace(history, status=status)


def _as_past(move: OpenMove, ending: Ending, now: float, evicted_at: str | None) -> PastMove:
    time_to_ready = ending.time_to_ready
    return PastMove(
        id=move.id,
        pod=move.pod,
        pod_uid=move.pod_uid,
        from_=move.from_,
        outcome=ending.outcome,
        policy=move.policy,
        reason=move.reason,
        controller_uid=move.controller_uid,
        landed_on=ending.landed_on,
        as_forecast=ending.as_forecast,
        replacement_uid=ending.replacement_uid,
        evicted_at=evicted_at,
        closed_at=write_micro_time(now),
        score_before=ending.score_before,
        score_after=ending.score_after,
        time_to_ready=None if time_to_ready is None else math.ceil(time_to_ready),
    )


def _give_up(history: EvictionHistory, until: float | None) -> EvictionHistory:
    if until is None or until <= instant(history.status.given_up_until):
        return history
    return _with_status(history, given_up_until=write_time(until))


def _bound(past: tuple[PastMove, ...], now: float, back_off: BackOff) -> tuple[PastMove, ...]:
    """Keep the newest, oldest first; but no refused move pushes out the outcome of an eviction."""
    by_worth = sorted(
        past,
        key=lambda move: (
            still_counts(move, now, back_off),
            move.outcome is not Outcome.REFUSED,
            *_age(move),
        ),
    )
    return tuple(sorted(by_worth[-MOST_PAST:], key=_age))


def _age(move: PastMove) -> tuple[float, str]:
    return closing_time(move), move.id


def _conditions(status: HistoryStatus, now: float, *, given_up: bool) -> tuple[Condition, ...] | None:
    before = next((one.status for one in status.conditions or () if one.type == GIVEN_UP), "False")
    truth = "True" if given_up else "False"
    if before == truth:
        return status.conditions
    others = tuple(one for one in status.conditions or () if one.type != GIVEN_UP)
    reason, message = _FRUITLESS if given_up else _OVER
    return (*others, Condition(GIVEN_UP, truth, reason, message, write_time(now)))
