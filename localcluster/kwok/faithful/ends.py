"""How faithful pods end, and what they live through: a reboot of their node, and its absence."""

from typing import Any

from localcluster.kwok.faithful.lives import (
    EVICTED,
    LIVES,
    LOST,
    PROBE,
    REBOOTED,
    RESTART_POLICY,
    SANDBOX,
    STUBBORN,
    UNREADY_REASON,
    is_running,
    is_terminated,
    restarts,
)
from localcluster.kwok.faithful.status import (
    ADDRESS,
    ENDED_AS_LAST,
    HEAD,
    NOT_READY,
    OBSERVED,
    ONE_MORE,
    POD_COMPLETED,
    POD_FAILED,
    RUNNING,
    condition,
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
    absent,
    among,
    annotation,
    faithful_pod,
    not_among,
    present,
)

_EVICTION = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
_LASTS = {"durationMilliseconds": 1000, "durationFrom": annotation("runs-for")}
_UNKNOWN_END = ("Unknown", 255)
_AWAY = "podIP: null\npodIPs: null"


def stages() -> list[dict[str, Any]]:
    return [*_evictions(), *_reboots(), *_returns(), *_deletions()]


def _evictions() -> list[dict[str, Any]]:
    running = [absent(DELETED), among(PHASE, "Running"), among(LIFE, EVICTED)]
    return [faithful_pod("is-evicted", running, _evicted(), _LASTS)]


def _reboots() -> list[dict[str, Any]]:
    """What a kubelet finds after the boot: ended containers without a sandbox. It starts them again, once."""
    life = [absent(DELETED), among(PHASE, "Running"), among(LIFE, REBOOTED)]
    was_up = [*life, present(is_running()), among(restarts(), "0"), absent(UNREADY_REASON)]
    down = [*life, present(is_terminated())]
    up = [*down, among(SANDBOX, "True")]
    sandbox = f"{HEAD}{conditions(condition('PodReadyToStartContainers'))}\n"
    never = among(RESTART_POLICY, "Never")
    failed = f"{_found_down(POD_FAILED)}phase: Failed\n"
    return [
        faithful_pod(
            "is-down", [*was_up, not_among(RESTART_POLICY, "Never")], _found_down(NOT_READY), _LASTS
        ),
        faithful_pod("is-down-for-good", [*was_up, never], failed, _LASTS),
        faithful_pod("has-sandbox-again", [*down, among(SANDBOX, "False")], sandbox, 900),
        faithful_pod("is-up", [*up, absent(PROBE)], _up_again(is_ready=True), 100),
        faithful_pod("is-up-unready", [*up, present(PROBE)], _up_again(is_ready=False), 100),
    ]


def _returns() -> list[dict[str, Any]]:
    """A node that is back says what its pods are, also of those that it is to delete."""
    lost = [among(LIFE, *LIVES), among(PHASE, "Running"), present(LOST)]
    return [faithful_pod("is-back", lost, f"{HEAD}{OBSERVED}\n{conditions(condition('Ready'))}\n", 100)]


def _deletions() -> list[dict[str, Any]]:
    deleted = [present(DELETED), absent(".metadata.finalizers")]
    running = [*deleted, among(PHASE, "Running"), absent(LOST)]
    finished = among(PHASE, "Succeeded", "Failed")
    polite = [each for each in LIVES if each != STUBBORN]
    ends, killed = _over("Succeeded", "Completed", 0), _over("Failed", "Error", 137)
    in_time = {"durationFrom": {"expressionFrom": DELETED}}
    return [
        faithful_pod("ends", [*running, among(LIFE, *polite)], ends, 250),
        faithful_pod("is-killed", [*running, among(LIFE, STUBBORN)], killed, in_time),
        faithful_pod("is-gone", [*deleted, finished, among(LIFE, *LIVES)], None, 130),
        faithful_pod("never-was", [*deleted, among(PHASE, "Pending"), among(LIFE, *LIVES)], None, 20),
    ]


def _evicted() -> str:
    return f"""{HEAD}
phase: Failed
reason: Evicted
message: {_EVICTION!r}
conditions:
{condition("DisruptionTarget", reason="TerminationByKubelet", message=_EVICTION)}
{condition("PodReadyToStartContainers", status=False)}
{unready(POD_FAILED)}
{containers(terminated("Error", 137))}
"""


def _found_down(reason: str) -> str:
    return f"""{HEAD}
{_AWAY}
conditions:
{condition("PodReadyToStartContainers", status=False)}
{unready(reason)}
{containers(terminated(*_UNKNOWN_END))}
"""


def _up_again(*, is_ready: bool) -> str:
    return f"""{HEAD}
{ADDRESS}
{conditions(ready()) if is_ready else ""}
{containers(RUNNING, ENDED_AS_LAST, ready=is_ready, started=True, restarts=ONE_MORE)}
"""


def _over(phase: str, reason: str, code: int) -> str:
    is_success = phase == "Succeeded"
    return f"""{HEAD}
phase: {phase}
{OBSERVED}
conditions:
{condition("PodReadyToStartContainers", status=False)}
{condition("Initialized", reason=POD_COMPLETED) if is_success else ""}
{unready(POD_COMPLETED if is_success else POD_FAILED)}
{containers(terminated(reason, code))}
"""
