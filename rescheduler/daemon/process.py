"""The daemon: a mirror, the lease, cycles while it is ours, and a server in front of them.

Whoever does not lead mirrors all the same and stands by. At SIGTERM nothing more is written but the lease,
which is given back; what was begun stands in the histories, and the next leader takes it on.
"""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from reberth.client.access import Access
from reberth.client.lease import Leadership, LeaseLost, leading
from reberth.cluster.kinds import HISTORY
from reberth.runtime.http_server import Server
from reberth.runtime.live_files import LiveSettings
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError, SettingsError
from reberth.values.refusal import Refused
from rescheduler.daemon.http import StatusRoutes
from rescheduler.daemon.leader import Leader
from rescheduler.daemon.loop import CycleResult
from rescheduler.daemon.resources import DaemonResources, open_daemon_resources
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import RESTARTING_FIELDS, ReschedulerSettings, read_forecaster
from rescheduler.telemetry import metrics
from rescheduler.telemetry.recording import forget_state

# What has not ended by then is broken off: nothing that matters stands in this process alone.
_STOPPING_TIME = 0.9
_PAUSE = 1.0

log = Log(__name__)


class Daemon:
    """One process of several, of which one leads. Raises a SettingsError if a file is bad from the start."""

    def __init__(self, settings: Path, policy: Path, access: Access) -> None:
        self.settings = LiveSettings(
            settings, ReschedulerSettings, on_change=self._take_settings, on_refusal=self._refuse
        )
        self.policy = LiveSettings(
            policy, ReschedulerPolicy, on_change=self._take_policy, on_refusal=self._refuse
        )
        self._first = self.settings.current
        self._make_forecaster = read_forecaster(self._first.scheduler)
        self._access = access
        self._stop = asyncio.Event()
        self._resources: DaemonResources | None = None
        self._leader: Leader | None = None
        self._lost = ""  # why it does not lead any more

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Raises a ReberthError if it cannot even begin."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        async with self._open_resources() as resources, AsyncExitStack() as stack:
            for server in self._servers(resources):
                await stack.enter_async_context(server)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            files = (self.settings.follow(), self.policy.follow())
            works = (
                *files,
                resources.pause.follow(),
                resources.extender_health.follow(),
                self._lead_for_ever(resources),
            )
            tasks = [group.create_task(work) for work in works]
            await self._stop.wait()
            log.info("stopping")
            loop.call_later(_STOPPING_TIME, os._exit, 0)
            for task in tasks:
                task.cancel()

    async def run_once(self) -> bool | Refused:
        """Make one cycle and its moves, unless somebody else leads; tells whether all ended well."""
        async with self._open_resources() as resources:
            await resources.mirrored()
            async with leading(
                resources.lease_api, self._first.lease, identity=resources.identity, give_way=True
            ) as leadership:
                if isinstance(leadership, Refused):
                    return leadership
                await resources.pause.look()
                await resources.extender_health.look()
                return await Leader(resources, leadership, memory=None).lead_once()

    @asynccontextmanager
    async def _open_resources(self) -> AsyncIterator[DaemonResources]:
        async with open_daemon_resources(
            self._access,
            lambda: self.settings.current,
            lambda: self.policy.current,
            self._make_forecaster,
            wake=self._wake,
        ) as resources:
            self._resources = resources
            yield resources

    def _servers(self, resources: DaemonResources) -> list[Server]:
        """The one for probes begins first and ends last."""
        window = StatusRoutes(last=self._find_last, histories=lambda: resources.cache.of(HISTORY))
        serve = partial(
            Server,
            checks={
                "process": self._tell_stop,
                "mirrors": lambda: "; ".join(resources.list_missing()) or None,
            },
            remarks=lambda: [f"# {remark}" for remark in self._list_remarks(resources)],
        )
        probes = [serve(self._first.probes)] if self._first.probes else []
        return [*probes, serve(self._first.server, routes=window.routes())]

    async def _lead_for_ever(self, resources: DaemonResources) -> None:
        await resources.mirrored()
        await resources.extender_health.look()
        gc.collect()
        gc.freeze()  # what has been listed stays: the collector need not look through it again and again
        log.info("all is mirrored")
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
                return  # only who gives way is refused
            log.info("leading", identity=resources.identity)
            metrics.LEADING.set(1)
            self._lost = ""
            self._leader = Leader(resources, leadership, memory=PlanMemory())
            try:
                await self._leader.lead()
            finally:
                self._leader = None
                metrics.LEADING.set(0)
                forget_state()

    def _take_settings(self, fresh: ReschedulerSettings) -> None:
        """Take settings that have changed, as far as that can be done without a restart."""
        late = [field for field in RESTARTING_FIELDS if getattr(fresh, field) != getattr(self._first, field)]
        if late:
            log.warning("settings have changed that need a restart", fields=late)
        self._wake()

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
        """Say who leads, what is worth a look, and how true the mirrors are."""
        lost = f"; it was lost here: {self._lost}" if self._lost else ""
        yield "leading" if self._leader else f"standing by: another process leads, or nobody does yet{lost}"
        for refusal in filter(None, (self.settings.refusal, self.policy.refusal)):
            yield f"refused, the last good one stays in force: {refusal}"
        made = self._find_last()
        known = self._leader.list_warnings() if self._leader else resources.list_warnings()
        planned = made.cycle.list_warnings() if made else ()
        for warning in dict.fromkeys((*known, *planned)):
            yield f"warning: {warning}"
        for name, trouble in sorted(resources.mirror.troubles().items()):
            if trouble:
                yield f"{name}: {trouble}"
