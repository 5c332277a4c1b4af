import asyncio
import time

from reberth.runtime.loop_lag import measure_lag
from tests.support.metrics import read_metric

LAG = "reberth_event_loop_lag_seconds"


async def test_an_event_loop_that_computes_is_late_by_as_much() -> None:
    before = read_metric(f"{LAG}_sum"), read_metric(f"{LAG}_count")
    measuring = asyncio.create_task(measure_lag())
    await asyncio.sleep(0.05)
    time.sleep(0.35)  # it computes
    await asyncio.sleep(0.05)
    measuring.cancel()
    late, times = read_metric(f"{LAG}_sum") - before[0], read_metric(f"{LAG}_count") - before[1]
    assert times == 1
    assert 0.29 < late < 5.0
