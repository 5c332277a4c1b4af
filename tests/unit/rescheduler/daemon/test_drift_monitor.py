"""Agreement with the running scheduler is that of the current model."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from reberth.cluster.cache import ADDED, Cache
from reberth.cluster.kinds import NODE, POD
from reberth.records import Node, Pod
from reberth.runtime.metrics import REGISTRY
from rescheduler.daemon.drift_monitor import DriftMonitor
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.drift import DriftSettings
from tests.support.builders import as_record, node, owner, pod
from tests.support.rescheduler.plans import NOW, PLAIN_MODEL

SETTINGS = DriftSettings(fewest=1)


class Bindings:
    """A pod that is bound again and again; the forecast expects it on the empty one of two nodes."""

    def __init__(self) -> None:
        self.model = PLAIN_MODEL
        self.while_judged: Callable[[], None] = lambda: None
        self._cache = Cache(version=(1, 36))
        full = pod("full", node="full", cpu="4", owned_by=owner("ReplicaSet", "full"))
        waiting = pod("web", uid="u-web", cpu="100m", owned_by=owner("ReplicaSet", "web"))
        objects = [
            (NODE, Node, node("empty")),
            (NODE, Node, node("full")),
            (POD, Pod, full),
            (POD, Pod, waiting),
        ]
        for version, (kind, record, content) in enumerate(objects, start=1):
            known = {"uid": f"u-{version}", **content["metadata"]}
            content["metadata"] = {**known, "resourceVersion": str(version)}
            self._cache.apply(kind, ADDED, as_record(record, content))
        self.monitor = DriftMonitor(
            self._cache,
            model=lambda: self.model,
            settings=lambda: SETTINGS,
            clock=lambda: NOW,
            offload=self._judge,
        )

    async def _judge(self, work: Callable[[], Any]) -> Any:
        judged = work()
        self.while_judged()
        return judged

    async def bind(self, to: str) -> None:
        row = self._cache.of(POD).by_uid("u-web")
        assert row is not None
        self.monitor.note(row, to)
        running = asyncio.create_task(self.monitor.run())
        for _ in range(20):
            await asyncio.sleep(0)
        running.cancel()


def another() -> SchedulerModel:
    return SchedulerModel(PLAIN_MODEL.version, PLAIN_MODEL.scheduler)


@pytest.fixture
def bindings() -> Bindings:
    return Bindings()


async def test_what_an_earlier_model_expected_is_forgotten_with_it(bindings: Bindings) -> None:
    await bindings.bind("full")
    drift = bindings.monitor.find_drift()
    assert drift is not None
    assert drift.rule == "SchedulerDrift"
    bindings.model = another()
    assert bindings.monitor.find_drift() is None
    await bindings.bind("full")
    assert bindings.monitor.find_drift() is not None


async def test_a_binding_that_the_earlier_model_judges_does_not_count_for_the_next_one(
    bindings: Bindings,
) -> None:
    def change() -> None:
        bindings.model = another()

    bindings.while_judged = change
    await bindings.bind("full")
    assert bindings.monitor.find_drift() is None
    assert bindings.monitor.agreement.share is None


def read_gauge() -> float:
    share = REGISTRY.get_sample_value("reberth_rescheduler_scheduler_agreement_ratio")
    assert share is not None
    return share


async def test_the_gauge_says_nothing_until_the_current_model_was_compared(bindings: Bindings) -> None:
    await bindings.bind("full")
    assert read_gauge() == 0
    bindings.model = another()
    assert bindings.monitor.find_drift() is None
    assert math.isnan(read_gauge())
    await bindings.bind("empty")
    assert read_gauge() == 1


async def test_a_comparison_with_an_earlier_model_does_not_set_the_gauge(bindings: Bindings) -> None:
    def change() -> None:
        bindings.model = another()
        assert bindings.monitor.find_drift() is None

    bindings.while_judged = change
    await bindings.bind("full")
    assert math.isnan(read_gauge())


async def test_a_binding_as_forecast_is_a_hit(bindings: Bindings) -> None:
    await bindings.bind("empty")
    assert bindings.monitor.agreement.share == 1
