"""Settings that no extender can run with are refused by their field."""

import re

import pytest

from extender.server.settings import ExtenderSettings
from reberth.config.settings import parse
from reberth.values.errors import SettingsError

HEADER = "apiVersion: reberth.dev/v1alpha1\nkind: ExtenderSettings\n"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("api: {requestsPerSecond: 0}", "api.requestsPerSecond"),
        ("api: {burst: 0}", "api.burst"),
        ("api: {tries: 0}", "api.tries"),
        ("api: {deadline: -1}", "api.deadline"),
        ("api: {pageSize: 0}", "api.pageSize"),
        ("watch: {silence: 0}", "watch.silence"),
        ("watch: {seconds: 0}", "watch.seconds"),
        ("watch: {firstPause: 0}", "watch.firstPause"),
        ("watch: {longestPause: -1}", "watch.longestPause"),
        ("watch: {settle: -1}", "watch.settle"),
        ("deadline: 0s", "deadline"),
        ("bodyWithin: 0s", "bodyWithin"),
        ("advice: {loss: -1}", "advice.loss"),
        ("advice: {loss: 11}", "advice.loss"),
        ("advice: {lossHalfLife: 0s}", "advice.lossHalfLife"),
        ("server: {keepAlive: 90s}", "server"),
        ("scores: {scores: [{source: a, name: b, weight: 11}]}", "scores.scores[0].weight"),
    ],
)
def test_a_setting_that_nothing_can_run_with_is_refused(text: str, field: str) -> None:
    with pytest.raises(SettingsError, match=rf"^settings: {re.escape(field)} \(line 3\): [^;]*$"):
        parse((HEADER + text).encode(), ExtenderSettings)


def test_the_least_that_is_allowed_is_taken() -> None:
    text = "watch: {settle: 0, longestBurst: 0}\nadvice: {loss: 0}\ndeadline: 1ms\napi: {tries: 1, burst: 1}"
    settings = parse((HEADER + text).encode(), ExtenderSettings)
    assert (settings.watch.settle, settings.advice.loss, settings.deadline) == (0, 0, 0.001)
