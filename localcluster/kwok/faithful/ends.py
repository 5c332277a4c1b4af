"""How faithful pods end."""

from typing import Any

from localcluster.kwok.faithful.lives import (
    EVICTED,
    LIVES,
    STUBBORN,
)
from localcluster.kwok.faithful.status import (
    HEAD,
    OBSERVED,
    POD_COMPLETED,
    POD_FAILED,
    condition,
    containers,
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
    present,
)

_EVICTION = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
_LASTS = {"durationMilliseconds": 1000, "durationFrom": annotation("runs-for")}


def stages() -> list[dict[str, Any]]:
    return [*_evictions(), *_deletions()]


def _evictions() -> list[dict[str, Any]]:
    running = [absent(DELETED), among(PHASE, "Running"), among(LIFE, EVICTED)]
    return [faithful_pod("is-evicted", running, _evicted(), _LASTS)]


def _deletions() -> list[dict[str, Any]]:
    deleted = [present(DELETED), absent(".metadata.finalizers")]
    running = [*deleted, among(PHASE, "Running")]
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
