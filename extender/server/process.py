"""The extender as a process: a cache, the memory over it, and a server in front of them.

It serves from the first moment on, with neutral answers until its caches are synced. At SIGTERM the calls in
flight are answered, each with `Connection: close`, while the watches still run.
"""

import asyncio
import gc
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from extender.answers.call_tracker import CallTracker
from extender.answers.memory import ClusterMemory
from extender.answers.verbs import PARTS
from extender.server import metrics
from extender.server.events import announce_exhaustion, announce_refusal
from extender.server.explain import ExplainRoutes
from extender.server.handler import CallHandler
from extender.server.readiness import Readiness
from extender.server.request_body import BodyLimits
from extender.server.seen import ChangeSignal, SeenRoutes
from extender.server.settings import RESTARTING_FIELDS, ExtenderSettings
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.authorization import Guard
from reberth.client.events import EventRecorder, recording
from reberth.client.mirror import Mirror, mirroring
from reberth.client.server_clock import ServerClock
from reberth.cluster.kinds import ALL_RESOURCES, BUDGET, HISTORY, JOB, NODE, POD, REPLICA_SET, SCORE
from reberth.cluster.pods.requests import NEWEST
from reberth.runtime.http_server import Server
from reberth.runtime.live_files import LiveSettings
from reberth.runtime.logs import Log
from reberth.values.errors import SettingsError

log = Log(__name__)

_KINDS = {NODE, POD, REPLICA_SET, JOB, BUDGET, HISTORY, SCORE}
MIRRORED = tuple(resource for resource in ALL_RESOURCES if resource.kind in _KINDS)
_LARGEST_PIECE = 2**23


class ExtenderProcess:
    """The components of the process, connected. Raises a SettingsError if the file is invalid."""

    def __init__(self, path: Path, access: Access) -> None:
        self.live = LiveSettings(
            path,
            ExtenderSettings,
            restarting=RESTARTING_FIELDS,
            on_change=self._take,
            on_refusal=self._refuse,
        )
        self._first = self.live.first
        self._access = access
        self._stop = asyncio.Event()
        self._recorder: EventRecorder | None = None
        self._changes = ChangeSignal()
        self._call_tracker = CallTracker(PARTS)
        self._memory = ClusterMemory(
            self._first.scores,
            version=NEWEST,  # versions differ in the requests of pods, which the extender does not use
            on_change=self._changes.fire,
            on_bound=lambda pod: self._call_tracker.place(pod, self._settings().attention),
        )

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Raises a ConfigurationError if it cannot start."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        _keep_memory_for_calls()
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(Api(self._access, self._first.api))
            self._measure(api.clock)
            mirror = await stack.enter_async_context(
                mirroring(api, self._memory, MIRRORED, settings=self._first.watch)
            )
            recorder = self._recorder = await stack.enter_async_context(
                recording(api, reporter="reberth.dev/extender", instance=socket.gethostname())
            )
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            works = (self.live.follow(), _settle(mirror))
            background = [tasks.create_task(work) for work in works]
            for server in self._servers(mirror, recorder, api.clock.now):
                await stack.enter_async_context(server)
            await self._stop.wait()
            log.info("stopping")
            for task in background:
                task.cancel()

    def _settings(self) -> ExtenderSettings:
        return self.live.current

    def _take(self, fresh: ExtenderSettings) -> None:
        """Apply changed settings, as far as possible without a restart."""
        if fresh.scores != self._memory.index.settings:
            self._memory.retune(fresh.scores)

    def _refuse(self, refusal: SettingsError) -> None:
        if self._recorder:
            announce_refusal(self._recorder, refusal)

    def _servers(self, mirror: Mirror, recorder: EventRecorder, clock: Callable[[], float]) -> list[Server]:
        """Make the servers. The one for probes starts first and stops last, to report the whole stop."""
        readiness = Readiness(
            mirror,
            self._call_tracker,
            settings=self._settings,
            settings_remarks=self.live.list_remarks,
            is_stopping=self._stop.is_set,
        )
        limits = BodyLimits(self._first.server.body_limit_bytes, self._first.body_within)
        handler = CallHandler(
            self._memory,
            self._call_tracker,
            settings=self._settings,
            mirror_states=readiness.mirror_states,
            announce=partial(announce_exhaustion, recorder),
            clock=clock,
            limits=limits,
        )
        seen = SeenRoutes(self._memory, self._call_tracker, self._changes)
        guard = Guard(self._first.server)
        explain = ExplainRoutes(self._memory, settings=self._settings, clock=clock, limits=limits)
        serve = partial(
            Server,
            checks=readiness.checks(),
            liveness=mirror.find_deafness,
            remarks=readiness.remarks,
        )
        probes = [serve(self._first.probes)] if self._first.probes else []
        return [
            *probes,
            serve(
                self._first.server,
                calls=handler.calls(),
                routes=[*handler.routes(), *seen.routes(), *guard.protect(explain.routes())],
            ),
        ]

    def _measure(self, clock: ServerClock) -> None:
        """Register gauges that are read when Prometheus scrapes."""
        metrics.CLOCK_OFFSET.set_function(clock.find_offset)
        for part in PARTS:
            metrics.LAST_ASKED.labels(part).set_function(
                partial(self._call_tracker.last_asked.__getitem__, part)
            )
            metrics.PLACED_UNASKED.labels(part).set_function(
                partial(self._call_tracker.placed_since.__getitem__, part)
            )
        for gauge, counts in ((metrics.NOTES, self._memory.notes), (metrics.SCORES, self._memory.scores)):
            gauge.labels("valid").set_function(partial(_count, counts.valid, clock))
            gauge.labels("expired").set_function(partial(_count, counts.expired, clock))


def _count(count: Callable[[float], int], clock: ServerClock) -> float:
    return count(clock.now())


def _keep_memory_for_calls() -> None:
    """Allocate a large block of memory once and free it.

    From then on glibc keeps blocks up to that size for the next call. Otherwise it requests each of them from
    the system, and a call that names 5,000 nodes takes twice as long.
    """
    bytearray(_LARGEST_PIECE)


async def _settle(mirror: Mirror) -> None:
    """Exempt the listed objects from garbage collection: they stay, and scanning them would delay calls."""
    await mirror.synced()
    gc.collect()
    gc.freeze()
    log.info("caches synced")
