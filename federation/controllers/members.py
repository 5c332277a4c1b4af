"""The members themselves: is each of them there, what does it serve, and what room has it.

Whether a member is Ready is looked at again and again; what it serves and offers is written when that has
changed. A member that is not Ready gets a taint, so that nothing new goes there.
"""

import asyncio
from typing import Any, NamedTuple

from federation.api import CLUSTER_API_VERSION, Cluster
from federation.controllers import metrics, resources
from federation.controllers.desk import Desk
from federation.controllers.keys import Key, namespace_of_works
from federation.controllers.queueing import Queue, QueueSettings
from federation.controllers.scheduled import find_condition
from federation.controllers.sessions import PUSH, Session, Sessions
from federation.controllers.surveying import (
    READY,
    Sighting,
    Survey,
    change_status,
    has_taint,
    judge,
    list_resources,
    sum_up,
    wants_taint,
    write_taints,
)
from federation.controllers.templates import Object
from reberth import errors
from reberth.errors import ApiError
from reberth.kinds import NODE, POD
from reberth.measures import Duration
from reberth.resources import Resource

_TAINTING = "reberth-federation-members"
_OPENING = 0.2
"""So long after a Cluster has come somebody has tried to open a way to it, or soon will have."""


class MemberSettings(QueueSettings, frozen=True):
    """How often members are looked at, and how long something must last to be believed."""

    probe_every: Duration = Duration(10)
    answer_within: Duration = Duration(5)
    threshold: Duration = Duration(30)
    discover_every: Duration = Duration(60)


class _Known(NamedTuple):
    sighting: Sighting
    survey: Survey = Survey()
    probed_at: float = float("-inf")
    discovered_at: float = float("-inf")


class Members:
    def __init__(self, desk: Desk, sessions: Sessions, settings: MemberSettings) -> None:
        self._desk = desk
        self._sessions = sessions
        self._settings = settings
        self._queue = Queue("members", self._settle, settings)
        self._known: dict[str, _Known] = {}
        self._housed: set[str] = set()
        sessions.listen(self._hear)

    def notice(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.CLUSTERS:
            self._queue.add(resources.key_of(resource, record))

    async def run(self) -> None:
        await self._queue.run()

    def _hear(self, cluster: str, record: object) -> None:
        """A member that has just been listed is looked at at once."""
        if record is None and cluster in self._known:
            self._known[cluster] = self._known[cluster]._replace(probed_at=float("-inf"))
            self._queue.add(Key(CLUSTER_API_VERSION, "Cluster", "", cluster))

    async def _settle(self, key: Key) -> float | None:
        cluster = self._desk.find(resources.CLUSTERS, "", key.name)
        if cluster is None:
            self._known.pop(key.name, None)
            self._housed.discard(key.name)
            return None
        await self._house(key.name)
        if cluster.spec.sync_mode != PUSH:
            return None  # somebody in the member tells of it
        if self._sessions.get(key.name) is None and key.name not in self._sessions.troubles:
            return _OPENING
        now = asyncio.get_running_loop().time()
        known = self._known.get(key.name)
        if known is None or now - known.probed_at >= self._settings.probe_every:
            known = self._known[key.name] = await self._look(key, known, now)
        await self._write(cluster, known, now)
        self._count()
        return max(0.0, known.probed_at + self._settings.probe_every - now)

    async def _house(self, name: str) -> None:
        """Make the namespace in which the member's Works stand."""
        if name not in self._housed:
            namespace = namespace_of_works(name)
            body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self._desk.api.apply_object(resources.NAMESPACES, namespace, body)
            self._housed.add(name)

    async def _look(self, key: Key, before: _Known | None, now: float) -> _Known:
        session = self._sessions.get(key.name)
        answers, is_ready, message = await self._probe(key, session)
        self._sessions.mark(key.name, answers=answers)
        sighting = Sighting(answers, is_ready, message, now)
        if before and before.sighting[:2] == sighting[:2]:
            sighting = sighting._replace(since=before.sighting.since)
        known = (before or _Known(sighting))._replace(sighting=sighting, probed_at=now)
        if session is None or not is_ready:
            return known
        if now - known.discovered_at >= self._settings.discover_every:
            known = await _discover(known, session, now)
        if session.listed.is_set():
            room = sum_up(session.cache.of(NODE).rows(), session.cache.of(POD).rows())
            known = known._replace(survey=known.survey._replace(room=room))
        return known

    async def _probe(self, key: Key, session: Session | None) -> tuple[bool, bool, str]:
        """Ask once; whether it answers, whether it is ready, and what it says if not."""
        if session is None:
            return False, False, self._sessions.troubles.get(key.name, "no connection yet")
        try:
            await session.api.probe(within=self._settings.answer_within)
        except errors.Unauthorized as error:
            self._sessions.reopen(key)
            return True, False, error.message
        except (errors.Unreachable, errors.Unanswered) as error:
            return False, False, error.message
        except ApiError as error:
            return True, False, error.message
        except TimeoutError:
            return False, False, f"no answer within {self._settings.answer_within:g} s"
        return True, True, ""

    async def _write(self, cluster: Cluster, known: _Known, now: float) -> None:
        is_lasting = now - known.sighting.since >= self._settings.threshold
        conditions = judge(cluster, known.sighting, is_lasting=is_lasting, now=self._desk.clock())
        change = change_status(cluster, known.survey, conditions)
        if change is not None:
            cluster = await self._desk.patch(resources.CLUSTERS, cluster, change, subresource="status")
        is_tainted = wants_taint(cluster.status.conditions or ())
        if is_tainted != has_taint(cluster):
            name = cluster.metadata.name
            body = write_taints(name, CLUSTER_API_VERSION, is_tainted=is_tainted)
            await self._desk.api.apply_object(resources.CLUSTERS, name, body, manager=_TAINTING)

    def _count(self) -> None:
        clusters = self._desk.cache.of(resources.CLUSTERS.kind).rows()
        ready = (find_condition(each.status.conditions, READY) for each in clusters)
        metrics.MEMBERS_READY.set(sum(each is not None and each.status == "True" for each in ready))


async def _discover(known: _Known, session: Session, now: float) -> _Known:
    """Read what the member serves; a group that does not answer keeps the rest from being known."""
    try:
        version = await session.api.read_path("/version", subject="version")
        groups = await session.api.read_path("/apis", subject="apis")
        served = [each["groupVersion"] for group in groups["groups"] for each in group["versions"]]
        paths = {"v1": "/api/v1", **{each: f"/apis/{each}" for each in sorted(served)}}
        apis = [
            list_resources(name, await session.api.read_path(path, subject="apis"))
            for name, path in paths.items()
        ]
    except ApiError:
        return known
    survey = known.survey._replace(version=version["gitVersion"], apis=apis)
    return known._replace(survey=survey, discovered_at=now)
