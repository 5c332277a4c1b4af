"""Keeps the labels of namespaces in members in step with those on the hub.

A namespace is created with the first object in it, and has its labels from then. Pod security is enforced by
such labels: what is made stricter on the hub must not stay lax in the members. Reads the namespaces of the
hub, and those of each member that the federation has created; writes the latter. Asks propagation/manifest.
"""

import asyncio
from typing import Any

from federation.hub.hub import Hub
from federation.hub.sessions import Session, Sessions
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects import resources
from federation.objects.names import MANAGED, Key
from federation.objects.template import ResourceTemplate
from federation.propagation.manifest import is_namespace_in_step, write_namespace
from reberth.cluster.kinds import Resource
from reberth.runtime.logs import Log
from reberth.values.duration import PositiveDuration
from reberth.values.errors import ApiError

_OURS = f"{MANAGED}=true"

log = Log(__name__)


class NamespacesSettings(QueueSettings, frozen=True):
    look_every: PositiveDuration = PositiveDuration(60)
    """How often the namespaces are compared: one list of the hub for all members, and one of each member."""


class NamespacesController:
    def __init__(self, hub: Hub, sessions: Sessions, settings: NamespacesSettings) -> None:
        self._hub = hub
        self._sessions = sessions
        self._settings = settings
        self._queue = WorkQueue("namespaces", self._reconcile, settings)
        self._reading = asyncio.Lock()
        self._templates: dict[str, ResourceTemplate] = {}
        self._read_at = float("-inf")

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.CLUSTERS:
            self._queue.add(resources.key_of(resource, record))

    async def run(self) -> None:
        await self._queue.run()

    async def _reconcile(self, key: Key) -> float | None:
        if self._hub.find_cluster(key.name) is None:
            return None
        session = self._sessions.get(key.name)
        if session is not None and self._sessions.is_usable(key.name):
            try:
                await self._compare(key.name, session)
            except ApiError as error:
                log.warning("labels of namespaces not compared", cluster=key.name, reason=str(error))
        return self._settings.look_every

    async def _compare(self, cluster: str, session: Session) -> None:
        templates = await self._read_hub()
        found = [
            one
            async for page in session.api.list_pages(resources.NAMESPACES, labelSelector=_OURS)
            for one in page.objects
        ]
        for one in found:
            name = one.metadata.name
            if name not in templates or one.metadata.deletion_timestamp is not None:
                continue
            wanted = write_namespace(templates[name])
            if not is_namespace_in_step(wanted, one.metadata.labels or {}):
                await session.api.apply_object(resources.NAMESPACES, name, wanted)
                log.info("labels of namespace changed as on the hub", cluster=cluster, namespace=name)

    async def _read_hub(self) -> dict[str, ResourceTemplate]:
        """Read the namespaces of the hub, once for all members that are compared at about the same time."""
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if now >= self._read_at + self._settings.look_every / 2:
                self._templates = {
                    one.metadata.name: one
                    async for page in self._hub.api.list_pages(resources.NAMESPACES)
                    for one in page.objects
                }
                self._read_at = now
            return self._templates
