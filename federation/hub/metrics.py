"""Metrics of the controllers."""

from contextlib import AbstractContextManager, suppress

from prometheus_client import Counter, Gauge, Histogram

from federation.scheduling.outcome import Step
from reberth.runtime.metrics import REGISTRY

# Values of the label `event`, as in Karmada: why a binding is in the scheduler's queue.
BINDING_ADD, BINDING_UPDATE = "BindingAdd", "BindingUpdate"
CLUSTER_CHANGED, ATTEMPT_FAILED = "ClusterChanged", "ScheduleAttemptFailure"
_SECONDS = tuple(0.001 * 2**power for power in range(15))

QUEUE_DEPTH = Gauge(
    "reberth_federation_queue_depth",
    "Objects that wait for a controller or are being reconciled by it.",
    ("controller",),
    registry=REGISTRY,
)
RECONCILED = Counter(
    "reberth_federation_reconcile_total",
    "Reconciliations of objects, by controller and result.",
    ("controller", "result"),
    registry=REGISTRY,
)
SCHEDULE_ATTEMPTS = Counter(
    "karmada_scheduler_schedule_attempts_total",
    "Attempts to schedule a binding, by result.",
    ("result", "schedule_type"),
    registry=REGISTRY,
)
SCHEDULING_DURATION = Histogram(
    "karmada_scheduler_e2e_scheduling_duration_seconds",
    "Seconds from taking a binding off the queue to writing its decision.",
    ("result", "schedule_type"),
    registry=REGISTRY,
    buckets=_SECONDS,
)
ALGORITHM_DURATION = Histogram(
    "karmada_scheduler_scheduling_algorithm_duration_seconds",
    "Seconds that the steps of a decision take.",
    ("schedule_step",),
    registry=REGISTRY,
    buckets=_SECONDS,
)
QUEUE_INCOMING = Counter(
    "karmada_scheduler_queue_incoming_bindings_total",
    "Bindings added to the scheduling queue, by event.",
    ("event",),
    registry=REGISTRY,
)
MEMBERS_READY = Gauge(
    "reberth_federation_members_ready",
    "Member clusters whose condition Ready is true.",
    registry=REGISTRY,
)
LOSS_BRAKE = Gauge(
    "reberth_federation_loss_brake_on",
    "1 while so many members seem to be lost that nobody is driven out of any.",
    registry=REGISTRY,
)
KARMADA_RUNNING = Gauge(
    "reberth_federation_karmada_running",
    "1 while this controller of Karmada renews its lease on the hub: it writes the same objects.",
    ("lease",),
    registry=REGISTRY,
)
TOKEN_ISSUED = Gauge(
    "reberth_federation_member_token_issued_seconds",
    "When the token of a member was issued, in seconds since the epoch; 0 if it never expires.",
    ("member",),
    registry=REGISTRY,
)


def forget_token(cluster: str) -> None:
    with suppress(KeyError):
        TOKEN_ISSUED.remove(cluster)


_STEPS = {step: ALGORITHM_DURATION.labels(str(step)) for step in Step}


def time_step(step: Step) -> AbstractContextManager[object]:
    """Return a context manager that times a step."""
    return _STEPS[step].time()
