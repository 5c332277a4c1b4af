"""Carries out WorkloadRebalancers: triggers a fresh scheduling of their workloads and reports the results.

Watches WorkloadRebalancers, and the bindings of their workloads; reads the Works of these. Writes the status
of rebalancers, and triggers with the new clusters into bindings; deletes expired rebalancers. Asks
rebalancing/review, and for a dry run planning/dry_run. The status is written before the triggers, and gathers
all results since the last one: a large rebalancer costs one call for each binding and few more.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from federation.api import ObservedWorkload, ResourceBinding, WorkloadRebalancer
from federation.controllers.rebalancing.events import RebalanceEvents
from federation.hub.hub import Hub
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.merge_patch import make_merge_patch
from federation.objects.names import Key
from federation.objects.template import Object
from federation.planning.binding_scheduler import BindingScheduler
from federation.planning.dry_run import is_answered, list_answers, write_answer
from federation.planning.handover_status import with_newest_status
from federation.planning.hub_objects import key_of_bound
from federation.planning.rebalanced_bindings import Lookup, binding_key, choose_handover
from federation.rebalancing.expiry import seconds_left
from federation.rebalancing.progress import find_waiting
from federation.rebalancing.review import (
    Limits,
    Review,
    Trigger,
    list_wanted,
    review,
    set_limits,
)
from federation.rebalancing.triggers import is_handled, with_trigger, write_trigger
from reberth.cluster.kinds import Resource
from reberth.records import ObjectMeta
from reberth.values import errors
from reberth.values.duration import Duration

_AFTER_CONFLICT = 1.0
_ENTRIES_AT_ONCE = 50
"""A status with more entries is written less often: one of 300 entries costs the API server as much as 20
bindings."""
_ANSWERS_AT_ONCE = 50
"""Of a dry run: then others have their turn."""


class RebalancerSettings(QueueSettings, frozen=True):
    gather_for: Duration = Duration(0.5)
    """Results of several bindings within this time are written at once."""
    triggers_at_once: Annotated[int, Meta(ge=1, le=256)] = 32
    handover_timeout: Duration = Duration(600)
    """How long old copies stay if a rebalancer does not say it."""


DecideTriggered = Callable[[Key, ResourceBinding], AbstractContextManager[Object]]
"""The patch to write with a trigger, within the context: the new clusters, if they can be decided at once."""


def decide_later(_: Key, __: ResourceBinding) -> AbstractContextManager[Object]:
    """Write the trigger alone: the scheduler handles it later."""
    return nullcontext({})


class RebalancerController:
    def __init__(
        self,
        hub: Hub,
        index: WorkIndex,
        settings: RebalancerSettings,
        decide_triggered: DecideTriggered = decide_later,
        *,
        fork_scheduler: Callable[[], BindingScheduler],
    ) -> None:
        """`fork_scheduler` makes the scheduler that dry runs ask."""
        self._hub = hub
        self._index = index
        self._decide_triggered = decide_triggered
        self._fork_scheduler = fork_scheduler
        self._lookup = Lookup(hub.find_binding, self._list_templates)
        self._settings = settings
        self._queue = WorkQueue("rebalancer", self._reconcile, settings)
        self._sending = asyncio.Semaphore(settings.triggers_at_once)
        self._reports = RebalanceEvents(hub)
        self._written: dict[str, WorkloadRebalancer] = {}
        self._written_at: dict[str, float] = {}
        self._asked: dict[str, set[Key]] = defaultdict(set)
        self._awaited: dict[str, set[Key]] = {}
        self._awaiting: dict[Key, set[str]] = defaultdict(set)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.REBALANCERS:
            self._await_bindings(record)
            self._queue.add(resources.key_of(resource, record))
        elif resource in resources.ALL_BINDINGS:
            key = resources.key_of(resource, record)
            for name in self._awaiting.get(key, ()):
                wait = 0.0 if self._is_last(name, key, record) else self._settings.gather_for
                self._queue.add_later(_key(name), wait)

    async def run(self) -> None:
        await self._queue.run()

    def _is_last(self, name: str, key: Key, binding: ResourceBinding) -> bool:
        """Tell whether it is the last triggered binding to be scheduled: then the status is due."""
        asked = self._asked.get(name, set())
        if key not in asked or not is_handled(binding):
            return False
        asked.remove(key)
        return not asked

    def _await_bindings(self, rebalancer: WorkloadRebalancer) -> None:
        """Remember the bindings that unfinished entries wait for."""
        name = rebalancer.metadata.name
        for key in self._awaited.pop(name, ()):
            self._awaiting[key].discard(name)
            if not self._awaiting[key]:
                del self._awaiting[key]
        if self._hub.find(resources.REBALANCERS, "", name) is None:
            return
        open_entries = (
            entry.workload
            for entry in rebalancer.status.observed_workloads or ()
            if find_waiting(entry, None) is not None
        )
        self._awaited[name] = {binding_key(workload) for workload in open_entries}
        for key in self._awaited[name]:
            self._awaiting[key].add(name)

    def _latest(self, name: str) -> WorkloadRebalancer | None:
        """Return the newest known object: the cache may not have our own last write yet."""
        cached, written = self._hub.find(resources.REBALANCERS, "", name), self._written.get(name)
        if cached is None:
            self._written.pop(name, None)
            self._written_at.pop(name, None)
            self._asked.pop(name, None)
            self._reports.forget(name)
            return None
        is_newer = written and written.metadata.uid == cached.metadata.uid and _is_newer(written, cached)
        return written if is_newer else cached

    async def _reconcile(self, key: Key) -> float | None:
        rebalancer = self._latest(key.name)
        if rebalancer is None or rebalancer.metadata.deletion_timestamp is not None:
            return None
        now, limits = self._hub.clock(), self._limits(rebalancer)
        found = await self._review(rebalancer, limits, now)
        if rest := self._seconds_to_wait(rebalancer, found):
            return rest
        rebalancer = await self._write_status(rebalancer, found)
        had_conflict = await self._send(rebalancer, found.triggers, limits)
        waits = [
            await self._expire(rebalancer),
            found.look_again - now if found.look_again is not None else None,
            _AFTER_CONFLICT if had_conflict else None,
        ]
        return min((wait for wait in waits if wait is not None), default=None)

    async def _review(self, rebalancer: WorkloadRebalancer, limits: Limits, now: float) -> Review:
        if rebalancer.spec.dry_run and is_answered(rebalancer):
            return Review(rebalancer.status)
        find = self._lookup.find_binding
        wanted = list_wanted(rebalancer, self._lookup.resolve)
        if rebalancer.spec.dry_run:
            scheduler = self._fork_scheduler()
            answers = list_answers(rebalancer, wanted, find, scheduler, limits=limits, now=now)
            return Review(write_answer(rebalancer, await _gather(answers), now=now))
        return review(rebalancer, wanted, find, limits=limits, now=now, renew=self._renew)

    def _renew(self, binding: ResourceBinding) -> ResourceBinding:
        works = self._index.of(key_of_bound(binding))
        return with_newest_status(binding, works, self._hub.find_cluster)

    def _seconds_to_wait(self, rebalancer: WorkloadRebalancer, found: Review) -> float:
        """Return how long to wait before the next status: the more entries, the less often."""
        said, new = rebalancer.status, found.status
        if found.triggers or said.finish_time != new.finish_time:
            return 0.0
        entries = len(new.observed_workloads or ())
        pause = self._settings.gather_for * max(1.0, entries / _ENTRIES_AT_ONCE)
        now = asyncio.get_running_loop().time()
        return max(0.0, self._written_at.get(rebalancer.metadata.name, -pause) + pause - now)

    def _limits(self, rebalancer: WorkloadRebalancer) -> Limits:
        return set_limits(rebalancer, timeout=self._settings.handover_timeout)

    def _list_templates(self, api_version: str, kind: str) -> Iterable[ObjectMeta]:
        resource = self._hub.catalog.find(api_version, kind)
        rows = self._hub.cache.of(resource.kind).rows() if resource else ()
        return (row.metadata for row in rows)

    async def _write_status(self, rebalancer: WorkloadRebalancer, found: Review) -> WorkloadRebalancer:
        name = rebalancer.metadata.name
        if found.status != rebalancer.status:
            old, new = msgspec.to_builtins(rebalancer.status), msgspec.to_builtins(found.status)
            version = rebalancer.metadata.resource_version
            patch = {"metadata": {"resourceVersion": version}, "status": make_merge_patch(old, new)}
            written = await self._hub.patch(resources.REBALANCERS, rebalancer, patch, subresource="status")
            self._written[name] = written
            self._written_at[name] = asyncio.get_running_loop().time()
            self._await_bindings(written)
            self._reports.tell(rebalancer, written, self._lookup.find_binding)
            rebalancer = written
        self._reports.count_waiting(name, found.waiting)
        return rebalancer

    async def _send(
        self, rebalancer: WorkloadRebalancer, triggers: Iterable[Trigger], limits: Limits
    ) -> bool:
        """Write all triggers; an error does not stop the others. Return whether one met a Conflict."""
        sent = [self._trigger(rebalancer, trigger, limits) for trigger in triggers]
        results = await asyncio.gather(*sent, return_exceptions=True)
        errors_raised = [result for result in results if isinstance(result, BaseException)]
        late = [error for error in errors_raised if isinstance(error, errors.Conflict | errors.NotFound)]
        for error in errors_raised:
            if error not in late:
                raise error
        return bool(late)

    async def _trigger(self, rebalancer: WorkloadRebalancer, trigger: Trigger, limits: Limits) -> None:
        binding = trigger.binding
        key = binding_key(trigger.workload)
        handover = choose_handover(rebalancer, binding, limits)
        self._asked[rebalancer.metadata.name].add(key)
        async with self._sending:
            triggered = with_trigger(binding, trigger.at, handover)
            with self._decide_triggered(key, triggered) as placed:
                patch = write_trigger(binding, trigger.at, handover, placed)
                await self._hub.patch(resources.binding_resource(key.kind), binding, patch)
        self._reports.tell_trigger(rebalancer, binding, trigger.at)

    async def _expire(self, rebalancer: WorkloadRebalancer) -> float | None:
        """Delete it when it has expired, with the version that was just read as precondition."""
        left = seconds_left(rebalancer, now=self._hub.clock())
        if left != 0:
            return left
        meta = rebalancer.metadata
        try:
            latest = await self._hub.api.get(resources.REBALANCERS, meta.name)
            left = seconds_left(latest, now=self._hub.clock())
            if left == 0 and latest.metadata.uid == meta.uid:
                await self._delete(latest)
        except errors.NotFound:
            return None
        return left or None

    async def _delete(self, rebalancer: WorkloadRebalancer) -> None:
        meta = rebalancer.metadata
        version = meta.resource_version
        await self._hub.api.remove_object(resources.REBALANCERS, meta.name, uid=meta.uid, version=version)


def _key(name: str) -> Key:
    return Key(resources.REBALANCERS.api_version, resources.REBALANCERS.kind.name, "", name)


async def _gather(answers: Iterable[ObservedWorkload]) -> list[ObservedWorkload]:
    """Gather answers that take time to decide; others have their turn in between."""
    gathered = []
    for answer in answers:
        gathered.append(answer)
        if len(gathered) % _ANSWERS_AT_ONCE == 0:
            await asyncio.sleep(0)
    return gathered


def _is_newer(one: WorkloadRebalancer, other: WorkloadRebalancer) -> bool:
    return int(one.metadata.resource_version) > int(other.metadata.resource_version)
