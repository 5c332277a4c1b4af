"""The daemon process: caches, the lease, cycles while it leads, and an HTTP server.

A process that does not lead keeps its caches in sync and waits. On SIGTERM it writes nothing but the lease,
which it releases; moves that were begun are recorded in the eviction histories, and the next leader continues
them.
"""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from reberth.client.access import Access
from reberth.client.authorization import Guard, TokenReviewer
from reberth.client.lease import Leadership, LeaseLost, leading
from reberth.cluster.kinds import HISTORY
from reberth.cluster.pods.requests import write_version
from reberth.runtime.http_server import Server
from reberth.runtime.live_files import LiveSettings
from reberth.runtime.logs import Log
from reberth.runtime.loop_lag import measure_lag
from reberth.runtime.watchdog import ending_when_stuck
from reberth.values.errors import ReberthError, SettingsError
from reberth.values.refusal import Refused
from rescheduler.daemon.http import StatusRoutes
from rescheduler.daemon.leader import Leader
from rescheduler.daemon.live_forecast import LiveForecast
from rescheduler.daemon.loop import CycleResult
from rescheduler.daemon.resources import DaemonResources, open_daemon_resources
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import RESTARTING_FIELDS, ReschedulerSettings
from rescheduler.telemetry import metrics
from rescheduler.telemetry.recording import forget_state

# The process exits after this time in any case: everything that matters is stored in the cluster.
_STOPPING_TIME = 0.9
_PAUSE = 1.0

log = Log(__name__)


class Daemon:
    """One replica of the daemon; one of them leads. Raises SettingsError if a file is invalid."""

    def __init__(self, settings: Path, policy: Path, access: Access) -> None:
        self.settings = LiveSettings(
            settings,
            ReschedulerSettings,
            restarting=RESTARTING_FIELDS,
            on_change=lambda _: self._wake(),
            on_refusal=self._refuse,
        )
        self.policy = LiveSettings(
            policy, ReschedulerPolicy, on_change=self._take_policy, on_refusal=self._refuse
        )
        self._first = self.settings.first
        self._forecast = LiveForecast(
            self._first.scheduler, on_change=lambda: self._wake("scheduler"), on_refusal=self._refuse
        )
        self._access = access
        self._stop = asyncio.Event()
        self._resources: DaemonResources | None = None
        self._starting: asyncio.Task[Any] | None = None
        self._leader: Leader | None = None
        self._lost = ""  # why it lost the leadership

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Raises ReberthError if it cannot start."""
        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin_stop)
        async with AsyncExitStack() as stack:
            self._starting = this
            try:
                resources = await stack.enter_async_context(self._open_resources())
            except asyncio.CancelledError:
                if self._stop.is_set():
                    log.info("stopped before the API server answered")
                    return
                raise
            finally:
                self._starting = None
            for server in self._servers(resources):
                await stack.enter_async_context(server)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            files = (self.settings.follow(), self.policy.follow(), self._forecast.follow())
            works = (
                *files,
                self._forecast.follow_version(resources.api.version, resources.take_version),
                resources.pause.run(),
                resources.extender_health.run(),
                measure_lag(),
                self._keep_leading(resources),
            )
            tasks = [group.create_task(work) for work in works]
            await self._stop.wait()
            log.info("stopping")
            loop.call_later(_STOPPING_TIME, os._exit, 0)
            for task in tasks:
                task.cancel()

    def _begin_stop(self) -> None:
        """Stop; while the first answers of the API server are awaited, nothing else is to be ended."""
        self._stop.set()
        if self._starting:
            self._starting.cancel()

    async def run_once(self) -> bool | Refused:
        """Run one cycle and its moves unless another process leads; tell whether all moves ended well."""
        async with self._open_resources() as resources:
            await resources.wait_until_synced()
            async with leading(
                resources.lease_api, self._first.lease, identity=resources.identity, give_way=True
            ) as leadership:
                if isinstance(leadership, Refused):
                    return leadership
                await resources.pause.read()
                await resources.extender_health.check()
                async with ending_when_stuck(self._first.lease.stuck_after):
                    return await Leader(resources, leadership, memory=None).lead_once()

    @asynccontextmanager
    async def _open_resources(self) -> AsyncIterator[DaemonResources]:
        async with open_daemon_resources(
            self._access,
            lambda: self.settings.current,
            lambda: self.policy.current,
            self._forecast,
            wake=self._wake,
        ) as resources:
            self._resources = resources
            yield resources

    def _servers(self, resources: DaemonResources) -> list[Server]:
        """Give the servers; the one for probes starts first and stops last."""
        status = StatusRoutes(last=self._find_last, histories=lambda: resources.cache.of(HISTORY))
        serve = partial(
            Server,
            checks={
                "process": self._tell_stop,
                "mirrors": lambda: "; ".join(resources.list_awaited()) or None,
            },
            liveness=resources.mirror.find_deafness,
            remarks=lambda: [f"# {remark}" for remark in self._list_remarks(resources)],
        )
        probes = [serve(self._first.probes)] if self._first.probes else []
        guard = Guard(self._first.server, TokenReviewer(resources.review_api))
        return [*probes, serve(self._first.server, routes=guard.protect(status.routes()))]

    async def _keep_leading(self, resources: DaemonResources) -> None:
        await resources.wait_until_synced()
        await resources.extender_health.check()
        gc.collect()
        gc.freeze()  # listed objects stay: the garbage collector need not scan them again and again
        log.info("caches synced")
        while True:
            try:
                await self._lead(resources)
            except* LeaseLost as lost:
                self._lost = str(lost.exceptions[0])
                log.warning("leadership lost", reason=self._lost)
            except* ReberthError as group:
                log.warning("leadership ended", reason=str(group.exceptions[0]))
            await asyncio.sleep(_PAUSE)

    async def _lead(self, resources: DaemonResources) -> None:
        async with leading(resources.lease_api, self._first.lease, identity=resources.identity) as leadership:
            if not isinstance(leadership, Leadership):
                return  # never: only `give_way` is refused
            log.info("leading", identity=resources.identity)
            metrics.LEADING.set(1)
            self._lost = ""
            self._leader = Leader(resources, leadership, memory=PlanMemory())
            try:
                async with ending_when_stuck(self._first.lease.stuck_after):
                    await self._leader.lead()
            finally:
                self._leader = None
                metrics.LEADING.set(0)
                forget_state()

    def _take_policy(self, _: ReschedulerPolicy) -> None:
        if self._resources:
            self._resources.keep_annotations()
        self._wake()

    def _refuse(self, refusal: SettingsError) -> None:
        if self._resources:
            self._resources.announce_refusal(str(refusal))

    def _wake(self, cause: str = "settings") -> None:
        if self._leader:
            self._leader.trigger.fire(cause)

    def _find_last(self) -> CycleResult | None:
        return self._leader.cycle_loop.last if self._leader else None

    def _tell_stop(self) -> str | None:
        return "stopping" if self._stop.is_set() else None

    def _list_remarks(self, resources: DaemonResources) -> Iterator[str]:
        """Give the lines of /readyz: who leads, warnings, and caches that are not in sync."""
        lost = f"; this process lost the lease: {self._lost}" if self._lost else ""
        yield "leading" if self._leader else f"standby: another process leads, or no process leads yet{lost}"
        for version in self._forecast.versions:
            yield f"Kubernetes {write_version(version)}"
        for file in (self.settings, self.policy, self._forecast, resources.extenders):
            yield from file.list_remarks()
        last = self._find_last()
        known = self._leader.list_warnings() if self._leader else resources.list_warnings()
        planned = last.cycle.list_warnings() if last else ()
        for warning in dict.fromkeys((*known, *planned)):
            yield f"warning: {warning}"
        for name, trouble in sorted(resources.mirror.troubles().items()):
            if trouble:
                yield f"{name}: {trouble}"
