"""Applies Works: the manifest of a Work is applied in its member, kept so, and deleted with the Work.

Watches Works, and the copies in the members. Writes copies and their namespaces in the members, and status
and finalizer of Works. Asks propagation/work_sync; hub/member_apply makes the calls.
"""

import asyncio
from typing import Any, NamedTuple

from federation.hub.call_priority import Urgency
from federation.hub.hub import Hub, refer_to
from federation.hub.member_apply import apply_to_member, delete_from_member, read_from_member
from federation.hub.sessions import Session, Sessions
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import EXECUTION_FINALIZER, Key, cluster_of_works, namespace_of_works
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.work_sync import (
    AppliedManifest,
    change_work_status,
    digest,
    explain_rejection,
    find_conflict,
    find_foreign_role,
    is_as_written,
    is_managed,
    key_of_bound_role,
    key_of_manifest,
    mark_of,
    omit_retained_replicas,
    read_manifest,
    uid_of_template,
    work_of,
)
from reberth.client.events import WARNING
from reberth.cluster.kinds import Resource
from reberth.values import errors
from reberth.values.duration import Duration

_SYNC_FAILED, _SYNC = "SyncFailed", "Sync"
_REFUSALS = (errors.BadRequest, errors.Forbidden, errors.NotFound, errors.Invalid, errors.Conflict)


class _Outcome(NamedTuple):
    """The outcome of a Work: its object, or why it could not be applied."""

    target: Key
    plural: str
    found: ResourceTemplate | None
    problem: str | None


class ExecutionSettings(QueueSettings, frozen=True):
    try_again_every: Duration = Duration(30)
    """When to retry a manifest that a member has rejected: the member may have changed."""
    look_whether_gone_every: Duration = Duration(2)


class ExecutionController:
    def __init__(self, hub: Hub, sessions: Sessions, settings: ExecutionSettings) -> None:
        self._hub = hub
        self._sessions = sessions
        self._settings = settings
        self._queue = WorkQueue("execution", self._reconcile, settings, urgency=Urgency.PLACING)
        self._reports = WorkQueue("reports", self._report, settings, urgency=Urgency.REPORTING)
        self._written: dict[Key, AppliedManifest] = {}
        self._outcomes: dict[Key, _Outcome] = {}
        sessions.listen(self._on_member_change)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.WORKS and cluster_of_works(record.metadata.namespace):
            self._queue.add(resources.key_of(resource, record))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._reports.run())

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
            self._written.pop(key, None)
            self._outcomes.pop(key, None)
            return None
        if work.metadata.deletion_timestamp is not None:
            return await self._delete_copy(key, work, cluster)
        session = self._sessions.get(cluster)
        if session is None or not self._sessions.is_usable(cluster) or work.spec.suspend_dispatching:
            return None
        return await self._put(key, work, session)

    async def _put(self, key: Key, work: HeldWork, session: Session) -> float | None:
        """Apply the manifest if the copy is not as written, and report the copy's status."""
        manifest = read_manifest(work)
        target = key_of_manifest(manifest) if manifest else None
        resource = self._hub.catalog.find(target.api_version, target.kind) if target else None
        if manifest is None or target is None or resource is None:
            unknown = target or key
            reason = f"{unknown.kind}: this kind cannot be propagated"
            self._report_later(key, work, _Outcome(unknown, "", None, reason))
            return self._settings.try_again_every
        found, problem = session.find(resource, target.namespace, target.name), None
        if not is_as_written(self._written.get(key), omit_retained_replicas(manifest, found), found):
            found, problem = await self._write(key, session, resource, manifest, found=found)
        self._report_later(key, work, _Outcome(target, resource.name, found, problem))
        return self._settings.try_again_every if problem else None

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
        if conflict := find_conflict(manifest, found) or await self._refuse_role(session, manifest):
            return None, conflict
        try:
            there = await apply_to_member(session, resource, manifest, found=found, hub_api=self._hub.api)
        except _REFUSALS as error:
            return found, explain_rejection(error, target)
        self._written[key] = AppliedManifest(
            digest(omit_retained_replicas(manifest, found)), there.metadata.uid, mark_of(there.metadata)
        )
        return there, None

    async def _refuse_role(self, session: Session, manifest: Object) -> str | None:
        """Refuse to grant a role of the member that only has the name of one here."""
        key = key_of_bound_role(manifest)
        resource = self._hub.catalog.find(key.api_version, key.kind) if key else None
        if key is None or resource is None:
            return None
        return find_foreign_role(key, await read_from_member(session, resource, key))

    async def _delete_copy(self, key: Key, work: HeldWork, cluster: str) -> float | None:
        """Delete the copy; release the Work when it is gone, or if its Cluster is gone as well."""
        session = self._sessions.get(cluster)
        if session is None or not self._sessions.is_usable(cluster):
            there = self._hub.find(resources.CLUSTERS, "", cluster)
            is_left = there is None or there.metadata.deletion_timestamp is not None
            if is_left:
                await self._release(work)
            return None if is_left else self._settings.look_whether_gone_every
        manifest = read_manifest(work)
        target = key_of_manifest(manifest) if manifest else None
        resource = self._hub.catalog.find(target.api_version, target.kind) if target else None
        if target and not resource and resources.can_be_propagated(target.api_version, target.kind):
            return self._settings.look_whether_gone_every
        if target and resource and not work.spec.preserve_resources_on_deletion:
            found = await read_from_member(session, resource, target)
            if found is not None and is_managed(found.metadata) and work_of(found.metadata) == key[2:]:
                await delete_from_member(session, resource, found)
                return self._settings.look_whether_gone_every
        await self._release(work)
        return None

    async def _release(self, work: HeldWork) -> None:
        left = [each for each in work.metadata.finalizers or () if each != EXECUTION_FINALIZER]
        metadata = {"finalizers": left or None, "resourceVersion": work.metadata.resource_version}
        try:
            await self._hub.patch(resources.WORKS, work, {"metadata": metadata})
        except errors.NotFound:
            return

    def _report_later(self, key: Key, work: HeldWork, outcome: "_Outcome") -> None:
        """Keep the outcome; the reports queue writes it at a lower urgency."""
        self._outcomes[key] = outcome
        if change_work_status(work, *outcome, now=self._hub.clock()) is not None:
            self._reports.add(key)

    async def _report(self, key: Key) -> None:
        await self._hub.api.wait_for_turn()
        work, outcome = self._hub.find(resources.WORKS, key.namespace, key.name), self._outcomes.get(key)
        if work is None or outcome is None or work.metadata.deletion_timestamp is not None:
            return
        status = change_work_status(work, *outcome, now=self._hub.clock())
        if status is None:
            return
        await self._hub.patch(resources.WORKS, work, status, subresource="status")
        if outcome.problem and "conditions" in status["status"]:
            self._record_failure(work, outcome.target, outcome.problem)

    def _record_failure(self, work: HeldWork, key: Key, problem: str) -> None:
        """Record an Event on the Work and on the template."""
        meta = work.metadata
        here = Key(resources.WORKS.api_version, resources.WORKS.kind.name, meta.namespace, meta.name)
        note = f"Failed to sync workload to cluster({cluster_of_works(meta.namespace)}): {problem}"
        for regarding in (refer_to(here, meta), refer_to(key, type(meta)(uid=uid_of_template(work)))):
            self._hub.recorder.record(regarding, reason=_SYNC_FAILED, note=note, action=_SYNC, kind=WARNING)
