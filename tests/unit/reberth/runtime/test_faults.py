"""Faults that one object meets: what is counted, what is named, and what goes on."""

import logging

import pytest

from reberth.runtime import faults as log_module
from reberth.runtime.faults import FaultLog, handling
from reberth.values.errors import Unreachable
from tests.support.metrics import read_metric


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def noted(log: FaultLog, subjects: list[str]) -> None:
    for subject in subjects:
        log.note("plan", subject, "ValueError (x.py:1)")


def named(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.fields["subject"] for record in caplog.records]  # type: ignore[attr-defined]  # of Log
    caplog.clear()
    return found


def test_ten_objects_of_a_namespace_are_named_in_an_hour_and_all_are_counted(
    faults: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    clock, before = Clock(), read_metric("reberth_faults_total", place="plan")
    log = FaultLog(clock)
    noted(log, [f"shop/web-{number}" for number in range(100)])
    noted(log, ["bank/db-0", "node-1"])
    assert named(caplog) == [*(f"shop/web-{number}" for number in range(10)), "bank/db-0", "node-1"]
    clock.now = 3600.0
    noted(log, ["shop/web-7"])
    assert named(caplog) == ["shop/web-7"]
    assert read_metric("reberth_faults_total", place="plan") - before == len(faults) == 103
    faults.clear()


def test_many_namespaces_do_not_fill_the_log(faults: list[str], caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog(Clock())
    noted(log, [f"ns-{number}/web" for number in range(5_000)])
    assert len(named(caplog)) == 1_000 + 10
    faults.clear()


def test_a_fault_ends_the_handling_of_one_object(
    monkeypatch: pytest.MonkeyPatch, faults: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_module, "FAULTS", FaultLog(Clock()))
    handled = []
    for number in range(3):
        with handling("history", f"shop/web-{number}"):
            if number == 1:
                raise KeyError("uid")
            handled.append(number)
    assert handled == [0, 2]
    assert len(faults) == 1
    assert faults[0].startswith("history shop/web-1: KeyError: 'uid' (test_faults.py:")
    assert caplog.records[0].levelno == logging.ERROR
    assert caplog.records[0].exc_info
    faults.clear()


def test_what_is_expected_is_the_callers() -> None:
    with pytest.raises(Unreachable), handling("history", "shop/web"):
        raise Unreachable("get x", "no connection")
