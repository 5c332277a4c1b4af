"""Our counters expose the same text as prometheus_client's."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from reberth.runtime.counters import CounterVec, HistogramVec

BOUNDS = (0.5, 1.0, 2.5)


def scrape(registry: CollectorRegistry) -> list[str]:
    return sorted(generate_latest(registry).decode().splitlines())


def test_counts_and_spreads_are_scraped_as_those_of_prometheus_client() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counts = CounterVec("calls_total", "Calls.", ["verb", "result"], registry=ours)
    counter = Counter("calls_total", "Calls.", ["verb", "result"], registry=theirs)
    spreads = HistogramVec("seconds", "Seconds.", ["verb"], registry=ours, buckets=BOUNDS)
    histogram = Histogram("seconds", "Seconds.", ["verb"], registry=theirs, buckets=BOUNDS)
    for one in (counts, counter):
        one.labels("filter", "answered").inc()
        one.labels("filter", "answered").inc(2.5)
        one.labels("scores", 'odd "text"').inc()
    for each in (spreads, histogram):
        for seconds in (0.0, 0.5, 0.7, 1.0, 2.0, 3.0):
            each.labels("filter").observe(seconds)
        each.labels("scores").observe(9)
    assert scrape(ours) == scrape(theirs)


def test_a_metric_never_counted_is_scraped_without_samples() -> None:
    registry = CollectorRegistry()
    CounterVec("calls_total", "Calls.", ["verb"], registry=registry)
    HistogramVec("seconds", "Seconds.", ["verb"], registry=registry, buckets=BOUNDS)
    assert [
        line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")
    ] == []


def test_a_name_is_registered_once() -> None:
    registry = CollectorRegistry()
    CounterVec("calls_total", "Calls.", ["verb"], registry=registry)
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        Counter("calls_total", "Calls.", registry=registry)
