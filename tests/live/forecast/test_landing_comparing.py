"""The comparison of forecast and scheduler finds every kind of difference. Needs no cluster."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.live.forecast.support.comparison import differences
from tests.live.forecast.support.messages import Histogram, read_message
from tests.live.forecast.support.scheduler_log import LogReader
from tests.live.forecast.support.truth import Recorded, Truth, read, write
from tests.live.forecast.support.version_differences import count_differences
from tests.live.forecast.support.widened import widen
from tests.support.forecast.cases.cases import make_case

FULL, TAINTED = "Insufficient cpu", "node(s) had untolerated taint(s)"
TRUTH = Truth(
    feasible=["a", "b"],
    plugins={"a": {"Fit": 40, "Image": 0}, "b": {"Fit": 50, "Image": 0}},
    extenders={"a": {"http://x/avoid": 0, "http://y": 3}, "b": {"http://x/avoid": 0, "http://y": 3}},
    total={"a": 40, "b": 50},
    bound="b",
    message=None,
    refusals={FULL: 2, TAINTED: 1},
    rejected=None,
)
FORECAST: dict[str, Any] = {
    "state": "pending",
    "feasible": {"a": {"total": 40, "plugins": {"Fit": 40}}, "b": {"total": 50, "plugins": {"Fit": 50}}},
    "refused": {"c": [FULL], "d": [FULL, TAINTED]},
    "best": ["b"],
    "chances": {"b": 1.0},
    "grades": {"avoid": {"a": 0, "b": 0}},
}


def test_the_true_forecast_differs_in_nothing() -> None:
    assert differences(FORECAST, TRUTH) == []


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a node more": (
        lambda it: it["feasible"].update(c={"total": 1, "plugins": {}}),
        "c: feasible in the forecast only",
    ),
    "a node less": (lambda it: it["feasible"].pop("a"), "a: refused in the forecast only: None"),
    "a score": (lambda it: it["feasible"]["a"]["plugins"].update(Fit=41), "a: Fit 40, forecast 41"),
    "a plugin more": (lambda it: it["feasible"]["a"]["plugins"].update(Taint=3), "a: Taint 0, forecast 3"),
    "a plugin less": (lambda it: it["feasible"]["a"]["plugins"].clear(), "a: Fit 40, forecast 0"),
    "a grade": (lambda it: it["grades"]["avoid"].update(b=10), "b: /avoid says 0, forecast 10"),
    "a grade less": (lambda it: it["grades"]["avoid"].pop("b"), "b: /avoid says 0, forecast None"),
    "an answer": (lambda it: it["grades"].update(scores={"a": 5}), "a: /scores says None, forecast 5"),
    "a total": (lambda it: it["feasible"]["b"].update(total=51), "b: total 50, forecast 51"),
    "no total": (lambda it: it["feasible"]["b"].update(total=None), "b: total 50, forecast None"),
    "a reason": (lambda it: it["refused"].update(c=["other"]), f"refused 2 times, forecast 1: {FULL}"),
    "a reason less": (lambda it: it["refused"].update(d=[FULL]), f"refused 1 times, forecast 0: {TAINTED}"),
    "the best": (lambda it: it.update(best=["a"]), "placed on b, forecast ['a']"),
    "its chance": (lambda it: it["chances"].clear(), "placed on b, to which the forecast gives no chance"),
    "no forecast": (lambda it: it.update(unforeseeable="claims"), "cannot be forecast: claims"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_difference_is_reported(what: str) -> None:
    spoil, told = WRONG[what]
    forecast = copy.deepcopy(FORECAST)
    spoil(forecast)
    assert told in differences(forecast, TRUTH)


def test_unknown_refusals_are_not_compared() -> None:
    assert differences(FORECAST, msgspec.structs.replace(TRUTH, refusals=None)) == []


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        ({"a": ["no claim"], "b": ["no claim"]}, []),
        ({"a": ["no claim"], "b": [FULL]}, [f"rejected with 'no claim', forecast {{'b': ['{FULL}']}}"]),
        ({}, ["rejected with 'no claim', forecast no refusal"]),
    ],
)
def test_a_rejection_in_pre_filter_is_the_reason_of_every_node(
    refused: dict[str, list[str]], told: list[str]
) -> None:
    forecast = {"feasible": {}, "refused": refused, "best": [], "chances": {}}
    truth = Truth([], {}, {}, {}, None, "...", {}, "no claim")
    assert differences(forecast, truth) == told


def test_what_two_schedulers_answer_differently_is_counted_once_a_pod() -> None:
    assert count_differences(TRUTH, TRUTH) == {}
    other = msgspec.structs.replace(
        TRUTH,
        feasible=["b"],
        plugins={node: {"Fit": 7, "Image": 0} for node in "ab"},
        refusals={FULL: 2, TAINTED: 2},
        bound="a",
    )
    assert count_differences(TRUTH, other) == {
        "feasible nodes": 1,
        "score: Fit": 1,
        f"refusal: {TAINTED}": 1,
        "choice": 1,
    }
    rejected = msgspec.structs.replace(TRUTH, rejected="no claim")
    assert count_differences(TRUTH, rejected) == {"refusal: before any node is filtered": 1}


_TAIL = " no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(
    ("message", "histogram"),
    [
        (f"0/3 nodes are available: 1 {TAINTED}, 2 {FULL}.{_TAIL}", Histogram({TAINTED: 1, FULL: 2}, None)),
        (f"0/3 nodes are available: 1 {FULL}, 2 left by the filters.{_TAIL}", Histogram({FULL: 1}, None)),
        (
            "0/3 nodes are available: 3 wants: one, and two. preemption: 0/3 nodes are available",
            Histogram({"wants: one, and two": 3}, None),
        ),
        (
            'persistentvolumeclaim "x" not found. not found',
            Histogram({}, 'persistentvolumeclaim "x" not found'),
        ),
    ],
)
def test_a_message_is_read_for_its_reasons(message: str, histogram: Histogram) -> None:
    assert read_message(message) == histogram


def test_a_growing_log_is_read_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('old "Plugin scored node for pod" pod="n/p" plugin="Fit" node="a" score=1\n')
    reader = LogReader(log)
    with log.open("a") as file:
        file.write('I1 x.go:1] "Plugin scored node for pod" pod="n/p" plugin="Fit" node="b" score=-7\n')
        file.write(
            'I1 x.go:1] "Extender scored node for pod" pod="n/p" extender="http://e" node="b" score=3\n'
        )
        file.write('I1 x.go:1] "Add event for node" node="b"\n"Calculated node\'s final score for pod" po')
    reader.read_on()
    with log.open("a") as file:
        file.write('d="n/p" node="b" score=-4\n')
    scored = reader.scored["n/p"]
    assert (scored.plugins, scored.extenders, scored.total) == (
        {"b": {"Fit": -7}},
        {"b": {"http://e": 3}},
        {},
    )
    reader.read_on()
    assert scored.total == {"b": -4}
    assert reader.arrived == {"b"}


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    recorded = Recorded({"kind": "List", "items": []}, "n/p", "1.36", None, TRUTH)
    assert read(write(tmp_path, "one", recorded)) == recorded


def test_a_seed_always_gives_the_same_case() -> None:
    assert make_case(7) == make_case(7)
    assert make_case(7) != make_case(8)
    assert widen(make_case(7)) == widen(make_case(7)) != make_case(7)
