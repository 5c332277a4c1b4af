"""Rates and their limits as they are written in settings."""

import pytest

from reberth.config.settings import parse
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.values.duration import Duration
from reberth.values.errors import SettingsError


@pytest.mark.parametrize(
    ("text", "count", "period"),
    [("10 per 10m", 10, 600.0), ("0 per 1h", 0, 3600.0), ("5 per 1h30m", 5, 5400.0), ("1 per 500ms", 1, 0.5)],
)
def test_a_rate_is_a_number_per_duration(text: str, count: int, period: float) -> None:
    rate = Rate.from_text(text)

    assert rate == Rate((count, period))
    assert (rate.limit, rate.period) == (count, period)
    assert str(rate) == f"{count} per {period:g}s"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "per 10m",
        "10 per",
        "10 per 0s",
        "10 per 10",
        "-1 per 1m",
        "1.5 per 1m",
        "10 per 10m ",
        "10/10m",
    ],
)
def test_an_invalid_rate_is_refused(text: str) -> None:
    assert Rate.from_text(text) is None


def test_limits_are_read_from_settings() -> None:
    content = b"""
        apiVersion: reberth.dev/v1alpha1
        kind: DisruptionLimits
        cluster: [10 per 10m, 50 per 24h]
        workload: [1 per 5m]
        clockSkew: 2s
    """
    assert parse(content, DisruptionLimits) == DisruptionLimits(
        cluster=(Rate((10, 600.0)), Rate((50, 86400.0))), workload=(Rate((1, 300.0)),), clock_skew=Duration(2)
    )


def test_a_bad_rate_in_settings_is_named() -> None:
    content = b"apiVersion: reberth.dev/v1alpha1\nkind: DisruptionLimits\ncluster: [ten per day]\n"

    with pytest.raises(SettingsError, match=r"cluster\[0\].*a rate such as 10 per 10m.*ten per day"):
        parse(content, DisruptionLimits)


def test_an_unknown_limit_in_settings_is_named() -> None:
    content = b"apiVersion: reberth.dev/v1alpha1\nkind: DisruptionLimits\nnode: [1 per 1h]\n"

    with pytest.raises(SettingsError, match="node"):
        parse(content, DisruptionLimits)
