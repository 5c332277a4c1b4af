"""Containers that end again and again: by themselves, killed for their memory, or by a liveness probe.

One that ends by itself shows `terminated` for most of its back-off; the reason CrashLoopBackOff comes late.
One that is killed by a probe shows it at once, and its first restarts need one write each.
"""

from typing import Any

from localcluster.kwok.faithful.lives import (
    CRASH_LOOP,
    INIT,
    INIT_CRASH_LOOP,
    LIVENESS_KILLED,
    MAIN,
    OOM_KILLED,
    SANDBOX,
    is_running,
    is_terminated,
    restarts,
    waiting,
)
from localcluster.kwok.faithful.status import (
    ADDRESS,
    ENDED_AS_LAST,
    HEAD,
    NOT_READY,
    ONE_MORE,
    RUNNING,
    backs_off,
    conditions,
    containers,
    ready,
    terminated,
    unready,
)
from localcluster.kwok.stage import (
    DELETED,
    LIFE,
    PHASE,
    PREFIX,
    absent,
    among,
    annotation,
    faithful_pod,
    not_among,
    present,
)

_CRASHES = {CRASH_LOOP: ("Error", 1), OOM_KILLED: ("OOMKilled", 137)}
_INIT_CRASH = ("Error", 7)
_KILLED = ("Error", 137)
_FREE_KILLS = 3
"""A container that ran for as long as its back-off is restarted at once."""

_LASTS = {"durationMilliseconds": 1000, "durationFrom": annotation("runs-for")}
_RUNNING = [absent(DELETED), among(PHASE, "Running")]
_PENDING = [absent(DELETED), among(PHASE, "Pending")]


def stages() -> list[dict[str, Any]]:
    return [*_crashes(), *_init_crashes(), *_kills()]


def _crashes() -> list[dict[str, Any]]:
    running = [*_RUNNING, present(is_running())]
    return [
        *(
            faithful_pod(f"{life}-ends", [*running, among(LIFE, life)], _crashed(*end), _LASTS)
            for life, end in _CRASHES.items()
        ),
        *_restarts("", [*_RUNNING, among(LIFE, *_CRASHES)], MAIN),
    ]


def _init_crashes() -> list[dict[str, Any]]:
    life = [*_PENDING, among(LIFE, INIT_CRASH_LOOP)]
    begins = [*life, among(waiting(INIT), "PodInitializing"), among(SANDBOX, "True")]
    first = f"{HEAD}{ADDRESS}{containers(RUNNING, '{}', which=INIT, started=True)}\n"
    ended = f"{HEAD}{containers(terminated(*_INIT_CRASH), which=INIT)}\n"
    return [
        faithful_pod("init-runs", begins, first, 140),
        faithful_pod("init-ends", [*life, present(is_running(INIT))], ended, _LASTS),
        *_restarts("init-", life, INIT),
    ]


def _restarts(prefix: str, life: list[Any], which: str) -> list[dict[str, Any]]:
    """The first at once; a later one after a wait that shows its reason for a moment only."""
    ended, first = [*life, present(is_terminated(which))], among(restarts(which), "0")
    later = not_among(restarts(which), "0")
    waited = f"{HEAD}{containers(backs_off(1), ENDED_AS_LAST, which=which)}\n"
    again = [*life, among(waiting(which), "CrashLoopBackOff")]
    return [
        faithful_pod(f"{prefix}restarts-at-once", [*ended, first], _restarted(which), 400),
        faithful_pod(f"{prefix}backs-off", [*ended, later], waited, _wait(which, 1)),
        faithful_pod(f"{prefix}restarts", again, _restarted(which), 130),
    ]


def _kills() -> list[dict[str, Any]]:
    life = [*_RUNNING, among(LIFE, LIVENESS_KILLED)]
    free = [str(count) for count in range(_FREE_KILLS)]
    at_once, later = among(restarts(), *free), not_among(restarts(), *free)
    killed = containers(RUNNING, terminated(*_KILLED), ready=True, started=True, restarts=ONE_MORE)
    waited = f"{conditions(unready(NOT_READY))}\n{containers(backs_off(2), terminated(*_KILLED))}"
    again = [*life, among(waiting(), "CrashLoopBackOff")]
    return [
        faithful_pod("is-restarted", [*life, present(is_running()), at_once], f"{HEAD}{killed}\n", _LASTS),
        faithful_pod("is-held-back", [*life, present(is_running()), later], f"{HEAD}{waited}\n", _LASTS),
        faithful_pod("is-started-again", again, _restarted(MAIN), _wait(MAIN, 2)),
    ]


def _crashed(reason: str, code: int) -> str:
    return f"{HEAD}{conditions(unready(NOT_READY))}\n{containers(terminated(reason, code))}\n"


def _restarted(which: str) -> str:
    """Main containers are Ready with their start; an init container never is before its end."""
    is_main = which == MAIN
    run = containers(RUNNING, ENDED_AS_LAST, which=which, ready=is_main, started=True, restarts=ONE_MORE)
    return f"{HEAD}{conditions(ready()) if is_main else ''}\n{run}\n"


def _wait(which: str, free_restarts: int) -> dict[str, Any]:
    """10 s, twice as long each time, 5 min at most. kubelet's own wait is up to half as long again."""
    doubled = f"pow(2; (.status.{which}[0].restartCount // 1) - {free_restarts})"
    usual = f'(([10 * {doubled}, 300] | min | tostring) + "s")'
    return {"durationFrom": {"expressionFrom": f'.metadata.annotations["{PREFIX}restarts-every"] // {usual}'}}
