"""What holds for all tests."""

import asyncio

from hypothesis import HealthCheck, settings

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
