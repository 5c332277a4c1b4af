"""Compares the running scheduler with the forecast: for a few pods a minute, when they are bound."""

import asyncio
from collections.abc import Callable
from functools import partial
from math import nan
from typing import NoReturn

from reberth.cluster.cache import Cache, Contents
from reberth.cluster.rows import PodRow
from reberth.cluster.snapshot import build
from reberth.runtime.logs import Log
from reberth.runtime.worker_thread import Offload
from reberth.values.refusal import Refused
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.drift import Binding, DriftSettings, HitRate, Sampler, judge_binding
from rescheduler.telemetry import metrics

_MOST_WAITING = 20

log = Log(__name__)


class DriftMonitor:
    """Compares one binding after the other; bindings that come while too many wait are skipped."""

    def __init__(
        self, cache: Cache, *, model: Callable[[], SchedulerModel], settings: Callable[[], DriftSettings],
        clock: Callable[[], float],
        offload: Offload,
    ) -> None:  # fmt: skip
        self._cache = cache
        self._model = model
        self._judged_by = model()
        self._agreement = HitRate()
        self._settings = settings
        self._clock = clock
        self._offload = offload
        self._sampler = Sampler()
        self._waiting: asyncio.Queue[tuple[Binding, Contents]] = asyncio.Queue(_MOST_WAITING)

    @property
    def agreement(self) -> HitRate:
        """How the last bindings agreed with the current model; what an earlier one expected says nothing."""
        model = self._model()
        if model is not self._judged_by:
            self._judged_by, self._agreement = model, HitRate()
            metrics.AGREEMENT.set(nan)
        return self._agreement

    def note(self, pod: PodRow, node: str) -> None:
        """Keep the state of the cluster right before a binding, if this binding is to be compared."""
        now = self._clock()
        if self._waiting.full() or not self._sampler.admit(now, self._settings().per_minute):
            return
        self._waiting.put_nowait((Binding(pod.uid, node, pod.namespace), self._cache.contents()))

    def find_drift(self) -> Refused | None:
        return self.agreement.find_drift(self._settings())

    async def run(self) -> NoReturn:
        while True:
            binding, contents = await self._waiting.get()
            before, agreement = self.find_drift(), self.agreement
            self._enter(await self._judge(binding, contents), agreement, binding.namespace)
            if (self.find_drift() is None) != (before is None):
                self._log_change(self.find_drift())

    async def _judge(self, binding: Binding, contents: Contents) -> bool | None:
        now = self._clock()
        try:
            return await self._offload(partial(_judge, binding, contents, self._judged_by, now))
        except Exception:
            log.exception("binding not compared", uid=binding.uid)
            return None

    def _enter(self, agreed: bool | None, agreement: HitRate, namespace: str) -> None:  # noqa: FBT001 - a fact, not a flag
        said = {True: "hit", False: "miss", None: "unknown"}[agreed]
        metrics.BINDINGS.labels(said).inc()
        if agreed is not None:
            agreement.enter(agreed, self._settings(), namespace=namespace)
            if agreement is self.agreement:
                metrics.AGREEMENT.set(agreement.share or 0.0)

    def _log_change(self, drift: Refused | None) -> None:
        if drift:
            log.warning("scheduler drift: bindings differ from the forecast", reason=drift.reason)
        else:
            log.info("scheduler agrees with the forecast again")


def _judge(binding: Binding, contents: Contents, model: SchedulerModel, now: float) -> bool | None:
    return judge_binding(binding, build(contents, now=now), model)
