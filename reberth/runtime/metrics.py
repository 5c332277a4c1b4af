"""Every metric's name and labels, in one place, in one registry.

A label takes few values, known beforehand: what comes from outside passes `bounded` first. Nothing is ever
counted per node or per pod, since a scrape of 10,000 series holds the event loop for longer than an answer
to the scheduler may take.
"""

from collections.abc import Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector

from reberth.runtime.counters import CounterVec, HistogramVec

# A `_created` series beside every counter would double the scrape and tell nothing.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the package leaves this one without types

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

OTHER = "other"
UNANSWERED = "unanswered"
API_CODES = frozenset(
    map(str, (200, 201, 202, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504)),
) | {UNANSWERED}

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def bounded(value: str, allowed: Collection[str]) -> str:
    """Give the value if it is one of those allowed, else `other`: no label grows without end."""
    return value if value in allowed else OTHER


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(name, text, labels, registry=REGISTRY)


def _gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(name, text, labels, registry=REGISTRY)


def _seconds(name: str, text: str, *labels: str) -> Histogram:
    return Histogram(name, text, labels, registry=REGISTRY, buckets=_SECONDS)


SETTINGS_RELOAD_FAILURES = _counter(
    "reberth_settings_reload_failures_total",
    "Changes of a settings file that were refused; the last good settings stayed.",
    "kind",
)
SETTINGS_LAST_RELOAD_SUCCESS = _gauge(
    "reberth_settings_last_reload_success_timestamp_seconds",
    "When settings were last taken from their file, at the start or by a reload.",
    "kind",
)
SETTINGS_VALID = _gauge(
    "reberth_settings_valid",
    "1 while a settings file holds what is in force, 0 while it is refused.",
    "kind",
)

CERTIFICATE_RELOAD_FAILURES = _counter(
    "reberth_certificate_reload_failures_total",
    "Changes of the server's certificate, key or client CA that were refused; the last good ones stayed.",
    "certificate",
)
CERTIFICATE_LAST_RELOAD_SUCCESS = _gauge(
    "reberth_certificate_last_reload_success_timestamp_seconds",
    "When the server's certificate was last taken from its files, at the start or by a reload.",
    "certificate",
)
CERTIFICATE_VALID = _gauge(
    "reberth_certificate_valid",
    "1 while the certificate's files hold what is served, 0 while they are refused.",
    "certificate",
)

LOGS_DROPPED = _counter(
    "reberth_logs_dropped_total",
    "Log lines that could not be written.",
    "cause",
)

API_REQUESTS = _counter(
    "reberth_api_requests_total",
    "Requests to the API server by their answer's code, or unanswered.",
    "verb",
    "resource",
    "code",
)
API_REQUEST_DURATION = _seconds(
    "reberth_api_request_duration_seconds",
    "Seconds from sending a request to the API server to its whole answer; for a watch, to its first byte.",
    "verb",
    "resource",
)
API_RATE_LIMIT_WAIT = _counter(
    "reberth_api_rate_limit_wait_seconds_total",
    "Seconds that requests have waited for the client's own rate limit.",
)
API_RETRIES = _counter(
    "reberth_api_retries_total",
    "Requests to the API server that were sent again.",
    "verb",
    "resource",
)

WATCH_RESTARTS = _counter(
    "reberth_watch_restarts_total",
    "Watches that had to be opened again.",
    "resource",
    "cause",
)
WATCH_EVENTS = _counter(
    "reberth_watch_events_total",
    "Events received by watches.",
    "resource",
)
WATCH_BAD_OBJECTS = _counter(
    "reberth_watch_bad_objects_total",
    "Objects that could not be read or used, each time they came.",
    "resource",
)
WATCH_OBJECTS = _gauge(
    "reberth_watch_objects",
    "Objects mirrored.",
    "resource",
)
WATCH_STALENESS = _gauge(
    "reberth_watch_staleness_seconds",
    "Seconds since the mirror was last known to be true.",
    "resource",
)
WATCH_SYNCED = _gauge(
    "reberth_watch_synced",
    "1 once the mirror holds the whole resource, else 0.",
    "resource",
)

HTTP_REQUESTS = CounterVec(
    "reberth_http_requests_total",
    "Requests answered, by route and code.",
    ["route", "code"],
    registry=REGISTRY,
)
HTTP_REQUEST_DURATION = HistogramVec(
    "reberth_http_request_duration_seconds",
    "Seconds from a request's head to its answer.",
    ["route"],
    registry=REGISTRY,
    buckets=_SECONDS,
)
