"""Signs in a pod's status that it is unhealthy; empty for a healthy pod."""

from collections.abc import Iterable, Iterator, Mapping
from sys import intern

import msgspec

from reberth.records import ContainerState, ContainerStatus, PodCondition, PodStatus, Terminated
from reberth.values.timestamp import parse_time

_RUNNING = ContainerState()


class PodProblems(msgspec.Struct, frozen=True, gc=False):
    """The reasons in a pod's status, and how often and why its containers restarted."""

    reason: str | None = None
    unscheduled: str | None = None
    disruption: str | None = None
    waiting: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    restarts: int = 0
    init_restarts: int = 0
    last_reason: str | None = None
    last_exit_code: int = 0
    last_ended: float | None = None


def find_problems(status: PodStatus, conditions: Mapping[str, PodCondition]) -> PodProblems | None:
    """Find the signs that a pod is unhealthy; `conditions` are the status conditions by type."""
    main, init = status.container_statuses or (), status.init_container_statuses or ()
    unwell = [each for each in (*main, *init) if not _is_well(each)]
    unscheduled = _find_reason(conditions.get("PodScheduled"), "False")
    disruption = _find_reason(conditions.get("DisruptionTarget"), "True")
    if not unwell and status.reason is None and unscheduled is None and disruption is None:
        return None
    last = max(_find_ends(unwell), key=_ended, default=Terminated())
    return PodProblems(
        reason=_shared(status.reason),
        unscheduled=unscheduled,
        disruption=disruption,
        waiting=tuple(_list_waiting(unwell)),
        failed=tuple(_list_failed(unwell)),
        restarts=sum(each.restart_count for each in main),
        init_restarts=sum(each.restart_count for each in init),
        last_reason=_shared(last.reason),
        last_exit_code=last.exit_code,
        last_ended=_ended(last) or None,
    )


def _is_well(container: ContainerStatus) -> bool:
    """Whether it runs, or has succeeded, and has never restarted."""
    now, before = container.state or _RUNNING, container.last_state or _RUNNING
    has_failed = now.terminated is not None and now.terminated.exit_code != 0
    return not (container.restart_count or now.waiting or has_failed or before.terminated)


def _find_reason(condition: PodCondition | None, status: str) -> str | None:
    return intern(condition.reason or "") if condition is not None and condition.status == status else None


def _find_ends(containers: Iterable[ContainerStatus]) -> Iterator[Terminated]:
    for container in containers:
        for state in (container.last_state, container.state):
            if state and state.terminated:
                yield state.terminated


def _ended(end: Terminated) -> float:
    return parse_time(end.finished_at) if end.finished_at else 0.0


def _list_waiting(containers: Iterable[ContainerStatus]) -> Iterator[str]:
    for container in containers:
        if container.state and container.state.waiting:
            yield intern(container.state.waiting.reason or "")


def _list_failed(containers: Iterable[ContainerStatus]) -> Iterator[str]:
    for container in containers:
        end = container.state.terminated if container.state else None
        if end and end.exit_code:
            yield intern(end.reason or "")


def _shared(text: str | None) -> str | None:
    return intern(text) if text else None
