"""Rates and their limits as they are written in settings."""

import pytest

from reberth.config.settings import parse
from reberth.memory.rates import DisruptionLimits, Rate, resolve_limits
from reberth.values.duration import Duration
from reberth.values.errors import SettingsError
from reberth.values.pod_limit import PodLimit


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
        "5%",
        "5% per",
        "101% per 10m",
        "5 % per 10m",
        "5% min 1 10m",
        "5% min one per 10m",
        "5% per 0s",
        "1000000000 per 10m",
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


@pytest.mark.parametrize(
    ("text", "pods", "limit"),
    [
        ("5% per 10m", 0, 0),
        ("5% per 10m", 19, 0),
        ("5% per 10m", 137, 6),
        ("100% per 24h", 3, 3),
        ("10% min 1 per 1h", 3, 1),
        ("0.5% per 10m", 137_500, 687),
    ],
)
def test_a_rate_may_be_a_percentage_of_pods(text: str, pods: int, limit: int) -> None:
    rate = Rate.from_text(text)
    assert rate is not None
    counted = rate.among(lambda: pods)
    share = text.partition(" per ")[0]
    assert (counted.limit, counted.period, counted.name) == (limit, rate.period, rate.name)
    waiting = "" if limit else ", however long one waits"
    assert str(counted) == f"{share} per {rate.period:g}s ({limit} of {pods} pods{waiting})"
    assert str(rate) == rate.name == f"{share} per {rate.period:g}s"


def test_a_percentage_that_nobody_has_counted_out_allows_its_minimum_only() -> None:
    assert Rate((PodLimit(0, 50_000), 60.0)).limit == 0
    assert Rate((PodLimit(2, 50_000), 60.0)).limit == 2


def read_limits(**rates: list[str]) -> DisruptionLimits:
    lines = "".join(f"{scope}: {texts}\n" for scope, texts in rates.items())
    return parse(
        f"apiVersion: reberth.dev/v1alpha1\nkind: DisruptionLimits\n{lines}".encode(), DisruptionLimits
    )


def test_percentages_are_of_the_pods_of_their_scope() -> None:
    limits = read_limits(
        cluster=["5% per 10m", "50 per 24h"], namespace=["10% per 1h"], workload=["50% per 1h"]
    )
    found = resolve_limits(limits, cluster=lambda: 200, namespace=lambda: 60, workload=lambda: 5)
    assert [rate.limit for rate in (*found.cluster, *found.namespace, *found.workload)] == [10, 50, 6, 2]
    assert found.clock_skew == limits.clock_skew


def test_pods_are_counted_only_for_the_scopes_with_a_percentage() -> None:
    counted: list[str] = []

    def count(scope: str) -> int:
        counted.append(scope)
        return 100

    scopes = {scope: (lambda scope=scope: count(scope)) for scope in ("cluster", "namespace", "workload")}
    whole = read_limits(cluster=["10 per 10m"], workload=["1 per 1h"])
    assert resolve_limits(whole, **scopes) is whole
    assert counted == []
    resolve_limits(read_limits(cluster=["5 per 1h"], namespace=["5% per 1h", "9 per 1h"]), **scopes)
    assert counted == ["namespace"]


def test_a_bad_percentage_in_settings_is_named() -> None:
    with pytest.raises(SettingsError, match=r"workload\[1\].*5% min 1 per 10m.*found .120% per 1h"):
        read_limits(workload=["5% per 1h", "120% per 1h"])
