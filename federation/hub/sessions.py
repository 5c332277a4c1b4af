"""Sessions with the members: for each Cluster a client, and a cache of its objects, nodes and pods.

A session is reopened when the Cluster or its Secret has changed. If it cannot be opened, the reason is kept
for the condition Ready; other members are not affected. There is none with a member that another Cluster
stands for already.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federation.api import CLUSTER_API_VERSION, Cluster
from federation.hub.dynamic_mirror import mirror_learned_kinds
from federation.hub.hub import Hub
from federation.hub.member_identities import MemberIdentities, SameMember
from federation.hub.object_api import ObjectApi
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.kubeconfig import MemberLogin, write_kubeconfig
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.objects.names import MANAGED, Key
from federation.objects.template import ResourceTemplate
from reberth.client.access import Access
from reberth.client.api import ApiSettings
from reberth.client.mirror import mirroring
from reberth.client.watcher import WatchSettings
from reberth.cluster.kinds import NODES, PODS, Kind, Resource
from reberth.cluster.pods.requests import NEWEST
from reberth.runtime.faults import FAULTS
from reberth.runtime.logs import Log
from reberth.values.duration import Duration
from reberth.values.errors import ApiError, ConfigurationError, ReberthError, taken_apart
from reberth.values.refusal import describe_fault

log = Log(__name__)

PUSH = "Push"
_OPEN_AGAIN = 5.0
"""Seconds until a session that broke is opened again."""
_IDENTIFIED_WITHIN = 2.0
"""Seconds for which a session waits for the member to tell who it is, before it is shown as open."""
_IDENTIFY_AGAIN = 1.0
_OPENED_AT_ONCE = 4
_LONGEST_TURN = 10.0
"""Seconds for which a member that answers, but slowly, is one of those."""
_OURS = {"labelSelector": f"{MANAGED}=true"}
"""The copies. A member may have any number of other objects, of any size; they do not concern us."""

Listener = Callable[[str, ResourceTemplate | None], None]


class MemberApiSettings(ApiSettings, frozen=True):
    """A short deadline: workers that wait for a member that does not answer are missing for the others."""

    deadline: float = 10.0


class SessionSettings(QueueSettings, frozen=True):
    """Settings of the sessions; Secrets are not watched, but read again at an interval."""

    api: MemberApiSettings = MemberApiSettings()
    watch: WatchSettings = WatchSettings()
    look_at_secret_every: Duration = Duration(60)


@dataclass(frozen=True)
class Session:
    """A client and a cache of one member; `listed` is set once the cache is synced.

    The cache has the objects that carry our label, and of nodes and pods what tells the room.
    """

    api: ObjectApi
    cache: NotifyingCache
    listed: asyncio.Event

    def find(
        self, resource: Resource[ResourceTemplate], namespace: str, name: str
    ) -> ResourceTemplate | None:
        return self.cache.of(resource.kind).named(namespace, name)


class Sessions:
    """Opens and closes sessions; listeners get each object of each member, and None when all are listed."""

    def __init__(self, hub: Hub, settings: SessionSettings) -> None:
        self.problems: dict[str, str] = {}
        self.identities = MemberIdentities(hub)
        self._hub = hub
        self._settings = settings
        self._queue = WorkQueue("sessions", self._reconcile, settings)
        self._logins: dict[str, MemberLogin] = {}
        self._files: dict[str, Path] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._open: dict[str, Session] = {}
        self._listeners: list[Listener] = []
        self._unresponsive: set[str] = set()
        self._opened_at_once = asyncio.Semaphore(_OPENED_AT_ONCE)
        self._turns: set[asyncio.Task[None]] = set()

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def get(self, cluster: str) -> Session | None:
        return self._open.get(cluster)

    def all(self) -> Iterable[Session]:
        return list(self._open.values())

    def is_usable(self, cluster: str) -> bool:
        """Tell whether the member's cache is synced, and its last probe was answered.

        Before that the member has told who it is.
        """
        session = self._open.get(cluster)
        return session is not None and session.listed.is_set() and cluster not in self._unresponsive

    def mark(self, cluster: str, *, answers: bool) -> None:
        """Record whether a member answers: controllers skip one that does not, and no worker waits for it."""
        if not answers:
            self._unresponsive.add(cluster)
        elif cluster in self._unresponsive:
            self._unresponsive.remove(cluster)
            self._announce(cluster, None)

    def reopen(self, key: Key) -> None:
        """Read the Secret at once: the present credentials are rejected, or there are newer ones."""
        self._queue.add(key)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.CLUSTERS:
            self._queue.add(resources.key_of(resource, record))

    async def run(self) -> None:
        try:
            await self._queue.run()
        finally:
            for name in list(self._tasks):
                await self._close(name)
            for turn in self._turns:
                turn.cancel()

    async def _reconcile(self, key: Key) -> float | None:
        cluster = self._hub.find_cluster(key.name)
        if cluster is None or cluster.spec.sync_mode != PUSH:
            await self._close(key.name)
            self._free_member(key.name)
            return None
        try:
            login = await self._read_login(cluster)
        except ReberthError as error:
            self._report(key.name, str(error))
            return self._settings.longest_pause if isinstance(error, ConfigurationError) else 1.0
        await self._check_identity(key.name)
        known = self._logins.get(key.name)
        if known is None or known.connection != login.connection or self._tasks[key.name].done():
            await self._close(key.name)
            self._logins[key.name] = login
            self._tasks[key.name] = asyncio.create_task(self._serve(key.name, login.content))
        elif known != login:
            await self._change_token(key.name, login)
        return self._settings.look_at_secret_every

    def _free_member(self, name: str) -> None:
        """Another Cluster may stand for the member of one that is gone."""
        owners = self.identities.owners
        owners.pop(name, None)
        for other in [each for each, owner in owners.items() if owner == name]:
            self._queue.add(Key(CLUSTER_API_VERSION, "Cluster", "", other))

    async def _check_identity(self, name: str) -> None:
        """Close the session if the member is another one by now, or if another Cluster stands for it."""
        session = self._open.get(name)
        if session is None or self.identities.of(name) is None:
            return
        every = self._settings.look_at_secret_every / 2
        try:
            async with asyncio.timeout(_IDENTIFIED_WITHIN):
                has_changed = await self.identities.has_changed(name, session.api, every=every)
            self.identities.check(name)
        except TimeoutError:
            return
        except SameMember as error:
            self._report(name, str(error))
            has_changed = True
        if has_changed:
            log.warning("session closed: the member is another one than it was", cluster=name)
            await self._close(name)

    async def _change_token(self, name: str, login: MemberLogin) -> None:
        """Take a new token up; the caches and their watches go on."""
        self._logins[name] = login
        if path := self._files.get(name):
            _overwrite(path, login.content)
        if session := self._open.get(name):
            await session.api.renew_credentials()

    async def _read_login(self, cluster: Cluster) -> MemberLogin:
        reference = cluster.spec.secret_ref
        if reference is None:
            raise ConfigurationError(f"Cluster {cluster.metadata.name}: spec.secretRef: is missing")
        login = await self._hub.api.get(resources.LOGINS, reference.name, namespace=reference.namespace)
        return write_kubeconfig(cluster, login)

    async def _close(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        self._logins.pop(name, None)
        self._open.pop(name, None)
        self.identities.forget(name)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _serve(self, name: str, kubeconfig: bytes) -> None:
        """Keep one member's cache up to date until cancelled, or until the kubeconfig does not work."""
        again = _OPEN_AGAIN
        try:
            with taken_apart(), _written(kubeconfig) as path:
                self._files[name] = path
                await self._mirror(name, str(path))
        except SameMember as error:
            again = self._settings.look_at_secret_every
            self._report(name, str(error))
        except ConfigurationError as error:
            self._report(name, str(error))
        except Exception as error:  # noqa: BLE001 - it is about this member alone, and is logged
            FAULTS.note("member", name, describe_fault(error), error=error)
            self._report(name, "internal error")
        finally:
            self._files.pop(name, None)
            if self._tasks.get(name) is asyncio.current_task():
                # It broke by itself: a session that is shown as open would be used, and is closed inside.
                self._open.pop(name, None)
                self.identities.forget(name)
                self._queue.add_later(Key(CLUSTER_API_VERSION, "Cluster", "", name), again)

    async def _mirror(self, name: str, path: str) -> None:
        cache = NotifyingCache(lambda kind, record: self._on_change(name, kind, record), version=NEWEST)
        async with ObjectApi(Access(path, is_followed=False), self._settings.api) as api:
            api.leadership = self._hub.api.leadership
            session = Session(api, cache, asyncio.Event())
            with suppress(ApiError, TimeoutError):  # one that cannot be reached is shown as such
                async with asyncio.timeout(_IDENTIFIED_WITHIN):
                    await self._learn(name, api)
            self.problems.pop(name, None)
            self._open[name] = session
            if self.identities.of(name) is not None:
                await self._take_turn(session.listed)
            watch = self._settings.watch
            async with (
                mirroring(
                    api, cache, resources.TEMPLATES, settings=watch, selection=_OURS, server=name
                ) as ours,
                mirroring(api, cache, (NODES, PODS), settings=watch, server=name) as room,
            ):
                for watcher in (*ours.watchers.values(), *room.watchers.values()):
                    await watcher.answered()
                await self._identify(name, api)
                session.listed.set()
                log.info("member caches synced", cluster=name)
                self._announce(name, None)
                await mirror_learned_kinds(
                    self._hub.catalog.learned,
                    api,
                    cache,
                    settings=watch,
                    selection=_OURS,
                    listed=lambda: self._announce(name, None),
                    server=name,
                )

    async def _take_turn(self, listed: asyncio.Event) -> None:
        """Wait until few other members are being listed.

        Each opens some thirty connections: with all members in one moment, nothing else has a turn of the
        event loop meanwhile. One that does not answer takes no turn.
        """
        await self._opened_at_once.acquire()
        turn = asyncio.create_task(self._end_turn(listed))
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)

    async def _end_turn(self, listed: asyncio.Event) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LONGEST_TURN):
                    await listed.wait()
        finally:
            self._opened_at_once.release()

    async def _identify(self, name: str, api: ObjectApi) -> None:
        """Wait until the member has told who it is. Raises SameMember."""
        while self.identities.of(name) is None:
            try:
                await self._learn(name, api)
            except ApiError:
                await asyncio.sleep(_IDENTIFY_AGAIN)

    async def _learn(self, name: str, api: ObjectApi) -> None:
        """Ask a member who it is. A Cluster that is used, and now is the younger one, is closed at once."""
        await self.identities.learn(name, api)
        for other in self.identities.list_twins(name):
            self._queue.add(Key(CLUSTER_API_VERSION, "Cluster", "", other))

    def _on_change(self, name: str, kind: Kind[Any, Any], record: Any) -> None:  # noqa: ANN401 - a record of the kind
        if kind.record is ResourceTemplate:
            self._announce(name, record)

    def _announce(self, name: str, record: ResourceTemplate | None) -> None:
        for listener in self._listeners:
            listener(name, record)

    def _report(self, name: str, problem: str) -> None:
        if self.problems.get(name) != problem:
            log.warning("cannot connect to member", cluster=name, reason=problem)
        self.problems[name] = problem


@contextmanager
def _written(kubeconfig: bytes) -> Iterator[Path]:
    """Write the kubeconfig to a file with mode 0600 for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="reberth-member-") as folder:
        path = Path(folder, "kubeconfig")
        _overwrite(path, kubeconfig)
        yield path


def _overwrite(path: Path, kubeconfig: bytes) -> None:
    """Whoever reads it meanwhile gets the old content or the new one, whole."""
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(kubeconfig)
    fresh.replace(path)
