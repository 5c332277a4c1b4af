"""From Works to members: what a Work holds is written there, kept so, and taken away with the Work."""

from typing import Any

from federation.controllers import resources
from federation.controllers.desk import Desk
from federation.controllers.executing import (
    Written,
    change_status,
    drop_replicas,
    find_conflict,
    is_as_written,
    is_ours,
    key_of_manifest,
    mark_of,
    read_manifest,
    work_of,
)
from federation.controllers.keys import EXECUTION_FINALIZER, Key, cluster_of_works, namespace_of_works
from federation.controllers.queueing import Queue, QueueSettings
from federation.controllers.resources import HeldWork
from federation.controllers.sessions import Session, Sessions
from federation.controllers.templates import Object, Template
from reberth import errors
from reberth.measures import Duration
from reberth.resources import Resource

_RETAIN = "resourcetemplate.karmada.io/retain-replicas"
_REFUSALS = (errors.BadRequest, errors.Forbidden, errors.NotFound, errors.Invalid, errors.Conflict)


class ExecutionSettings(QueueSettings, frozen=True):
    try_again_every: Duration = Duration(30)
    """What a member refuses is sent again after this time, in case the member has changed."""
    look_whether_gone_every: Duration = Duration(2)


class Execution:
    def __init__(self, desk: Desk, sessions: Sessions, settings: ExecutionSettings) -> None:
        self._desk = desk
        self._sessions = sessions
        self._settings = settings
        self._queue = Queue("execution", self._settle, settings)
        self._written: dict[Key, Written] = {}
        sessions.listen(self._hear)

    def notice(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.WORKS and cluster_of_works(record.metadata.namespace):
            self._queue.add(resources.key_of(resource, record))

    async def run(self) -> None:
        await self._queue.run()

    def _hear(self, cluster: str, record: Template | None) -> None:
        """An object of a member concerns the Work that holds it; a member that is new all of its Works."""
        if record is None:
            for work in self._desk.cache.of(resources.WORKS.kind).rows().within(namespace_of_works(cluster)):
                self._queue.add(resources.key_of(resources.WORKS, work))
        elif place := work_of(record.metadata):
            self._queue.add(Key(resources.WORKS.api_version, resources.WORKS.kind.name, *place))

    async def _settle(self, key: Key) -> float | None:
        work = self._desk.find(resources.WORKS, key.namespace, key.name)
        cluster = cluster_of_works(key.namespace) or ""
        if work is None:
            self._written.pop(key, None)
            return None
        if work.metadata.deletion_timestamp is not None:
            return await self._take_away(key, work, cluster)
        session = self._sessions.get(cluster)
        if session is None or not self._sessions.is_usable(cluster) or work.spec.suspend_dispatching:
            return None
        return await self._put(key, work, session)

    async def _put(self, key: Key, work: HeldWork, session: Session) -> float | None:
        """Write the manifest where it is not as written, and tell how its object is."""
        manifest = read_manifest(work)
        target = key_of_manifest(manifest) if manifest else None
        resource = resources.find_template(target.api_version, target.kind) if target else None
        if manifest is None or target is None or resource is None:
            unknown = target or key
            await self._report(work, unknown, "", None, f"{unknown.kind}: no kind that can be propagated")
            return None
        found, trouble = session.find(resource, target.namespace, target.name), None
        manifest = drop_replicas(manifest, _RETAIN)
        if not is_as_written(self._written.get(key), manifest, found):
            found, trouble = await self._write(key, session, resource, manifest, found=found)
        await self._report(work, target, resource.name, found, trouble)
        return self._settings.try_again_every if trouble else None

    async def _write(
        self,
        key: Key,
        session: Session,
        resource: Resource[Template],
        manifest: Object,
        *,
        found: Template | None,
    ) -> tuple[Template | None, str | None]:
        """Give the object as it is afterwards, or why it was not written."""
        target = key_of_manifest(manifest)
        if found is None:
            found = await _look(session, resource, target)
        if conflict := find_conflict(manifest, found):
            return None, conflict
        try:
            found = await self._apply(session, resource, target, manifest)
        except _REFUSALS as error:
            return found, error.message
        self._written[key] = Written(manifest, found.metadata.uid, mark_of(found.metadata))
        return found, None

    async def _apply(
        self, session: Session, resource: Resource[Template], target: Key, manifest: Object
    ) -> Template:
        """Apply it; where its namespace is missing, that comes first."""
        place = {"namespace": target.namespace}
        try:
            return await session.api.apply_object(resource, target.name, manifest, **place)
        except errors.NotFound:
            if not target.namespace:
                raise
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target.namespace}}
        await session.api.apply_object(resources.NAMESPACES, target.namespace, body)
        return await session.api.apply_object(resource, target.name, manifest, **place)

    async def _take_away(self, key: Key, work: HeldWork, cluster: str) -> float | None:
        """Delete what the Work holds; it may go itself when that is gone, or nobody can look any more."""
        session = self._sessions.get(cluster)
        if session is None or not self._sessions.is_usable(cluster):
            is_left = self._desk.find(resources.CLUSTERS, "", cluster) is None
            if is_left:
                await self._release(work)
            return None if is_left else self._settings.look_whether_gone_every
        manifest = read_manifest(work)
        target = key_of_manifest(manifest) if manifest else None
        resource = resources.find_template(target.api_version, target.kind) if target else None
        if target and resource and not work.spec.preserve_resources_on_deletion:
            found = await _look(session, resource, target)
            if found is not None and is_ours(found.metadata) and work_of(found.metadata) == key[2:]:
                await _delete(session, resource, found)
                return self._settings.look_whether_gone_every
        await self._release(work)
        return None

    async def _release(self, work: HeldWork) -> None:
        left = [each for each in work.metadata.finalizers or () if each != EXECUTION_FINALIZER]
        metadata = {"finalizers": left or None, "resourceVersion": work.metadata.resource_version}
        try:
            await self._desk.patch(resources.WORKS, work, {"metadata": metadata})
        except errors.NotFound:
            return

    async def _report(
        self, work: HeldWork, key: Key, plural: str, found: Template | None, trouble: str | None
    ) -> None:
        status = change_status(work, key, plural, found, trouble, now=self._desk.clock())
        if status is not None:
            await self._desk.patch(resources.WORKS, work, status, subresource="status")


async def _look(session: Session, resource: Resource[Template], target: Key) -> Template | None:
    """Ask the member itself: its mirror may be a moment behind."""
    try:
        return await session.api.get(resource, target.name, namespace=target.namespace)
    except errors.NotFound:
        return None


async def _delete(session: Session, resource: Resource[Template], found: Template) -> None:
    meta = found.metadata
    if meta.deletion_timestamp is not None:
        return
    try:
        await session.api.remove_object(resource, meta.name, uid=meta.uid, namespace=meta.namespace)
    except errors.NotFound:
        return
