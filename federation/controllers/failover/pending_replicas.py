"""Gives replicas that get no node in their member to clusters with room; those that are available stay.

Watches the pods of members at an interval, Works, bindings and Clusters. Writes the condition Unschedulable
of Works, and `spec.clusters` of bindings with the note of what was taken from where. Asks
planning/failover/pending_replicas. Off unless `longerThan` is set.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any

from msgspec import Meta

from federation.api import WORK_API_VERSION, ResourceBinding
from federation.controllers.failover.pending_pods import Place, explain_pending, is_rolled_out, list_pending
from federation.failover.pending_replicas import (
    PendingRules,
    WaitingPods,
    WaitingSince,
    read_pending,
    tell_pending,
)
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.sessions import Sessions
from federation.hub.telemetry import application_metrics as metrics
from federation.hub.telemetry.step_events import refer_to_template
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.conditions import put_condition
from federation.objects.names import Key, binding_of, cluster_of_works
from federation.objects.resources import HeldWork
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.failover.pending_replicas import (
    Gift,
    NoGift,
    Replicas,
    find_gift,
    list_stuck,
    write_gift,
)
from reberth.client.events import NORMAL, WARNING
from reberth.cluster.kinds import Resource
from reberth.cluster.rows import PodRow
from reberth.records import Condition
from reberth.values.duration import Duration, PositiveDuration

_GIVEN, _HELD, _ACTION = "PendingReplicasGiven", "PendingReplicasHeld", "GivePendingReplicas"


class PendingReplicasSettings(QueueSettings, frozen=True):
    workers: Annotated[int, Meta(ge=1, le=1)] = 1
    longer_than: Duration | None = None
    """Give replicas elsewhere that have had no node for this long; if not set, never."""
    look_every: PositiveDuration = PositiveDuration(10)
    block_for: Duration = Duration(600)
    """For how long the cluster from which they were taken is given none."""
    look_again: PositiveDuration = PositiveDuration(30)

    def rules(self) -> PendingRules | None:
        return None if self.longer_than is None else PendingRules(self.longer_than, self.block_for)


@dataclass
class _Member:
    """The pods of a member that have no node, as the last look found them, by the Work of their copy."""

    since: WaitingSince = field(default_factory=WaitingSince)
    pods: dict[Place, list[PodRow]] | None = None
    told: set[Place] = field(default_factory=set)
    """Works that tell of such pods."""
    known: set[Place] = field(default_factory=set)
    """Works that tell what this process has seen: any others may tell old news."""


class PendingReplicasController:
    def __init__(
        self,
        hub: Hub,
        index: WorkIndex,
        sessions: Sessions,
        scheduler: BindingScheduler,
        settings: PendingReplicasSettings,
    ) -> None:
        self._hub = hub
        self._index = index
        self._sessions = sessions
        self._scheduler = scheduler
        self._settings = settings
        self._rules = settings.rules() or PendingRules(inf)
        self._members: defaultdict[str, _Member] = defaultdict(_Member)
        self._stuck: dict[Key, int] = {}
        self._held: dict[Key, str] = {}
        self._looks = WorkQueue("pendingPods", self._look, settings, urgency=Urgency.REPORTING)
        self._tells = WorkQueue("pendingPodsTold", self._tell, settings, urgency=Urgency.REPORTING)
        self._gifts = WorkQueue("pendingReplicas", self._give, settings, urgency=Urgency.SCHEDULING)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.CLUSTERS:
            self._looks.add(resources.key_of(resource, record))
        elif resource is resources.WORKS:
            self._on_work(record)
        elif (
            resource in resources.ALL_BINDINGS and (key := resources.key_of(resource, record)) in self._stuck
        ):
            self._gifts.add(key)

    def _on_work(self, work: HeldWork) -> None:
        told, cluster = read_pending(work.status.conditions), cluster_of_works(work.metadata.namespace)
        if cluster and told.waiting:
            self._members[cluster].told.add(_place_of(work))
        key = binding_of(work.metadata, WORK_API_VERSION)
        if key and (told.stuck or key in self._stuck):
            self._gifts.add(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._looks.run())
            group.create_task(self._tells.run())
            group.create_task(self._gifts.run())

    async def _look(self, key: Key) -> float | None:
        """Look at the pods of a member, and have the Works of their copies tell what has changed."""
        if self._hub.find_cluster(key.name) is None:
            self._members.pop(key.name, None)
            return None
        session, member = self._sessions.get(key.name), self._members[key.name]
        member.known = {place for place in member.known if self._hub.find(resources.WORKS, *place)}
        if session is not None and self._sessions.is_usable(key.name):
            member.pods = list_pending(self._hub, key.name, session)
            uids = (row.uid for rows in member.pods.values() for row in rows)
            # The clock of the day may be put right at any time.
            member.since.observe(uids, now=asyncio.get_running_loop().time())
            for namespace, name in sorted(member.pods.keys() | member.told):
                self._tells.add(Key(WORK_API_VERSION, resources.WORKS.kind.name, namespace, name))
        return self._settings.look_every

    async def _tell(self, key: Key) -> None:
        """Have a Work tell of the pods of its copy as the last look found them."""
        place, cluster = (key.namespace, key.name), cluster_of_works(key.namespace) or ""
        work, session, member = (
            self._hub.find(resources.WORKS, *place),
            self._sessions.get(cluster),
            self._members[cluster],
        )
        if session is None or member.pods is None:
            return
        if work is None or work.metadata.deletion_timestamp is not None:
            member.told.discard(place)
            return
        rows, now, longest = member.pods.get(place, []), self._hub.clock(), self._rules.longer_than
        pods = member.since.count((row.uid for row in rows), longer_than=longest) if rows else WaitingPods()
        if is_rolled_out(session, rows):
            pods = pods._replace(stuck=0, first=0)
        told = tell_pending(
            work.status.conditions,
            pods,
            lambda: explain_pending(session, rows[0], now=now),
            longer_than=longest,
        )
        if told is not None:
            await self._write_condition(work, told, now=now)
        elif place not in member.known:
            self._on_work(work)
        member.known.add(place)
        if not rows:
            member.told.discard(place)

    async def _write_condition(self, work: HeldWork, told: Condition, *, now: float) -> None:
        conditions = put_condition(work.status.conditions, told, now=now)
        metadata = {"resourceVersion": work.metadata.resource_version}
        change = {"metadata": metadata, "status": {"conditions": conditions}}
        await self._hub.patch(resources.WORKS, work, change, subresource="status")

    async def _give(self, key: Key) -> float | None:
        """Give what is stuck to other clusters, if they have room for it."""
        binding, now = self._hub.find_binding(key), self._hub.clock()
        stuck = self._list_stuck(key, binding, now=now) if binding else {}
        self._note(key, sum(stuck.values()))
        if binding is None or not self._is_told(key):
            return None
        found = find_gift(key, binding, stuck, self._scheduler, rules=self._rules, now=now)
        if isinstance(found, Gift):
            await self._write(key, binding, found)
        elif isinstance(found, NoGift) and self._held.get(key) != found.message:
            self._held[key] = found.message
            self._record(key, binding, _HELD, found.message, WARNING)
        return self._settings.look_again

    def _list_stuck(self, key: Key, binding: ResourceBinding, *, now: float) -> Replicas:
        works = self._index.of(key).items()
        known = {name: work for name, work in works if _place_of(work) in self._members[name].known}
        return list_stuck(binding, known, self._hub.find_cluster, rules=self._rules, now=now)

    def _is_told(self, key: Key) -> bool:
        """Tell whether replicas are stuck by what is told; they may not count yet, which only time ends."""
        return any(read_pending(work.status.conditions).stuck for work in self._index.of(key).values())

    async def _write(self, key: Key, binding: ResourceBinding, gift: Gift) -> None:
        change, now = self._scheduler.change(gift.reduced, gift.decision), self._hub.clock()
        if change is None:
            return
        with self._scheduler.reserving(key, gift.reduced, gift.decision, now=now):
            patch = write_gift(binding, gift, change, self._rules, now=now)
            await self._hub.patch(resources.binding_resource(key.kind), binding, patch)
        metrics.PENDING_GIVEN.inc(gift.total)
        why = {name: read_pending(work.status.conditions).why for name, work in self._index.of(key).items()}
        told = "; ".join(f"{count} of {name}: {why.get(name, '')}" for name, count in gift.taken.items())
        self._record(key, binding, _GIVEN, f"Replicas without a node go to other clusters: {told}", NORMAL)

    def _note(self, key: Key, count: int) -> None:
        self._stuck.pop(key, None)
        if count:
            self._stuck[key] = count
        else:
            self._held.pop(key, None)
        metrics.PENDING.set(sum(self._stuck.values()))

    def _record(self, key: Key, binding: ResourceBinding, reason: str, note: str, kind: str) -> None:
        for regarding in (refer_to(key, binding.metadata), refer_to_template(binding)):
            self._hub.recorder.record(regarding, reason=reason, note=note, action=_ACTION, kind=kind)


def _place_of(work: HeldWork) -> Place:
    return work.metadata.namespace, work.metadata.name
