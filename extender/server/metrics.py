"""The extender's metrics; beside them stand those of the library for HTTP, watches and settings.

A label takes few values, known beforehand. Nothing is counted per node or per pod.
"""

from prometheus_client import Counter, Gauge

from reberth.runtime.counters import CounterVec, HistogramVec
from reberth.runtime.metrics import REGISTRY

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_BYTES = tuple(2.0**power for power in range(10, 25, 2))

REQUESTS = CounterVec(
    "reberth_extender_requests_total",
    "Calls of kube-scheduler by result.",
    ["verb", "result"],
    registry=REGISTRY,
)
DURATION = HistogramVec(
    "reberth_extender_request_duration_seconds",
    "Seconds from a call's head to its answer.",
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
    "Neutral answers, which leave everything to the scheduler, by cause: cold, stale, deadline, fault.",
    ["verb", "cause"],
    registry=REGISTRY,
)
EXHAUSTED = Counter(
    "reberth_extender_preemptions_exhausted_total",
    "Preemptions for which no candidate was left, by the rule that removed them.",
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
    "When kube-scheduler called last; 0 if it never did.",
    ["part"],
    registry=REGISTRY,
)
PLACED_UNASKED = Gauge(
    "reberth_extender_pods_placed_unasked",
    "Pods that were placed since kube-scheduler called last.",
    ["part"],
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
