"""How faithful pods start, and how some of them never do."""

from typing import Any

from localcluster.kwok.faithful.lives import (
    CONTAINERS,
    IMAGE_PULL_ERROR,
    INIT,
    INIT_CRASH_LOOP,
    LIVES,
    NEVER_READY,
    PROBE,
    REJECTED,
    SANDBOX,
    UNREADY_REASON,
    is_running,
    waiting,
)
from localcluster.kwok.faithful.status import (
    ADDRESS,
    HEAD,
    NOT_READY,
    OBSERVED,
    RUNNING,
    condition,
    conditions,
    containers,
    new_containers,
    ready,
    uninitialized,
    unready,
    waits,
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

_HOST = "192.0.2.254"  # kwok's nodes have no addresses
_REJECTION = (
    "Pod was rejected: Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000"
)
_PULL_ERROR = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "%s": '
    "failed to resolve image: %s: not found"
)
_PENDING = [absent(DELETED), among(PHASE, "Pending")]
_BEGUN = {"durationMilliseconds": 100, "durationFrom": annotation("starts-after")}
_AGAIN = {"durationMilliseconds": 10_000, "durationFrom": annotation("restarts-every")}


def stages() -> list[dict[str, Any]]:
    return [*_creations(), *_first_runs(), *_pulls()]


def _creations() -> list[dict[str, Any]]:
    fresh = [*_PENDING, absent(CONTAINERS)]
    made = not_among(LIFE, REJECTED, INIT_CRASH_LOOP)
    sandboxed = f"{HEAD}\n{conditions(condition('PodReadyToStartContainers'))}\n"
    begins = [among(LIFE, *LIVES), among(waiting(), "ContainerCreating", "PodInitializing")]
    return [
        faithful_pod("creates", [*fresh, among(LIFE, *LIVES), made], _created(), 20),
        faithful_pod("creates-init", [*fresh, among(LIFE, INIT_CRASH_LOOP)], _created(init=True), 20),
        faithful_pod("has-sandbox", [*_PENDING, *begins, among(SANDBOX, "False")], sandboxed, 400),
        faithful_pod(
            "is-rejected", [*_PENDING, among(LIFE, REJECTED), absent(".status.reason")], _rejected(), 20
        ),
    ]


def _first_runs() -> list[dict[str, Any]]:
    """With a readiness probe, Ready is a write of its own."""
    creating = [*_PENDING, among(waiting(), "ContainerCreating"), among(SANDBOX, "True")]
    usual = [*creating, among(LIFE, *LIVES), not_among(LIFE, NEVER_READY, IMAGE_PULL_ERROR)]
    probed = [absent(DELETED), among(PHASE, "Running"), present(PROBE), present(is_running())]
    unready_yet = [among(LIFE, *LIVES), not_among(LIFE, NEVER_READY), among(UNREADY_REASON, NOT_READY)]
    becomes = f"{HEAD}{conditions(ready())}\n{containers(_SAME_RUN, ready=True, started=True)}\n"
    return [
        faithful_pod("runs", [*usual, absent(PROBE)], _running(is_ready=True), _BEGUN),
        faithful_pod("runs-unready", [*usual, present(PROBE)], _running(is_ready=False), _BEGUN),
        faithful_pod("hangs", [*creating, among(LIFE, NEVER_READY)], _running(is_ready=False), _BEGUN),
        faithful_pod("becomes-ready", [*probed, *unready_yet], becomes, 50),
    ]


_SAME_RUN = "{running: {{ .state.running | toJson }}}"


def _pulls() -> list[dict[str, Any]]:
    """The reason changes at each try, and in the middle between two tries."""
    pulling = [*_PENDING, among(LIFE, IMAGE_PULL_ERROR)]
    error = f'(printf "{_PULL_ERROR.replace(chr(34), chr(92) + chr(34))}" .image .image)'
    back_off = f'(printf "Back-off pulling image \\"%s\\": ErrImagePull: %s" .image {error})'
    first = [*pulling, among(waiting(), "ContainerCreating"), among(SANDBOX, "True")]
    refused = f"{containers(waits('ErrImagePull', error), created=False)}\n"
    waits_for_next = f"{containers(waits('ImagePullBackOff', back_off), created=False)}\n"
    return [
        faithful_pod("cannot-pull", first, ADDRESS + refused, 700),
        faithful_pod("pull-backs-off", [*pulling, among(waiting(), "ErrImagePull")], waits_for_next, _AGAIN),
        faithful_pod("pulls-again", [*pulling, among(waiting(), "ImagePullBackOff")], refused, _AGAIN),
    ]


def _created(*, init: bool = False) -> str:
    main = new_containers("PodInitializing" if init else "ContainerCreating")
    return f"""{HEAD}
{OBSERVED}
startTime: {{{{ $now | Quote }}}}
hostIP: {_HOST}
hostIPs: [{{ip: {_HOST}}}]
conditions:
{condition("PodReadyToStartContainers", status=False)}
{uninitialized() if init else condition("Initialized")}
{unready(NOT_READY)}
{condition("PodScheduled")}
{new_containers("PodInitializing", INIT) if init else ""}
{main}
"""


def _running(*, is_ready: bool) -> str:
    return f"""{HEAD}
phase: Running
{ADDRESS}
{conditions(ready()) if is_ready else ""}
{containers(RUNNING, "{}", ready=is_ready, started=True)}
"""


def _rejected() -> str:
    return f"""{HEAD}
{OBSERVED}
phase: Failed
reason: OutOfcpu
message: "{_REJECTION}"
startTime: {{{{ $now | Quote }}}}
"""
