"""Probes the members: readiness, API resources and capacity.

Watches Clusters. Writes their status (Ready, CompleteAPIEnablements, version, apiEnablements,
resourceSummary) and spec.id if they have changed, taints for members that are not Ready, and through
member_cleanup their namespace and finalizer. Asks membership/cluster_status, membership/lost_members and
membership/loss_brake.
"""

import asyncio
import ssl
from collections import Counter
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from federation.api import CLUSTER_API_VERSION, Cluster
from federation.controllers.membership.member_cleanup import MemberCleanup
from federation.failover.eviction_causes import EvictionCauses
from federation.failover.toleration import write_taint
from federation.hub import metrics
from federation.hub.hub import Hub, refer_to
from federation.hub.served_kinds import CORE, list_served
from federation.hub.sessions import PUSH, Session, Sessions
from federation.hub.telemetry.failover_metrics import CLUSTERS, WORD_AGE, forget_word
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.cluster_status import (
    ALL_APIS,
    COMPLETE_APIS,
    HEALTHY,
    NOT_HEALTHY,
    NOT_REACHABLE,
    NOT_USABLE,
    READY,
    SAME_MEMBER,
    STATES,
    ClusterReport,
    ProbeResult,
    change_api_condition,
    change_cluster_status,
    change_ready_condition,
    describe_apis,
    name_state,
    sum_resources,
)
from federation.membership.loss_brake import NO_BRAKE, LossBrake, find_brake
from federation.membership.lost_members import change_taints, find_loss
from federation.objects import resources
from federation.objects.conditions import find_condition
from federation.objects.names import Key
from federation.objects.template import Object
from reberth.client.events import NORMAL, WARNING
from reberth.cluster.kinds import NODE, POD, Resource
from reberth.config.settings import Section
from reberth.values import errors
from reberth.values.duration import Duration
from reberth.values.errors import ApiError
from reberth.values.text_limits import cut

_TAINTED = "TaintClusterSucceed"
_BRAKED, _UNBRAKED = "EvictionsBraked", "EvictionsUnbraked"
_IDENTITY_CHANGED = "ClusterIdentityChanged"
_OPENING = 0.2
"""Seconds to wait for a session to be opened, or to fail, after a Cluster was created."""


class LossBrakeSettings(Section, frozen=True):
    """When so many members seem to be lost that nobody is driven out of any."""

    lost_fraction: Annotated[float, Meta(gt=0, le=1)] = 0.55
    """Above this fraction of lost members the brake is on; 1 turns it off."""
    longest: Duration = Duration(3600)
    """How long it is on at most; then lost members count as lost from then on."""


class MemberSettings(QueueSettings, frozen=True):
    """How often members are probed, and how long a result must last before Ready changes."""

    workers: Annotated[int, Meta(ge=1, le=1024)] = 128
    """More than members that may all be slow at a time: one worker probes one member."""
    probe_every: Duration = Duration(10)
    answer_within: Duration = Duration(5)
    threshold: Duration = Duration(30)
    discover_every: Duration = Duration(60)
    taint_lost_members_after: Duration | None = None
    """Evict workloads from a member that was unreachable for this long; if not set, never."""
    brake: LossBrakeSettings = LossBrakeSettings()
    let_go_after: Duration = Duration(600)
    """How long a deleted Cluster waits for replacements, once all its workloads had their turn to leave."""


class _Known(NamedTuple):
    result: ProbeResult
    survey: ClusterReport = ClusterReport()
    probed_at: float = float("-inf")
    discovered_at: float = float("-inf")


class MembersController:
    """`causes` are those of the evictions from deleted Clusters; None if this process evicts nobody."""

    def __init__(
        self, hub: Hub, sessions: Sessions, settings: MemberSettings, causes: EvictionCauses | None = None
    ) -> None:
        self._hub = hub
        self._sessions = sessions
        self._settings = settings
        self._queue = WorkQueue("members", self._reconcile, settings)
        self._known_members: dict[str, _Known] = {}
        self._heard_at: dict[str, float] = {}
        self._is_braked = False
        self._cleanup = MemberCleanup(hub, causes, let_go_after=settings.let_go_after)
        sessions.listen(self._on_member_change)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.CLUSTERS:
            self._queue.add(resources.key_of(resource, record))

    async def run(self) -> None:
        await self._queue.run()

    def _on_member_change(self, cluster: str, record: object) -> None:
        """Probe a member at once when its cache is synced."""
        if record is None and cluster in self._known_members:
            self._known_members[cluster] = self._known_members[cluster]._replace(probed_at=float("-inf"))
            self._queue.add(Key(CLUSTER_API_VERSION, "Cluster", "", cluster))

    async def _reconcile(self, key: Key) -> float | None:
        cluster = self._hub.find_cluster(key.name)
        if cluster is None:
            self._forget(key.name)
            return None
        waits = [await self._update(key, cluster)]
        if cluster.metadata.deletion_timestamp is None:
            await self._cleanup.set_up(cluster)
        else:
            waits.append(await self._cleanup.clean_up(cluster))
        return min((each for each in waits if each is not None), default=None)

    def _forget(self, name: str) -> None:
        self._known_members.pop(name, None)
        self._heard_at.pop(name, None)
        forget_word(name)
        self._count()
        self._cleanup.forget(name)

    async def _update(self, key: Key, cluster: Cluster) -> float | None:
        """Probe the member when it is due, and write what has changed."""
        if cluster.spec.sync_mode != PUSH:
            return None  # an agent in the member reports it
        if self._sessions.get(key.name) is None and key.name not in self._sessions.problems:
            return _OPENING
        now = asyncio.get_running_loop().time()
        known = self._known_members.get(key.name)
        if known is None or now - known.probed_at >= self._settings.probe_every:
            known = self._known_members[key.name] = await self._look(key, cluster, known, now)
        cluster = await self._write_identity(key, await self._write(key, cluster, known, now))
        lost_in = await self._taint(key, cluster)
        self._count()
        return max(0.0, min(known.probed_at + self._settings.probe_every - now, lost_in))

    async def _look(self, key: Key, cluster: Cluster, before: _Known | None, now: float) -> _Known:
        session = self._sessions.get(key.name)
        reason, message = await self._probe(key, session)
        result = ProbeResult(reason, message, now)
        self._sessions.mark(key.name, answers=result.answers)
        self._note_word(key.name, now, answers=result.answers)
        if before and before.result.is_ready == result.is_ready:
            result = result._replace(since=before.result.since)
        known = (before or _Known(result))._replace(result=result, probed_at=now)
        if session is None or not result.is_ready:
            return known
        if now - known.discovered_at >= self._settings.discover_every:
            known = await _discover(known, cluster, session, now)
        if session.listed.is_set():
            room = sum_resources(session.cache.of(NODE).rows(), session.cache.of(POD).rows())
            known = known._replace(survey=known.survey._replace(room=room))
        return known

    async def _probe(self, key: Key, session: Session | None) -> tuple[str, str]:
        """Probe the member once; return the reason and message of Ready.

        One that answers is not lost, even if it cannot tell who it is for now.
        """
        if session is None:
            problem = self._sessions.problems.get(key.name, "no connection yet")
            return SAME_MEMBER if key.name in self._sessions.identities.owners else NOT_USABLE, problem
        if (failure := await self._call(key, session)) is not None:
            return failure
        is_known = self._sessions.identities.of(key.name) is not None
        return (HEALTHY, "") if is_known else (NOT_HEALTHY, "it has not told who it is yet")

    async def _call(self, key: Key, session: Session) -> tuple[str, str] | None:
        """Call the member; return why it is not ready."""
        try:
            await session.api.probe(within=self._settings.answer_within)
        except errors.Unauthorized as error:
            self._sessions.reopen(key)
            return NOT_USABLE, error.message
        except (errors.Unreachable, errors.Unanswered) as error:
            return NOT_USABLE if isinstance(error.__cause__, ssl.SSLError) else NOT_REACHABLE, error.message
        except ApiError as error:
            return NOT_HEALTHY, error.message
        except TimeoutError:
            return NOT_REACHABLE, f"no answer within {self._settings.answer_within:g} s"
        return None

    async def _write(self, key: Key, cluster: Cluster, known: _Known, now: float) -> Cluster:
        is_lasting = now - known.result.since >= self._settings.threshold
        ready = change_ready_condition(cluster, known.result, is_lasting=is_lasting, now=self._hub.clock())
        apis = change_api_condition(cluster, known.survey.silent, ready, now=self._hub.clock())
        conditions = ready if apis is None else apis
        written = await self._patch(cluster, change_cluster_status(cluster, ClusterReport(), conditions))
        for is_new, name in ((ready is not None, READY), (apis is not None, COMPLETE_APIS)):
            said = find_condition(written.status.conditions, name)
            if is_new and said is not None:
                self._record(key, cluster, said.reason or name, said.message or "")
        # By itself: the hub's API server may refuse what a member says of itself.
        return await self._patch(written, change_cluster_status(written, known.survey, None))

    async def _write_identity(self, key: Key, cluster: Cluster) -> Cluster:
        """Write which member the Cluster stands for."""
        identity, had = self._sessions.identities.of(key.name), cluster.spec.id
        if not identity or identity == had:
            return cluster
        metadata = {"resourceVersion": cluster.metadata.resource_version}
        change: Object = {"metadata": metadata, "spec": {"id": identity}}
        written = await self._hub.patch(resources.CLUSTERS, cluster, change)
        if had:
            self._record(key, cluster, _IDENTITY_CHANGED, f"the member is {identity} now; it was {had}")
        return written

    async def _patch(self, cluster: Cluster, change: Object | None) -> Cluster:
        if change is None:
            return cluster
        return await self._hub.patch(resources.CLUSTERS, cluster, change, subresource="status")

    async def _taint(self, key: Key, cluster: Cluster) -> float:
        """Set the taints that are due; return the seconds until the next one is."""
        lost_after, now = self._settings.taint_lost_members_after, self._hub.clock()
        brake = NO_BRAKE if lost_after is None else self._find_brake(now)
        if change := change_taints(cluster, lost_after=lost_after, now=now, brake=brake):
            written = await self._hub.patch(resources.CLUSTERS, cluster, change)
            if taints := written.spec.taints:
                self._record(key, cluster, _TAINTED, ", ".join(map(write_taint, taints)))
        loss = find_loss(cluster.status.conditions, lost_after, brake)
        return loss - now if loss is not None and loss > now else float("inf")

    def _find_brake(self, now: float) -> LossBrake:
        clusters = self._hub.cache.of(resources.CLUSTERS.kind).rows()
        said = self._settings.brake
        brake = find_brake(clusters, fraction=said.lost_fraction, longest=said.longest, now=now)
        metrics.LOSS_BRAKE.set(brake.is_on)
        if brake.is_on != self._is_braked:
            self._is_braked = brake.is_on
            note = f"{brake.lost} of {brake.members} members cannot be reached"
            for each in clusters:
                if find_loss(each.status.conditions, 0.0) is not None or not brake.is_on:
                    key = resources.key_of(resources.CLUSTERS, each)
                    self._record(key, each, _BRAKED if brake.is_on else _UNBRAKED, note)
        return brake

    def _record(self, key: Key, cluster: Cluster, reason: str, note: str) -> None:
        kind = NORMAL if reason in {HEALTHY, ALL_APIS, _UNBRAKED} else WARNING
        regarding = refer_to(key, cluster.metadata)
        self._hub.recorder.record(regarding, reason=reason, note=note, action="ProbeMember", kind=kind)

    def _note_word(self, name: str, now: float, *, answers: bool) -> None:
        """Show how old the last word of a member is, at each scrape."""
        if name not in self._heard_at:
            clock = asyncio.get_running_loop().time
            WORD_AGE.labels(name).set_function(lambda: clock() - self._heard_at.get(name, clock()))
        if answers or name not in self._heard_at:
            self._heard_at[name] = now

    def _count(self) -> None:
        clusters = self._hub.cache.of(resources.CLUSTERS.kind).rows()
        ready = (find_condition(each.status.conditions, READY) for each in clusters)
        metrics.MEMBERS_READY.set(sum(each is not None and each.status == "True" for each in ready))
        states = Counter(map(name_state, clusters))
        for state in STATES:
            CLUSTERS.labels(state).set(states[state])


async def _discover(known: _Known, cluster: Cluster, session: Session, now: float) -> _Known:
    """Read the API resources. A group version that does not answer keeps the list that it had.

    If the core does not answer either, everything stays as it was.
    """
    try:
        version = await session.api.read_path("/version", subject="version")
        served = await list_served(session.api)
    except ApiError:
        return known
    if CORE not in served.kinds:
        return known
    kinds = {name: [(each.name, each.kind) for each in kinds] for name, kinds in served.kinds.items()}
    survey = known.survey._replace(
        version=cut(str(version.get("gitVersion", ""))),
        apis=describe_apis(kinds, silent=served.silent, had=cluster.status.api_enablements or ()),
        silent=served.silent,
    )
    return known._replace(survey=survey, discovered_at=now)
