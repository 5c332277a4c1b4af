"""The extender's metrics; those of HTTP, watches and settings are in `reberth.runtime.metrics`.

A label only takes a few values that are known in advance. No metric has a series per node or pod.
"""

from prometheus_client import Counter, Gauge

from reberth.runtime.counters import CounterVec, HistogramVec
from reberth.runtime.metrics import REGISTRY

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_BYTES = tuple(2.0**power for power in range(10, 25, 2))

REQUESTS = CounterVec(
    "reberth_extender_requests_total",
    "Calls of kube-scheduler, by verb and result.",
    ["verb", "result"],
    registry=REGISTRY,
)
DURATION = HistogramVec(
    "reberth_extender_request_duration_seconds",
    "Seconds from the head of a call to its response.",
    ["verb"],
    registry=REGISTRY,
    buckets=_SECONDS,
)
BODY_BYTES = HistogramVec(
    "reberth_extender_request_body_bytes",
    "Sizes of the calls that could be read.",
    ["verb"],
    registry=REGISTRY,
    buckets=_BYTES,
)
NODES = CounterVec(
    "reberth_extender_nodes_total",
    "Nodes in calls: asked about, avoided, drawn to, refused.",
    ["verb", "said"],
    registry=REGISTRY,
)
NEUTRAL = CounterVec(
    "reberth_extender_neutral_answers_total",
    "Neutral answers, which leave the decision to the scheduler, by cause: cold, stale, deadline, fault.",
    ["verb", "cause"],
    registry=REGISTRY,
)
EXHAUSTED = Counter(
    "reberth_extender_preemptions_exhausted_total",
    "Preemptions without any remaining candidate, by the rule that removed them.",
    ["rule"],
    registry=REGISTRY,
)
OVERRULED = Counter(
    "reberth_extender_preemptions_overruled_total",
    "Preemptions that break a PodDisruptionBudget on every candidate and were allowed.",
    registry=REGISTRY,
)
LAST_ASKED = Gauge(
    "reberth_extender_last_asked_timestamp_seconds",
    "Time of the last call of kube-scheduler; 0 if it never called.",
    ["part"],
    registry=REGISTRY,
)
PLACED_UNASKED = Gauge(
    "reberth_extender_pods_placed_unasked",
    "Pods placed since the last call of kube-scheduler.",
    ["part"],
    registry=REGISTRY,
)
CLOCK_OFFSET = Gauge(
    "reberth_extender_clock_offset_seconds",
    "Seconds that the API server's clock is ahead of this machine's; no decision depends on it.",
    registry=REGISTRY,
)
NOTES = Gauge(
    "reberth_extender_notes",
    "Notes on nodes, valid and expired.",
    ["state"],
    registry=REGISTRY,
)
SCORES = Gauge(
    "reberth_extender_scores",
    "Scores of add-ons, valid and expired.",
    ["state"],
    registry=REGISTRY,
)
