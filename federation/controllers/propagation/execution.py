"""Applies Works: the manifests of a Work are applied in its member, kept so, and deleted with the Work.

Watches Works, and the copies in the members. Writes copies and their namespaces in the members, and status
and finalizer of Works. Asks propagation/work_sync; hub/member_apply makes the calls.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from federation.api import WORK_API_VERSION, Cluster, PurgeMode
from federation.api.eviction_blocks import read_application_failover
from federation.failover.health_clock import changes_failure
from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.member_apply import apply_to_member, delete_from_member, read_from_member, refuse_role
from federation.hub.sessions import Session, Sessions
from federation.hub.telemetry.step_events import COPY_APPLIED, tell_step
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.interpreters.operations import Operation
from federation.interpreters.sandbox import ScriptFailure
from federation.objects import resources
from federation.objects.contests import Contests
from federation.objects.names import (
    EXECUTION_FINALIZER,
    Key,
    binding_of,
    cluster_of_works,
    namespace_of_works,
)
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.aggregation import is_applied
from federation.propagation.work_sync import (
    AppliedManifest,
    ManifestOutcome,
    change_work_status,
    digest,
    explain_rejection,
    find_conflict,
    is_as_written,
    is_managed,
    key_of_manifest,
    list_manifests,
    mark_of,
    omit_retained_replicas,
    retain,
    uid_of_template,
    work_of,
)
from reberth.client.events import WARNING
from reberth.cluster.kinds import Resource
from reberth.records import ObjectReference
from reberth.values import errors
from reberth.values.duration import Duration
from reberth.values.timestamp import parse_time

_SYNC_FAILED, _SYNC = "SyncFailed", "Sync"
_NOT_DELETED, _LEFT, _DELETE = "DeletionRefused", "CopyLeftBehind", "Delete"
_KEPT_CHANGES = 512
_REFUSALS = (errors.BadRequest, errors.Forbidden, errors.NotFound, errors.Invalid, errors.Conflict)


class _Outcomes(NamedTuple):
    """What became of the manifests of a Work."""

    manifests: Sequence[ManifestOutcome]
    generation: int = 0
    is_suspended: bool = False


class _Change(NamedTuple):
    """The patch by which the status of this very Work tells the newest outcomes."""

    work: HeldWork
    patch: Object


class ExecutionSettings(QueueSettings, frozen=True):
    workers: Annotated[int, Meta(ge=1, le=1024)] = 128
    workers_per_member: Annotated[int, Meta(ge=1, le=256)] = 16
    """A member that answers slowly takes no more workers than this from the others."""
    try_again_every: Duration = Duration(30)
    """When to retry a manifest that a member has rejected: the member may have changed."""
    look_whether_gone_every: Duration = Duration(2)
    leave_copies_after: Duration = Duration(600)
    """How long the deletion of a copy is tried in a member whose Cluster is being deleted."""


class ExecutionController:
    """With `counts_rollouts` a copy that is being rolled out counts as failing."""

    def __init__(
        self, hub: Hub, sessions: Sessions, settings: ExecutionSettings, *, counts_rollouts: bool = False
    ) -> None:
        self._hub = hub
        self._sessions = sessions
        self._settings = settings
        self._counts_rollouts = counts_rollouts
        self._queue = WorkQueue(
            "execution",
            self._reconcile,
            settings,
            urgency=Urgency.PLACING,
            lane=lambda key: key.namespace,
            per_lane=settings.workers_per_member,
        )
        self._reports = WorkQueue("reports", self._report, settings, urgency=Urgency.REPORTING)
        self._alarms = WorkQueue("alarms", self._report, settings, urgency=Urgency.PLACING)
        self._written: dict[Key, dict[Key, AppliedManifest]] = {}
        self._outcomes: dict[Key, _Outcomes] = {}
        self._changes: dict[Key, _Change] = {}
        """What the reports queue is about to write, of some; the others are computed again."""
        self._reported: dict[Key, str] = {}
        """The versions of Works that our own reports have made, until they are seen."""
        self._contests = Contests()
        sessions.listen(self._on_member_change)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is not resources.WORKS or not cluster_of_works(record.metadata.namespace):
            return
        key = resources.key_of(resource, record)
        if self._reported.pop(key, None) != record.metadata.resource_version:
            self._queue.add(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._reports.run())
            group.create_task(self._alarms.run())

    def _on_member_change(self, cluster: str, record: ResourceTemplate | None) -> None:
        """Queue the Work of a changed copy, or all Works of a member that has just been synced."""
        if record is None:
            for work in self._hub.cache.of(resources.WORKS.kind).rows().within(namespace_of_works(cluster)):
                self._queue.add(resources.key_of(resources.WORKS, work))
        elif place := work_of(record.metadata):
            self._queue.add(Key(resources.WORKS.api_version, resources.WORKS.kind.name, *place))

    async def _reconcile(self, key: Key) -> float | None:
        work = self._hub.find(resources.WORKS, key.namespace, key.name)
        cluster = cluster_of_works(key.namespace) or ""
        if work is None:
            self._forget(key)
            return None
        if work.metadata.deletion_timestamp is not None:
            return await self._delete_copies(key, work, cluster)
        session = self._sessions.get(cluster)
        if session is None or not self._sessions.is_usable(cluster):
            return None
        if work.spec.suspend_dispatching:
            outcomes = [self._look(key, manifest, session) for manifest in list_manifests(work)]
            self._report_later(key, work, _Outcomes(outcomes, work.metadata.generation, is_suspended=True))
            return None
        return await self._put(key, work, session)

    def _forget(self, key: Key) -> None:
        for target in self._written.pop(key, {}):
            self._contests.forget((key, target))
        self._outcomes.pop(key, None)
        self._changes.pop(key, None)
        self._reported.pop(key, None)

    def _look(self, key: Key, manifest: Object | None, session: Session) -> ManifestOutcome:
        """Return what there is of a manifest that is not to be applied."""
        target = key_of_manifest(manifest) if manifest else None
        resource = self._hub.catalog.find(target.api_version, target.kind) if target else None
        if target is None or resource is None:
            return ManifestOutcome(target or key, "", None, None)
        found = session.find(resource, target.namespace, target.name)
        is_ours = found is not None and work_of(found.metadata) == key[2:]
        return ManifestOutcome(target, resource.name, found if is_ours else None, None)

    async def _put(self, key: Key, work: HeldWork, session: Session) -> float | None:
        """Apply each manifest whose copy is not as written, and report the copies' status.

        One that fails keeps none of the others from being applied.
        """
        outcomes: list[ManifestOutcome] = []
        failures: list[errors.ApiError] = []
        waits: list[float] = []
        for manifest in list_manifests(work):
            try:
                outcome, wait = await self._put_one(key, manifest, session)
            except errors.ApiError as error:
                failures.append(error)
            else:
                outcomes.append(outcome)
                waits += [wait] if wait else []
        if failures:
            raise failures[0]
        self._report_later(key, work, _Outcomes(outcomes, work.metadata.generation))
        return min(waits, default=None)

    async def _put_one(
        self, key: Key, manifest: Object | None, session: Session
    ) -> tuple[ManifestOutcome, float | None]:
        """Apply one manifest; return its outcome, and when to look at it again."""
        target = key_of_manifest(manifest) if manifest else None
        resource = self._hub.catalog.find(target.api_version, target.kind) if target else None
        if manifest is None or target is None or resource is None:
            unknown = target or key
            reason = f"{unknown.kind}: this kind cannot be propagated"
            return ManifestOutcome(unknown, "", None, reason), self._settings.try_again_every
        found, problem = session.find(resource, target.namespace, target.name), None
        kept = retain(manifest, found, self._hub.rules)
        if isinstance(kept, ScriptFailure):
            reason = f"{Operation.RETENTION}: {kept.reason}"
            return ManifestOutcome(target, resource.name, found, reason), self._settings.try_again_every
        manifest = kept
        written = self._written.get(key, {}).get(target)
        wanted, subject, now = omit_retained_replicas(manifest, found), (key, target), self._hub.clock()
        if not is_as_written(written, wanted, found):
            is_put_back = written is not None and written.digest == digest(wanted)
            wait = self._contests.seconds_left(subject, now=now) if is_put_back else 0.0
            if not wait:
                before = found.metadata.resource_version if found else ""
                found, problem = await self._write(key, session, resource, manifest, found=found)
                if is_put_back and found is not None and found.metadata.resource_version != before:
                    self._contests.count(subject, now=now)
        calm = self._contests.seconds_to_calm(subject, now=now)
        waits = (
            self._settings.try_again_every if problem else 0.0,
            self._contests.seconds_left(subject, now=now) or calm,
        )
        outcome = ManifestOutcome(
            target, resource.name, found, problem, uid_of_template(manifest), is_contested=calm > 0
        )
        return outcome, min((each for each in waits if each), default=None)

    async def _write(
        self,
        key: Key,
        session: Session,
        resource: Resource[ResourceTemplate],
        manifest: Object,
        *,
        found: ResourceTemplate | None,
    ) -> tuple[ResourceTemplate | None, str | None]:
        """Return the object after the write, or why it was not written."""
        target = key_of_manifest(manifest)
        if found is None:
            found = await read_from_member(session, resource, target)
        conflict = find_conflict(manifest, found)
        conflict = conflict or await refuse_role(session, manifest)
        if conflict:
            return None, conflict
        try:
            there = await apply_to_member(session, resource, manifest, found=found, hub_api=self._hub.api)
        except _REFUSALS as error:
            return found, explain_rejection(error, target)
        self._written.setdefault(key, {})[target] = AppliedManifest(
            digest(omit_retained_replicas(manifest, found)), there.metadata.uid, mark_of(there.metadata)
        )
        return there, None

    async def _delete_copies(self, key: Key, work: HeldWork, cluster: str) -> float | None:
        """Delete the copies; release the Work when they are gone, or if its Cluster is gone as well."""
        there = self._hub.find_cluster(cluster)
        is_left = there is None or there.metadata.deletion_timestamp is not None
        session = self._sessions.get(cluster)
        if session is None or not self._sessions.is_usable(cluster):
            if is_left:
                await self._release(work)
            return None if is_left else self._settings.look_whether_gone_every
        refusals, is_one_left = [], False
        for manifest in () if work.spec.preserve_resources_on_deletion else list_manifests(work):
            to_the_end = self._waits_for_pods(work, cluster)
            is_gone, refusal = await self._delete_copy(key, session, manifest, to_the_end=to_the_end)
            is_one_left = is_one_left or not is_gone
            refusals += [refusal] if refusal else []
        if is_one_left and not (is_left and self._is_given_up(work)):
            for refusal in refusals:
                self._record(work, _NOT_DELETED, f"{cluster}: {refusal}", there)
            return self._settings.try_again_every if refusals else self._settings.look_whether_gone_every
        if is_one_left:
            note = f"{cluster} is being deleted; what it did not delete in time is left there"
            self._record(work, _LEFT, "; ".join([note, *refusals]), there)
        await self._release(work)
        return None

    def _is_given_up(self, work: HeldWork) -> bool:
        deleted_at = parse_time(work.metadata.deletion_timestamp or "")
        return self._hub.clock() >= deleted_at + self._settings.leave_copies_after

    def _waits_for_pods(self, work: HeldWork, cluster: str) -> bool:
        """Tell whether the next copy waits for the end of the last pod of this one: it is purged directly."""
        key = binding_of(work.metadata, WORK_API_VERSION)
        binding = self._hub.find_binding(key) if key else None
        tasks = binding.spec.graceful_eviction_tasks or () if binding else ()
        return any(each.from_cluster == cluster and each.purge_mode is PurgeMode.DIRECTLY for each in tasks)

    async def _delete_copy(
        self, key: Key, session: Session, manifest: Object | None, *, to_the_end: bool
    ) -> tuple[bool, str | None]:
        """Delete one copy if it is ours; return whether it is gone, and why the member refuses."""
        target = key_of_manifest(manifest) if manifest else None
        resource = self._hub.catalog.find(target.api_version, target.kind) if target else None
        if target is None or resource is None:
            return not (target and resources.can_be_propagated(target.api_version, target.kind)), None
        try:
            found = await read_from_member(session, resource, target)
            if found is None or not is_managed(found.metadata) or work_of(found.metadata) != key[2:]:
                return True, None
            await delete_from_member(session, resource, found, to_the_end=to_the_end)
        except _REFUSALS as error:
            return False, f"{target}: {explain_rejection(error, target)}"
        return False, None

    async def _release(self, work: HeldWork) -> None:
        left = [each for each in work.metadata.finalizers or () if each != EXECUTION_FINALIZER]
        metadata = {"finalizers": left or None, "resourceVersion": work.metadata.resource_version}
        try:
            await self._hub.patch(resources.WORKS, work, {"metadata": metadata})
        except errors.NotFound:
            return

    def _report_later(self, key: Key, work: HeldWork, found: _Outcomes) -> None:
        """Keep the outcomes; they are written at a lower urgency, unless a failover depends on them."""
        self._outcomes[key] = found
        self._changes.pop(key, None)
        change = self._change(work, found)
        if change is not None:
            if len(self._changes) < _KEPT_CHANGES:
                self._changes[key] = _Change(work, change)
            (self._alarms if self._is_alarm(work, change) else self._reports).add(key)

    def _change(self, work: HeldWork, found: _Outcomes) -> Object | None:
        return change_work_status(
            work,
            found.manifests,
            now=self._hub.clock(),
            is_suspended=found.is_suspended,
            rules=self._hub.rules,
            generation=found.generation,
            counts_rollouts=self._counts_rollouts,
        )

    def _is_alarm(self, work: HeldWork, change: Object) -> bool:
        """Tell whether a workload that fails over begins or ceases to fail: it would leave for old news."""
        key = binding_of(work.metadata, WORK_API_VERSION)
        binding = self._hub.find_binding(key) if key else None
        if binding is None or read_application_failover(binding) is None:
            return False
        return changes_failure(work.status.conditions, change["status"].get("conditions", ()))

    async def _report(self, key: Key) -> None:
        await self._hub.api.wait_for_turn()
        work, found = self._hub.find(resources.WORKS, key.namespace, key.name), self._outcomes.get(key)
        known = self._changes.pop(key, None)
        if work is None or found is None or work.metadata.deletion_timestamp is not None:
            return
        is_known = known is not None and known.work is work
        status = known.patch if known and is_known else self._change(work, found)
        if status is None:
            return
        told = await self._hub.patch(resources.WORKS, work, status, subresource="status")
        if self._hub.find(resources.WORKS, key.namespace, key.name) is told:
            self._reported[key] = told.metadata.resource_version
        if "conditions" in status["status"]:
            self._record_outcomes(work, found)

    def _record_outcomes(self, work: HeldWork, found: _Outcomes) -> None:
        """Record what was not applied; and that everything was, if it is so for the first time."""
        for outcome in found.manifests:
            if outcome.problem:
                self._record_failure(work, outcome)
        if found.is_suspended or is_applied(work) or any(each.problem for each in found.manifests):
            return
        cluster, meta = cluster_of_works(work.metadata.namespace), type(work.metadata)
        for each in found.manifests:
            both = _refer_to(work), refer_to(each.target, meta(uid=each.uid))
            tell_step(self._hub, COPY_APPLIED, *both, copy=each.target, cluster=cluster)

    def _record_failure(self, work: HeldWork, outcome: ManifestOutcome) -> None:
        """Record an Event on the Work and on the template."""
        meta = work.metadata
        note = f"Failed to sync workload to cluster({cluster_of_works(meta.namespace)}): {outcome.problem}"
        for regarding in (_refer_to(work), refer_to(outcome.target, type(meta)(uid=outcome.uid))):
            self._hub.recorder.record(regarding, reason=_SYNC_FAILED, note=note, action=_SYNC, kind=WARNING)

    def _record(self, work: HeldWork, reason: str, note: str, cluster: Cluster | None) -> None:
        """Record an Event on the Work and on its Cluster."""
        key = resources.key_of(resources.CLUSTERS, cluster) if cluster else None
        for regarding in (_refer_to(work), refer_to(key, cluster.metadata) if key and cluster else None):
            if regarding:
                self._hub.recorder.record(regarding, reason=reason, note=note, action=_DELETE, kind=WARNING)


def _refer_to(work: HeldWork) -> ObjectReference:
    return refer_to(resources.key_of(resources.WORKS, work), work.metadata)
