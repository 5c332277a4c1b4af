"""The federation's process: caches of the hub, leader election, and the controllers.

It does not start to work beside Karmada's own controllers, unless the settings say so.

The caches are kept up to date while another process leads, so that a failover needs no list. A process that
loses its lease exits and must be restarted. SIGTERM stops the controllers and releases the lease.
"""

import argparse
import asyncio
import gc
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from federation.controllers.failover.application_failover import ApplicationFailoverController
from federation.controllers.failover.graceful import GracefulController
from federation.controllers.failover.pending_replicas import PendingReplicasController
from federation.controllers.failover.tainting import TaintingController
from federation.controllers.membership.discovery import DiscoveryController
from federation.controllers.membership.members import MembersController
from federation.controllers.membership.tokens import TokensController
from federation.controllers.propagation.dependencies import DependenciesController
from federation.controllers.propagation.detector import DetectorController, place_later
from federation.controllers.propagation.execution import ExecutionController
from federation.controllers.propagation.interpreters import InterpretersController
from federation.controllers.propagation.namespaces import NamespacesController
from federation.controllers.propagation.scheduler import SchedulerController
from federation.controllers.propagation.statuses import StatusesController
from federation.controllers.propagation.works import WorksController
from federation.controllers.rebalancing.failback import FailbackController
from federation.controllers.rebalancing.handovers import HandoversController
from federation.controllers.rebalancing.rebalancer import RebalancerController, decide_later
from federation.failover.eviction_causes import EvictionCauses
from federation.hub.hub import Controller, Hub
from federation.hub.karmada_leases import KarmadaWatch
from federation.hub.kind_catalog import KindCatalog
from federation.hub.object_api import ObjectApi
from federation.hub.sessions import Sessions
from federation.hub.telemetry.interpreter_metrics import count_result
from federation.hub.work_index import WorkIndex
from federation.interpreters.interpreters import Interpreters
from federation.interpreters.kind_rules import KindRules
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.settings import FederationSettings
from reberth.cli.inputs import add_access_arguments, read_access
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.events import recording
from reberth.client.lease import Leadership, LeaseLost, leading, name_holder
from reberth.client.mirror import Mirror, mirroring
from reberth.client.watcher import NOT_INSTALLED, Watcher
from reberth.cluster.kinds import Kind, Resource
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.tables import meta_of
from reberth.config.settings import load
from reberth.records import Record
from reberth.runtime import logs
from reberth.runtime.http_server import Server
from reberth.runtime.watchdog import ending_when_stuck
from reberth.values.errors import ReberthError, taken_apart
from reberth.values.refusal import Refused

DONE, LOST, BAD_INPUT = 0, 1, 2
Listener = Callable[[Resource[Any], Any], None]
_Maker = tuple[bool, Callable[[], Controller]]
"""Whether a controller is on, and what makes it."""
Lease = AbstractAsyncContextManager[Leadership | Refused]
REPORTER = "reberth.dev/federation"
_LAST_WORDS = 0.5
"""Seconds for which Events are still written when the process stops."""
_STOPPING = (signal.SIGTERM, signal.SIGINT)
_HUB: tuple[Resource[Any], ...] = (
    resources.CLUSTERS,
    resources.POLICIES,
    resources.CLUSTER_POLICIES,
    resources.BINDINGS,
    resources.CLUSTER_BINDINGS,
    resources.REBALANCERS,
    resources.WORKS,
    resources.INTERPRETERS,
    *resources.TEMPLATES,
)
_MOVED_BY_WISHES = (DetectorController, DependenciesController, WorksController)
"""What they write follows from specs and metadata alone; most changes are reports."""
_NEW_OBJECTS = 20_000
"""After so many new ones garbage is collected: a burst makes objects that stay, and few that form cycles."""
_LOOK_EVERY = 0.5
# What the hub may lack: it is waited for until it has answered.
_OPTIONAL: tuple[Resource[Any], ...] = (resources.INTERPRETERS, *resources.TEMPLATES)
_BY_KIND: dict[Kind[Any, Any], Resource[Any]] = {each.kind: each for each in _HUB}

log = logs.Log(__name__)


class Federation:
    """Everything in one process, wired together."""

    def __init__(self, access: Access, settings: FederationSettings) -> None:
        self._access = access
        self._settings = settings
        self._listeners: list[Listener] = []
        self._status_listeners: list[Listener] = []
        self._cache = NotifyingCache(self._notify, on_status=self._notify_of_status, version=NEWEST)
        self._catalog = KindCatalog()
        self._role = "starting"
        self._mirror: Mirror | None = None
        self._karmada: KarmadaWatch | None = None

    async def run(self, stopping: asyncio.Event) -> None:
        """Run until `stopping` is set. Raises LeaseLost, or a ConfigurationError at the start."""
        settings, identity = self._settings, name_holder()
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            checks = {"mirror": self._check_readiness}
            server = Server(
                settings.server, checks=checks, liveness=self._find_deafness, remarks=self._list_remarks
            )
            await enter(server)
            api = await enter(ObjectApi(self._access, settings.api))
            self._mirror = mirror = await enter(mirroring(api, self._cache, _HUB, settings=settings.watch))
            events = await enter(ObjectApi(self._access, settings.events))
            recorder = await enter(
                recording(events, reporter=REPORTER, instance=identity, closing_time=_LAST_WORDS)
            )
            # The lease has its own client: its renewal must not wait for a burst of other calls.
            lease = await enter(Api(self._access))
            rules = KindRules(Interpreters(count=count_result))
            hub = Hub(api, self._cache, recorder, time.time, self._catalog, rules)
            self._karmada = KarmadaWatch(lease, settings.karmada)
            held = leading(lease, settings.lease, identity=identity)
            await _run_unless(stopping, self._lead(held, hub, mirror))
            log.info("stopping")

    async def _lead(self, lease: Lease, hub: Hub, mirror: Mirror) -> None:
        """Wait for the lease, and run the controllers until it is lost.

        The caches of our own kinds must be synced first: a policy that is not in the cache looks like one
        that was deleted, and its bindings would go. A kind of template that cannot be listed, for lack of
        rights for example, is skipped. Interpreters are not, unless the hub lacks their definition: without
        its scripts a kind would be placed, applied and told of in another way.
        """
        await wait_for_caches(mirror)
        gc.collect()
        gc.freeze()  # what is listed stays: the garbage collector need not scan it again and again
        gc.set_threshold(_NEW_OBJECTS)
        if self._karmada is not None:
            self._role = "checking"
            await self._karmada.wait()
        self._role = "waiting"
        log.info("caches synced, waiting for the lease")
        async with lease as leadership:
            if isinstance(leadership, Leadership):
                log.info("became leader")
                self._role = "leading"
                hub.api.leadership = leadership
                async with ending_when_stuck(self._settings.lease.stuck_after):
                    await self._work(hub)

    async def _work(self, hub: Hub) -> None:
        async with self._controllers(hub) as controllers, asyncio.TaskGroup() as group:
            if self._karmada is not None:
                group.create_task(self._karmada.watch())
            for controller in controllers:
                group.create_task(controller.run())

    @asynccontextmanager
    async def _controllers(self, hub: Hub) -> AsyncIterator[list[Controller]]:
        """Start the enabled controllers, and send them every object of the cache and every change.

        Bindings are sent first, by name: which of two gets the room must not depend on how a list arrived.
        """
        index = WorkIndex(hub)
        interpreters = InterpretersController(hub, index, self._settings.interpreters, self._tell)
        controllers = [interpreters, *self._make(hub, index)]
        moved = [each.on_change for each in controllers if not isinstance(each, _MOVED_BY_WISHES)]
        self._listeners = [hub.on_change, index.on_change, *(each.on_change for each in controllers)]
        self._status_listeners = [hub.on_change, *moved]
        for resource in sorted(_HUB, key=lambda each: each not in resources.ALL_BINDINGS):
            for record in sorted(self._cache.of(resource.kind).rows(), key=_place_of):
                self._notify(resource.kind, record)
        try:
            yield controllers
        finally:
            self._listeners, self._status_listeners = [], []

    def _make(self, hub: Hub, index: WorkIndex) -> list[Controller]:
        settings, switches = self._settings, self._settings.controllers
        sessions = Sessions(hub, settings.sessions)
        scheduler = SchedulerController(hub, settings.scheduler, hands_over=switches.handovers)
        place = scheduler.place_new if switches.scheduler else place_later
        causes = EvictionCauses(hub.clock)
        calls_members = switches.members or switches.execution
        makers: list[_Maker] = [
            (calls_members, lambda: sessions),
            (
                switches.members,
                lambda: MembersController(
                    hub, sessions, settings.members, causes if switches.tainting else None
                ),
            ),
            (switches.tokens and calls_members, lambda: TokensController(hub, sessions, settings.tokens)),
            (True, lambda: DiscoveryController(hub, sessions, settings.discovery, settings.watch)),
            (switches.detector, lambda: DetectorController(hub, settings.detector, place=place)),
            (switches.dependencies, lambda: DependenciesController(hub, settings.dependencies)),
            (switches.scheduler, lambda: scheduler),
            (switches.works, lambda: WorksController(hub, index, settings.works)),
            (
                switches.namespaces and calls_members,
                lambda: NamespacesController(hub, sessions, settings.namespaces),
            ),
            (
                switches.execution,
                lambda: ExecutionController(
                    hub,
                    sessions,
                    settings.execution,
                    counts_rollouts=settings.application_failover.count_rollouts,
                ),
            ),
            (switches.statuses, lambda: StatusesController(hub, index, settings.statuses)),
            *self._list_movers(hub, index, sessions, scheduler, causes),
        ]
        return [make() for is_on, make in makers if is_on]

    def _list_movers(
        self,
        hub: Hub,
        index: WorkIndex,
        sessions: Sessions,
        scheduler: SchedulerController,
        causes: EvictionCauses,
    ) -> Iterator[_Maker]:
        """Yield what makes the controllers by which workloads leave clusters or return to them."""
        settings, switches = self._settings, self._settings.controllers
        decide_triggered = scheduler.decide_triggered if switches.scheduler else decide_later
        pending = settings.pending_replicas.rules() if switches.gives_pending() else None
        yield from (
            (
                switches.rebalancer,
                lambda: RebalancerController(
                    hub, index, settings.rebalancer, decide_triggered, fork_scheduler=scheduler.fork
                ),
            ),
            (switches.handovers, lambda: HandoversController(hub, index, settings.handovers)),
            (
                switches.failback,
                lambda: FailbackController(hub, settings.failback, scheduler.see_fleet, decide_triggered),
            ),
            (switches.tainting, lambda: TaintingController(hub, causes, settings.tainting)),
            (switches.graceful, lambda: GracefulController(hub, index, causes, settings.graceful)),
            (
                switches.application_failover and switches.scheduler,
                lambda: ApplicationFailoverController(
                    hub, index, scheduler.placing, settings.application_failover, pending
                ),
            ),
            (
                pending is not None,
                lambda: PendingReplicasController(
                    hub, index, sessions, scheduler.placing, settings.pending_replicas
                ),
            ),
        )

    def _tell(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        """Send an object to the controllers: it is new, or means something else now."""
        _send(self._listeners, resource, record)

    def _notify(self, kind: Kind[Any, Any], record: Any) -> None:  # noqa: ANN401 - a record of the kind
        _send(self._listeners, self._resource_of(kind), record)

    def _notify_of_status(self, kind: Kind[Any, Any], record: Any) -> None:  # noqa: ANN401 - a record of the kind
        _send(self._status_listeners, self._resource_of(kind), record)

    def _resource_of(self, kind: Kind[Any, Any]) -> Resource[Any]:
        return _BY_KIND.get(kind) or self._catalog.of(kind)

    def _find_deafness(self) -> str | None:
        return self._mirror.find_deafness() if self._mirror else None

    def _list_remarks(self) -> list[str]:
        return [_describe_karmada(self._karmada)] if self._karmada and self._karmada.problem else []

    def _check_readiness(self) -> str | None:
        """A process that waits for the lease is as ready as the leader."""
        if self._role == "starting":
            return "the caches of the hub are not synced yet"
        if self._role == "checking" and self._karmada is not None:
            return _describe_karmada(self._karmada)
        return None


def _send(listeners: list[Listener], resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
    for listener in listeners:
        listener(resource, record)


async def wait_for_caches(mirror: Mirror) -> None:
    """Wait until the caches may be worked with."""
    await mirror.synced(*(each.name for each in _HUB if each not in _OPTIONAL))
    for resource in _OPTIONAL:
        await mirror.watchers[resource.name].answered()
    interpreters = mirror.watchers[resources.INTERPRETERS.name]
    while not (interpreters.is_synced or _is_absent(interpreters)):  # noqa: ASYNC110 - only at the start
        await asyncio.sleep(_LOOK_EVERY)


def _is_absent(watcher: Watcher[Any]) -> bool:
    return (watcher.trouble or "").startswith(NOT_INSTALLED)


def _describe_karmada(karmada: KarmadaWatch) -> str:
    found = karmada.problem
    return f"Karmada's controllers run on this hub: {found}" if found else "looking for Karmada's controllers"


def _place_of(record: Record) -> tuple[str, str]:
    meta = meta_of(record)
    return meta.namespace, meta.name


async def _run_unless(stopping: asyncio.Event, work: Any) -> None:  # noqa: ANN401 - a coroutine
    """Run until told to stop; an error of the work is raised."""
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--settings", type=Path, metavar="FILE", help="settings file of kind FederationSettings"
    )
    add_access_arguments(parser)


def serve(arguments: argparse.Namespace) -> int:
    """Exit codes: 0 stopped by a signal, 1 the lease was lost, 2 bad settings or no connection to the hub."""
    try:
        settings = (
            load(arguments.settings, FederationSettings) if arguments.settings else FederationSettings()
        )
        logs.setup(settings.log)
        federation = Federation(read_access(arguments), settings)
        with taken_apart():
            asyncio.run(_run_until_signalled(federation))
    except ReberthError as error:
        return _complain(error)
    return DONE


async def _run_until_signalled(federation: Federation) -> None:
    stopping = asyncio.Event()
    for number in _STOPPING:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await federation.run(stopping)


def _complain(error: ReberthError) -> int:
    sys.stderr.write(f"federation: {error}\n")
    return LOST if isinstance(error, LeaseLost) else BAD_INPUT
