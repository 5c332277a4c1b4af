"""The names of the faithful lives, and what of a pod's status their stages look at."""

PLAIN = "faithful"
(
    STUBBORN,
    NEVER_READY,
    REJECTED,
    EVICTED,
    CRASH_LOOP,
    OOM_KILLED,
    LIVENESS_KILLED,
    INIT_CRASH_LOOP,
    IMAGE_PULL_ERROR,
    REBOOTED,
) = (
    f"{PLAIN}-{kind}"
    for kind in (
        "stubborn",
        "never-ready",
        "rejected",
        "evicted",
        "crash-loop",
        "oom-killed",
        "liveness-killed",
        "init-crash-loop",
        "image-pull-error",
        "rebooted",
    )
)
LIVES = (
    PLAIN,
    STUBBORN,
    NEVER_READY,
    REJECTED,
    EVICTED,
    CRASH_LOOP,
    OOM_KILLED,
    LIVENESS_KILLED,
    INIT_CRASH_LOOP,
    IMAGE_PULL_ERROR,
    REBOOTED,
)

MAIN, INIT = "containerStatuses", "initContainerStatuses"


def waiting(which: str = MAIN) -> str:
    return f".status.{which}.[].state.waiting.reason"


def is_running(which: str = MAIN) -> str:
    return f".status.{which}.[].state.running.startedAt"


def is_terminated(which: str = MAIN) -> str:
    return f".status.{which}.[].state.terminated.finishedAt"


def restarts(which: str = MAIN) -> str:
    return f".status.{which}.[0].restartCount | tostring"


CONTAINERS = f".status.{MAIN}"
SANDBOX = '.status.conditions.[] | select(.type == "PodReadyToStartContainers") | .status'
UNREADY_REASON = '.status.conditions.[] | select(.type == "Ready" and .status == "False") | .reason'
# Where a node is lost, its pods are not Ready without a reason: the controllers say so, nobody else does.
LOST = '.status.conditions.[] | select(.type == "Ready" and .status == "False" and .reason == null) | .type'
PROBE = ".spec.containers.[].readinessProbe"
RESTART_POLICY = ".spec.restartPolicy"
