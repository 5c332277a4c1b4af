"""Hypothesis and logging settings for all tests."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from reberth.runtime.log_writer import LineWriter

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
