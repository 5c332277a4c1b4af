"""Which versions of Kubernetes the forecast was proven on."""

import pytest

from localcluster.build.products import KUBERNETES_VERSIONS
from reberth.cluster.pods.requests import NEWEST, read_version
from reberth.forecast.state.proven_versions import (
    FORECAST,
    PROVEN,
    RESULTS,
    ProofResult,
    describe_unproven,
    find_proven,
)

ALL = ProofResult(500, 500, "2026-11-20")


@pytest.mark.parametrize(
    ("results", "proven"),
    [
        ({}, ()),
        ({"1.36.3": {FORECAST: ALL}, "1.9.0": {FORECAST: ALL}}, ((1, 9), (1, 36))),
        ({"1.36.3": {FORECAST: ALL}, "1.36.4": {FORECAST: ALL}}, ((1, 36),)),
        ({"1.36.3": {FORECAST: ProofResult(499, 500, "")}}, ()),
        ({"1.36.3": {FORECAST: ProofResult(0, 0, "")}}, ()),
        ({"1.36.3": {"live tests": ALL}}, ()),
    ],
)
def test_a_version_is_proven_once_all_rounds_of_its_forecast_passed(
    results: dict[str, dict[str, ProofResult]], proven: tuple[tuple[int, int], ...]
) -> None:
    assert find_proven(results) == proven


def test_what_is_built_here_is_what_was_proven() -> None:
    assert RESULTS.keys() == set(KUBERNETES_VERSIONS)
    assert {read_version(each) for each in KUBERNETES_VERSIONS} == set(PROVEN)
    assert PROVEN[-1] == NEWEST


def test_a_version_that_nobody_proved_is_told() -> None:
    assert describe_unproven((1, 37)) is None
    said = "forecasts are not proven for Kubernetes 1.40, only for 1.35, 1.36 and 1.37"
    assert describe_unproven((1, 40)) == said
