"""Gives replicas that get no node in their member to clusters with room; those that are available stay.

Watches the pods of members at an interval, Works, bindings and Clusters. Writes the condition Unschedulable
of Works, and `spec.clusters` of bindings with the note of what was taken from where. Asks
planning/failover/pending_replicas. Off unless `longerThan` is set.
"""

import asyncio
from collections import defaultdict
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
from federation.hub.sessions import Session, Sessions
from federation.hub.telemetry import application_metrics as metrics
from federation.hub.telemetry.step_events import refer_to_template
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.conditions import put_condition
from federation.objects.names import Key, binding_of, cluster_of_works
from federation.objects.resources import HeldWork
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.failover.pending_replicas import Gift, NoGift, find_gift, list_stuck, write_gift
from reberth.client.events import NORMAL, WARNING
from reberth.client.lease import LeaseLost
from reberth.cluster.kinds import Resource
from reberth.cluster.rows import PodRow
from reberth.runtime.faults import FAULTS
from reberth.runtime.logs import Log
from reberth.values.duration import Duration, PositiveDuration
from reberth.values.errors import Conflict, ReberthError
from reberth.values.object_error import ObjectError
from reberth.values.refusal import describe_fault

log = Log(__name__)

_NAME = "pendingReplicas"
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
        self._since: defaultdict[str, WaitingSince] = defaultdict(WaitingSince)
        self._seen: set[str] = set()
        self._told: defaultdict[str, set[Place]] = defaultdict(set)
        self._stuck: dict[Key, int] = {}
        self._held: dict[Key, str] = {}
        self._looks = WorkQueue("pendingPods", self._look, settings, urgency=Urgency.REPORTING)
        self._gifts = WorkQueue(_NAME, self._give, settings, urgency=Urgency.SCHEDULING)

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
            self._told[cluster].add((work.metadata.namespace, work.metadata.name))
        key = binding_of(work.metadata, WORK_API_VERSION)
        if key and (told.stuck or key in self._stuck):
            self._gifts.add(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._looks.run())
            group.create_task(self._gifts.run())

    async def _look(self, key: Key) -> float | None:
        """Look at the pods of a member, and tell the Works of their copies what has changed."""
        cluster = key.name
        if self._hub.find_cluster(cluster) is None:
            self._since.pop(cluster, None)
            self._told.pop(cluster, None)
            self._seen.discard(cluster)
            return None
        session = self._sessions.get(cluster)
        if session is None or not self._sessions.is_usable(cluster):
            return self._settings.look_every
        # The clock of the day may be put right at any time.
        pending, now = list_pending(self._hub, cluster, session), asyncio.get_running_loop().time()
        self._since[cluster].observe((row.uid for rows in pending.values() for row in rows), now=now)
        for place in sorted(pending.keys() | self._told[cluster]):
            await self._tell_alone(cluster, session, place, pending.get(place, []))
        self._seen.add(cluster)
        return self._settings.look_every

    async def _tell_alone(self, cluster: str, session: Session, place: Place, rows: list[PodRow]) -> None:
        """Contain what is wrong with one copy: the next look at the member tries it again."""
        subject = "/".join(place)
        try:
            await self._tell(cluster, session, place, rows)
        except LeaseLost:
            raise
        except Conflict:
            return
        except (ReberthError, ObjectError) as error:
            log.warning("pods without a node are not told", work=subject, reason=str(error))
        except Exception as error:  # noqa: BLE001 - it is about this copy alone, and is logged
            FAULTS.note(_NAME, subject, describe_fault(error), error=error)

    async def _tell(self, cluster: str, session: Session, place: Place, rows: list[PodRow]) -> None:
        work, now, longest = (
            self._hub.find(resources.WORKS, *place),
            self._hub.clock(),
            self._rules.longer_than,
        )
        if work is None or work.metadata.deletion_timestamp is not None:
            self._told[cluster].discard(place)
            return
        uids, since = [row.uid for row in rows], self._since[cluster]
        pods = since.count(uids, longer_than=longest) if uids else WaitingPods()
        if is_rolled_out(session, rows):
            pods = pods._replace(stuck=0, first=0)
        told = tell_pending(
            work.status.conditions,
            pods,
            lambda: explain_pending(session, rows[0], now=now),
            longer_than=longest,
        )
        if told is None:
            return
        conditions = put_condition(work.status.conditions, told, now=now)
        metadata = {"resourceVersion": work.metadata.resource_version}
        change = {"metadata": metadata, "status": {"conditions": conditions}}
        await self._hub.patch(resources.WORKS, work, change, subresource="status")
        if not pods.seen:
            self._told[cluster].discard(place)

    async def _give(self, key: Key) -> float | None:
        """Give what is stuck to other clusters, if they have room for it."""
        binding = self._hub.find_binding(key)
        self._note(key, self._count_stuck(key, binding) if binding else 0)
        if binding is None or not self._is_told(key):
            return None
        found = self._find_gift(key, binding)
        if isinstance(found, Gift):
            await self._write(key, binding, found)
        elif isinstance(found, NoGift) and self._held.get(key) != found.message:
            self._held[key] = found.message
            self._record(key, binding, _HELD, found.message, WARNING)
        return self._settings.look_again

    def _count_stuck(self, key: Key, binding: ResourceBinding) -> int:
        works, find, now = self._list_seen(key), self._hub.find_cluster, self._hub.clock()
        return sum(list_stuck(binding, works, find, rules=self._rules, now=now).values())

    def _list_seen(self, key: Key) -> dict[str, HeldWork]:
        """Return the Works of members at which this process has looked: any others may tell old news."""
        return {name: work for name, work in self._index.of(key).items() if name in self._seen}

    def _is_told(self, key: Key) -> bool:
        """Tell whether replicas are stuck by what is told; they may not count yet, which only time ends."""
        return any(read_pending(work.status.conditions).stuck for work in self._index.of(key).values())

    def _find_gift(self, key: Key, binding: ResourceBinding) -> Gift | NoGift | None:
        works, find, now = self._list_seen(key), self._hub.find_cluster, self._hub.clock()
        return find_gift(key, binding, works, find, self._scheduler, rules=self._rules, now=now)

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
