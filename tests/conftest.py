"""Hypothesis and logging settings for all tests."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from reberth.runtime.faults import FaultLog
from reberth.runtime.log_writer import LineWriter
from reberth.values import refusal

# The same examples in every run, and no clock in the verdict: what fails fails everywhere.
settings.register_profile(
    "reberth",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("reberth")

# Without this, asking for a loop between tests makes one that nobody closes, and its ResourceWarning is an
# error in whichever test the garbage collector runs.
asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Take back what a command's `main` has set up for its process: the next test listens to logs, too."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    for handler in [each for each in root.handlers if isinstance(each, LineWriter)]:
        root.removeHandler(handler)
        handler.close()


@pytest.fixture
def no_logs() -> Iterator[None]:
    """Pytest keeps all that is logged within a test: in a long one that would be its memory."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def faults() -> list[str]:
    """The defects of ours that were taken for one object's: a test that expects one empties the list."""
    return []


@pytest.fixture(autouse=True)
def no_other_faults(faults: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fault that a test did not expect is red: what is left out quietly would hide our own defects."""
    describe, note = refusal.describe_fault, FaultLog.note

    def see(error: Exception) -> str:
        faults.append(describe(error))
        return faults[-1]

    def see_noted(log: FaultLog, place: str, subject: str, reason: str, **rest: Exception) -> None:
        faults.append(f"{place} {subject}: {reason}")
        note(log, place, subject, reason, **rest)

    monkeypatch.setattr(refusal, "describe_fault", see)
    monkeypatch.setattr(FaultLog, "note", see_noted)
    yield
    assert not faults
