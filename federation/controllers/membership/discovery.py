"""Discovers resource kinds: a kind that a policy or Work names is looked up, and watched from then on.

Watches no objects: the kind catalog asks for kinds. Reads /api and /apis of the hub first, then of the
members; writes only the catalog, and keeps the hub's cache of learned kinds.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from federation.hub.dynamic_mirror import mirror_learned_kinds
from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.hub.sessions import Sessions
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.objects.names import Key
from federation.objects.template import ResourceTemplate
from reberth.client.watcher import WatchSettings
from reberth.cluster.kinds import Resource, plain_kind
from reberth.cluster.pods.identity import group_of
from reberth.runtime.logs import Log
from reberth.values.api_path import join_path
from reberth.values.duration import Duration
from reberth.values.errors import ApiError

log = Log(__name__)


class DiscoverySettings(QueueSettings, frozen=True):
    look_again_every: Duration = Duration(10)
    """When to look up an unknown kind again: its CRD may be created later."""


class DiscoveryController:
    """Answers requests of the kind catalog."""

    def __init__(
        self, hub: Hub, sessions: Sessions, settings: DiscoverySettings, watch: WatchSettings
    ) -> None:
        self._hub = hub
        self._sessions = sessions
        self._settings = settings
        self._watch = watch
        self._queue = WorkQueue("discovery", self._reconcile, settings)
        self._missed: set[Key] = set()
        hub.catalog.when_asked(self._request)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        """Changes of objects do not define kinds."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(
                mirror_learned_kinds(self._hub.catalog, self._hub.api, self._hub.cache, settings=self._watch)
            )

    def _request(self, api_version: str, kind: str) -> None:
        key = Key(api_version, kind, "", "")
        if key not in self._missed:
            self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        for api in self._apis():
            resource = await _look_up(api, key)
            if resource is not None:
                log.info("resource kind discovered", kind=key.kind, version=key.api_version)
                self._hub.catalog.learn(resource)
                self._missed.discard(key)
                return None
        if key not in self._missed:
            log.warning("resource kind not served by any cluster", kind=key.kind, version=key.api_version)
        self._missed.add(key)
        return self._settings.look_again_every

    def _apis(self) -> Iterator[ObjectApi]:
        yield self._hub.api
        for session in self._sessions.all():
            yield session.api


async def _look_up(api: ObjectApi, key: Key) -> Resource[ResourceTemplate] | None:
    group = group_of(key.api_version)
    try:
        path = join_path("/apis" if group else "/api", *key.api_version.split("/"))
        found = await api.read_path(path, subject="apis")
    except ApiError:
        return None
    for each in found.get("resources") or ():
        if each["kind"] == key.kind and "/" not in each["name"]:
            version = key.api_version.rpartition("/")[2]
            kind = plain_kind(key.kind, ResourceTemplate, group)
            return Resource(kind, each["name"], version, namespaced=each["namespaced"])
    return None
