import re
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from reberth.runtime import metrics

OURS = [family for family in metrics.REGISTRY.collect() if not family.name.startswith("process_")]
UNITS = ("_seconds", "_bytes", "_ratio")
# What counts things or answers yes or no has no unit.
UNITLESS = (
    *(
        "_valid",
        "_synced",
        "_connections",
        "_proven",
        "_replicas",
        "_objects",
        "_notes",
        "_scores",
        "_unasked",
        "_depth",
        "_ready",
        "_score",
    ),
    *(
        "_points",
        "_moves",
        "_proposals",
        "_warnings",
        "_nodes",
        "_in_flight",
        "_workloads",
        "_customizations",
        "_disruptions",
        "_refusals",
    ),
    *("_under_way", "_clusters", "_ready_copy", "_running", "_failing", "_storm", "_scripts"),
    *("_on", "_awaiting_restart", "_paused", "_leading", "_applying", "_mode"),
)


@pytest.mark.parametrize("family", OURS, ids=lambda family: family.name)
def test_a_name_keeps_the_rules_of_prometheus(family: Metric) -> None:
    # What Karmada's users know keeps the name that they know.
    assert re.fullmatch(r"reberth(_[a-z]+)+|karmada_scheduler(_[a-z0-9]+)+", family.name)
    assert family.documentation.endswith(".")
    if family.type != "counter":
        assert family.name.endswith(UNITS + UNITLESS)


def test_a_counter_is_exposed_as_a_total_and_nothing_else() -> None:
    exposed = generate_latest(metrics.REGISTRY).decode()
    names = {sample.name for family in text_string_to_metric_families(exposed) for sample in family.samples}
    assert "reberth_api_rate_limit_wait_seconds_total" in names
    assert not [name for name in names if name.endswith("_created")]


def test_the_process_is_measured_too() -> None:
    assert (metrics.REGISTRY.get_sample_value("process_resident_memory_bytes") or 0) > 2**20


@pytest.mark.parametrize(
    ("value", "allowed", "label"),
    [
        ("404", metrics.API_CODES, "404"),
        (metrics.UNANSWERED, metrics.API_CODES, "unanswered"),
        ("418", metrics.API_CODES, "other"),
        ("x" * 1000, metrics.API_CODES, "other"),
    ],
)
def test_a_bounded_label_takes_no_value_from_outside(value: str, allowed: frozenset[str], label: str) -> None:
    assert metrics.bounded(value, allowed) == label


class CountedRegistry(CollectorRegistry):
    """Counts how often its metrics are collected."""

    collected = 0

    def collect(self) -> Iterator[Metric]:
        self.collected += 1
        yield from super().collect()


class Place:
    def __init__(self) -> None:
        self.now = 0.0
        self.registry = CountedRegistry()
        self.counter = Counter("asked", "Asked.", registry=self.registry)
        self.page = metrics.MetricsPage(self.registry, clock=lambda: self.now)

    def ask(self) -> bool:
        """Count something, and tell whether the page shows it."""
        self.counter.inc()
        return f"asked_total {self.counter._value.get()}".encode() in self.page.read()


def test_whoever_asks_now_and_then_gets_the_page_of_the_moment() -> None:
    place = Place()
    for _ in range(1_000):
        assert place.ask()
        place.now += 0.04


def test_a_flood_of_questions_writes_the_page_25_times_a_second() -> None:
    place = Place()
    for _ in range(20_000):
        place.ask()
        place.now += 0.0005
    assert place.registry.collected <= 50 + 25 * 10
    place.now += 0.04
    assert place.ask()
