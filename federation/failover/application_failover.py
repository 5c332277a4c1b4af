"""Application failover of one workload: whether it has to leave a cluster because it fails there.

A failure counts from the clock in the Work of the copy. A member that is not Ready says nothing: nothing
begins there, and its first fresh word decides. What holds a failover back is a reason of a condition.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from federation.api import ApplicationFailover, ResourceBinding
from federation.api.eviction_blocks import read_application_failover
from federation.failover.eviction_history import GiveUpRules, count_fruitless, find_end_of_giving_up
from federation.failover.health_clock import HealthClock
from federation.objects.health import UNHEALTHY, UNKNOWN
from reberth.values.timestamp import write_time

ReadTime = Callable[[str], float]


class FailoverReason(StrEnum):
    """Reasons of the condition Failover; those that hold a failover back go with the status False."""

    CALM = "Calm"
    TOLERATING = "Tolerating"
    DELAYED = "Delayed"
    EVICTING = "Evicting"
    DUE = "Due"
    NOT_SETTLED = "NotSettled"
    ROLLING_OUT = "RollingOut"
    PENDING_REPLICAS = "PendingReplicas"
    NO_SUBSTITUTE = "NoSubstitute"
    BLOCKED = "Blocked"
    MEMBER_NOT_READY = "MemberNotReady"
    NO_HEALTH_RULE = "NoHealthRule"
    NO_STATE = "NoState"
    HANDOVER = "Handover"
    STORM = "Storm"
    GIVEN_UP = "GivenUp"
    SUSPENDED = "Suspended"


UNHELD = frozenset({"Calm", "Tolerating", "Delayed", "Evicting", "Due"})
_URGENCY = (
    FailoverReason.DUE,
    FailoverReason.TOLERATING,
    FailoverReason.DELAYED,
    FailoverReason.NO_STATE,
    FailoverReason.MEMBER_NOT_READY,
    FailoverReason.PENDING_REPLICAS,
    FailoverReason.NOT_SETTLED,
    FailoverReason.ROLLING_OUT,
    FailoverReason.CALM,
)


class CopyReport(NamedTuple):
    """What is known of the copy in one of the workload's clusters."""

    cluster: str
    health: str
    clock: HealthClock
    is_member_ready: bool
    has_state: bool = True
    """It has reported a status from which the state to be kept can be read."""
    awaits_nodes: float = 0.0
    """Seconds within which replicas that have no node are given to other clusters if they get none."""
    relieved: float | None = None
    """When its replicas without a node were given to other clusters: a failure counts from then on."""
    is_newest: bool = True
    """What it reports is about its newest version: the member has got that already."""


class CopyVerdict(NamedTuple):
    """What is to be done about one copy; `at` is when it is due, `since` when it began to fail."""

    cluster: str
    reason: FailoverReason
    at: float | None = None
    since: float | None = None
    fruitless: int = 0


class FailoverVerdict(NamedTuple):
    """What is to be done about a workload; `due` are the copies that may leave now, longest failing first."""

    reason: FailoverReason
    message: str
    due: tuple[CopyVerdict, ...] = ()
    look_at: float | None = None
    failing: frozenset[str] = frozenset()


def judge_failover(
    binding: ResourceBinding,
    copies: Iterable[CopyReport],
    rules: GiveUpRules,
    *,
    now: float,
    read_time: ReadTime,
    has_rule: bool = True,
) -> FailoverVerdict | None:
    """Judge a workload; None if it has no application failover. `read_time` reads the clocks of copies."""
    said = read_application_failover(binding)
    if said is None:
        return None
    if not has_rule:
        return FailoverVerdict(FailoverReason.NO_HEALTH_RULE, _TEXTS[FailoverReason.NO_HEALTH_RULE])
    if binding.spec.suspension and binding.spec.suspension.scheduling:
        return FailoverVerdict(FailoverReason.SUSPENDED, _TEXTS[FailoverReason.SUSPENDED])
    leaving = {task.from_cluster for task in binding.spec.graceful_eviction_tasks or ()}
    staying = [each for each in copies if each.cluster not in leaving]
    verdicts = [
        judge_copy(said, each, now=now, read_time=read_time)._replace(
            fruitless=count_fruitless(binding, each.cluster, each.clock, rules, now=now)
        )
        for each in staying
    ]
    return _sum_up(binding, verdicts, sorted(leaving), rules, now)


def judge_copy(
    said: ApplicationFailover, copy: CopyReport, *, now: float, read_time: ReadTime
) -> CopyVerdict:
    """Judge one copy, without what concerns the whole workload."""
    clock = copy.clock
    began = clock.failing or (clock.unknown if _counts_unknown(said) else None)
    if began is None:
        rolls = clock.is_rolling_out and copy.health == UNHEALTHY
        return CopyVerdict(copy.cluster, FailoverReason.ROLLING_OUT if rolls else FailoverReason.CALM)
    relieved = copy.relieved if copy.relieved is not None and copy.relieved <= now else 0.0
    since = max(read_time(began), relieved)
    verdict = CopyVerdict(copy.cluster, FailoverReason.DUE, since=since)
    before, decision = said.pre_conditions, said.decision_conditions
    tolerated = since + _seconds(decision.toleration_seconds if decision else None, default=300)
    delayed = _find_end_of_delay(before.delay_seconds if before else None, clock, read_time)
    if before and before.healthy_state and not clock.is_settled:
        return verdict._replace(reason=FailoverReason.NOT_SETTLED)
    if now < max(tolerated, delayed):
        reason = FailoverReason.TOLERATING if tolerated >= delayed else FailoverReason.DELAYED
        return verdict._replace(reason=reason, at=max(tolerated, delayed))
    if hold := _find_hold(said, copy):
        return verdict._replace(reason=hold)
    given_up = max(tolerated, delayed) + copy.awaits_nodes
    if said.preserve_available_replicas and now < given_up:
        return verdict._replace(reason=FailoverReason.PENDING_REPLICAS, at=given_up)
    return verdict if copy.has_state else verdict._replace(reason=FailoverReason.NO_STATE)


def _find_hold(said: ApplicationFailover, copy: CopyReport) -> FailoverReason | None:
    """Return what keeps a copy whose time has come from leaving: nobody knows whether it fails."""
    if not copy.is_member_ready or not _says_so(copy.health, said):
        return FailoverReason.MEMBER_NOT_READY
    return None if copy.is_newest else FailoverReason.ROLLING_OUT


def _sum_up(
    binding: ResourceBinding,
    verdicts: list[CopyVerdict],
    leaving: list[str],
    rules: GiveUpRules,
    now: float,
) -> FailoverVerdict:
    failing = frozenset(each.cluster for each in verdicts if each.since is not None)
    look_at = min((each.at for each in verdicts if each.at is not None), default=None)
    due = sorted(_of(verdicts, FailoverReason.DUE), key=lambda each: (each.since or 0.0, each.cluster))
    if not due:
        reason, message = _explain(verdicts, leaving)
        return FailoverVerdict(reason, message, look_at=look_at, failing=failing)
    if binding.spec.handover and binding.spec.handover.clusters:
        text = _TEXTS[FailoverReason.HANDOVER]
        return FailoverVerdict(FailoverReason.HANDOVER, text, look_at=look_at, failing=failing)
    ends = [find_end_of_giving_up(binding, each.fruitless, rules, now=now) for each in due]
    hopeful = tuple(each for each, end in zip(due, ends, strict=True) if end is None)
    if hopeful:
        text = f"It has to leave {_name(hopeful)}."
        return FailoverVerdict(FailoverReason.DUE, text, hopeful, look_at, failing)
    until = min(end for end in ends if end is not None)
    text = (
        f"It fails in {_name(due)}, and {due[0].fruitless} moves in a row have brought nothing: it stays"
        f" until {write_time(until)}, unless its eviction history is forgiven."
    )
    look_at = until if look_at is None else min(until, look_at)
    return FailoverVerdict(FailoverReason.GIVEN_UP, text, look_at=look_at, failing=failing)


def _explain(verdicts: list[CopyVerdict], leaving: list[str]) -> tuple[FailoverReason, str]:
    """Return the most urgent reason of all copies, with its message."""
    reason = next((each for each in _URGENCY if _of(verdicts, each)), FailoverReason.CALM)
    found = _of(verdicts, reason)
    if reason is FailoverReason.CALM:
        if leaving:
            return FailoverReason.EVICTING, f"It is leaving {', '.join(leaving)}."
        return reason, "No copy fails."
    ends = [each.at for each in found if each.at is not None]
    until = f" It leaves at {write_time(min(ends))}." if ends else ""
    return reason, f"{_name(found)}: {_TEXTS[reason]}{until}"


def _of(verdicts: Iterable[CopyVerdict], reason: FailoverReason) -> list[CopyVerdict]:
    return [each for each in verdicts if each.reason is reason]


def _name(verdicts: Iterable[CopyVerdict]) -> str:
    return ", ".join(each.cluster for each in verdicts)


def _counts_unknown(said: ApplicationFailover) -> bool:
    states = said.decision_conditions.healthy_state if said.decision_conditions else None
    return UNKNOWN in ((states,) if isinstance(states, str) else states or ())


def _says_so(health: str, said: ApplicationFailover) -> bool:
    return health == UNHEALTHY or (health == UNKNOWN and _counts_unknown(said))


def _find_end_of_delay(seconds: int | None, clock: HealthClock, read_time: ReadTime) -> float:
    return read_time(clock.reported) + seconds if seconds and clock.reported else float("-inf")


def _seconds(given: int | None, *, default: int) -> int:
    return default if given is None else given


_TEXTS = {
    FailoverReason.DUE: "it has to leave.",
    FailoverReason.TOLERATING: "it fails, which is tolerated for now.",
    FailoverReason.DELAYED: "it fails, and delaySeconds since its first status are not over.",
    FailoverReason.NOT_SETTLED: "it fails, but it has never been Healthy there, as preConditions demand.",
    FailoverReason.ROLLING_OUT: "a new version is being rolled out, which is not a failure.",
    FailoverReason.PENDING_REPLICAS: "it fails, but its replicas without a node may go elsewhere instead.",
    FailoverReason.MEMBER_NOT_READY: "it failed, but the member does not say now whether it still does.",
    FailoverReason.NO_STATE: "it fails, but has not reported the status of which state has to be preserved.",
    FailoverReason.NO_HEALTH_RULE: "Its kind has no health rule, so that it never counts as failing.",
    FailoverReason.SUSPENDED: "Its scheduling is suspended.",
    FailoverReason.HANDOVER: "It waits for the handover that is under way.",
}
