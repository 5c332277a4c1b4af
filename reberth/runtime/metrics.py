"""The names and labels of all metrics, in one registry.

A label only takes a few values that are known in advance: external values pass through `bounded` first. No
metric has a series per node or pod, since a scrape of 10,000 series blocks the event loop for longer than a
response to the scheduler may take.
"""

import time
from collections.abc import Callable, Collection

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.process_collector import ProcessCollector

from reberth.runtime.counters import CounterVec, HistogramVec
from reberth.values.token_bucket import TokenBucket

# A `_created` series beside every counter would double the size of a scrape without use.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the package leaves this one without types

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

OTHER = "other"
UNANSWERED = "unanswered"
API_CODES = frozenset(
    map(str, (200, 201, 202, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504)),
) | {UNANSWERED}

_PAGES_PER_SECOND, _PAGES_AT_ONCE = 25.0, 50
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class MetricsPage:
    """All metrics, written anew for each question, unless there are many.

    It takes milliseconds of the event loop, and whoever reaches the port may ask: a flood of questions gets
    the page of a moment before.
    """

    def __init__(self, registry: CollectorRegistry, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._bucket = TokenBucket(_PAGES_AT_ONCE, now=clock())
        self._page = b""

    def read(self) -> bytes:
        """Give the page, which is at most 40 ms old."""
        self._bucket.fill(self._clock(), rate=_PAGES_PER_SECOND)
        if self._bucket.tokens >= 1 or not self._page:
            self._bucket.tokens -= 1
            self._page = generate_latest(self._registry)
        return self._page


def bounded(value: str, allowed: Collection[str]) -> str:
    """Give the value if it is allowed, else `other`, so that a label cannot grow without limit."""
    return value if value in allowed else OTHER


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(name, text, labels, registry=REGISTRY)


def _gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(name, text, labels, registry=REGISTRY)


def _seconds(name: str, text: str, *labels: str) -> Histogram:
    return Histogram(name, text, labels, registry=REGISTRY, buckets=_SECONDS)


SETTINGS_RELOAD_FAILURES = _counter(
    "reberth_settings_reload_failures_total",
    "Reloads of a settings file that failed because it is invalid; the last valid settings stay in use.",
    "kind",
)
SETTINGS_LAST_RELOAD_SUCCESS = _gauge(
    "reberth_settings_last_reload_success_timestamp_seconds",
    "Time when the settings were last loaded from their file, at the start or by a reload.",
    "kind",
)
SETTINGS_VALID = _gauge(
    "reberth_settings_valid",
    "1 while the settings file is valid and in use, 0 while it is refused.",
    "kind",
)
SETTINGS_AWAITING_RESTART = _gauge(
    "reberth_settings_awaiting_restart",
    "Fields of the settings file that have changed since the start and are used only after a restart.",
    "kind",
)

FAULTS = _counter(
    "reberth_faults_total",
    "Objects that were left out because of a defect of Reberth that they meet.",
    "place",
)

CERTIFICATE_RELOAD_FAILURES = _counter(
    "reberth_certificate_reload_failures_total",
    "Reloads of the server's certificate, key or client CA that failed; the last valid ones stay in use.",
    "certificate",
)
CERTIFICATE_LAST_RELOAD_SUCCESS = _gauge(
    "reberth_certificate_last_reload_success_timestamp_seconds",
    "Time when the server's certificate was last loaded from its files, at the start or by a reload.",
    "certificate",
)
CERTIFICATE_VALID = _gauge(
    "reberth_certificate_valid",
    "1 while the certificate's files are valid and in use, 0 while they are refused.",
    "certificate",
)

CERTIFICATE_NOT_AFTER = _gauge(
    "reberth_certificate_not_after_seconds",
    "When a certificate ends, as a Unix time; shown are those that clients have shown, by their name.",
    "certificate",
    "use",
)

LOGS_DROPPED = _counter(
    "reberth_logs_dropped_total",
    "Log lines that could not be written.",
    "cause",
)

EVENT_LOOP_LAG = _seconds(
    "reberth_event_loop_lag_seconds",
    "Seconds that the event loop was late with what was due; sampled ten times a second.",
)

API_REQUESTS = _counter(
    "reberth_api_requests_total",
    "Requests to the API server, by status code or unanswered.",
    "verb",
    "resource",
    "code",
)
API_REQUEST_DURATION = _seconds(
    "reberth_api_request_duration_seconds",
    "Seconds from an API request to the end of its response; for a watch, to the first byte.",
    "verb",
    "resource",
)
API_RATE_LIMIT_WAIT = _counter(
    "reberth_api_rate_limit_wait_seconds_total",
    "Seconds that requests have waited for the client-side rate limit.",
)
API_RETRIES = _counter(
    "reberth_api_retries_total",
    "Retried requests to the API server.",
    "verb",
    "resource",
)

WATCH_RESTARTS = _counter(
    "reberth_watch_restarts_total",
    "Watches that were restarted, by cause.",
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
    "Objects received that cannot be read or used.",
    "resource",
)
WATCH_CUT_OBJECTS = _counter(
    "reberth_watch_cut_objects_total",
    "Objects received that are too large, or whose namespace has too many large ones: only a part is held.",
    "resource",
)
WATCH_OBJECTS = _gauge(
    "reberth_watch_objects",
    "Objects in the cache.",
    "resource",
    "server",
)
WATCH_STALENESS = _gauge(
    "reberth_watch_staleness_seconds",
    "Seconds since the API server last confirmed the cache.",
    "resource",
    "server",
)
WATCH_SYNCED = _gauge(
    "reberth_watch_synced",
    "1 once the cache has synced, else 0.",
    "resource",
    "server",
)

HTTP_CONNECTIONS = _gauge(
    "reberth_http_connections",
    "Open connections of clients; authenticated are those that have shown a valid certificate.",
    "kind",
)
HTTP_CONNECTIONS_DROPPED = _counter(
    "reberth_http_connections_dropped_total",
    "Connections dropped: silent, head (of a request, too slow), crowded (others needed the room).",
    "reason",
)
HTTP_HANDSHAKES_FAILED = _counter(
    "reberth_http_handshakes_failed_total",
    "TLS handshakes that were refused, or that the client did not complete in time.",
    "reason",
)
HTTP_BAD_REQUESTS = _counter(
    "reberth_http_bad_requests_total",
    "Requests that were refused because they are not valid HTTP.",
)
HTTP_REQUESTS = CounterVec(
    "reberth_http_requests_total",
    "HTTP requests answered, by route and status code.",
    ["route", "code"],
    registry=REGISTRY,
)
HTTP_REQUEST_DURATION = HistogramVec(
    "reberth_http_request_duration_seconds",
    "Seconds from the head of an HTTP request to its response.",
    ["route"],
    registry=REGISTRY,
    buckets=_SECONDS,
)
