"""Discovers resource kinds: a kind that a policy or Work names is looked up, and watched from then on.

The kind catalog asks for kinds, and the policies in the cache tell which are still wanted. Reads /apis of the
hub first, then of the members; writes only the catalog, and keeps the hub's cache of learned kinds.

Anybody who may write a policy can name kinds that do not exist. So kinds are looked up together: one call
says which group versions there are, and only those are read. The calls come after all others, and what is not
found is looked up again after pauses that double.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Any

from federation.hub.call_priority import URGENCY, Urgency
from federation.hub.dynamic_mirror import mirror_learned_kinds
from federation.hub.hub import Hub
from federation.hub.kind_catalog import KindCatalog
from federation.hub.object_api import ObjectApi
from federation.hub.served_kinds import list_served
from federation.hub.sessions import Sessions
from federation.objects import resources
from federation.objects.template import ResourceTemplate
from reberth.client.watcher import WatchSettings
from reberth.cluster.kinds import Resource, plain_kind
from reberth.cluster.pods.identity import group_of
from reberth.config.settings import Section
from reberth.runtime.faults import handling
from reberth.runtime.logs import Log
from reberth.values.duration import Duration
from reberth.values.errors import ApiError

log = Log(__name__)

_MOST_ASKED = 1_000
"""Kinds that Works and bindings have asked for; they ask again as long as they want one."""
_GATHER = 0.2
_NAMED = 20
"""Kinds that are not found and are named in the log at a time."""

WantedKind = tuple[str, str]
"""An API version and a kind."""


class DiscoverySettings(Section, frozen=True):
    look_again_every: Duration = Duration(10)
    """When to look for an unknown kind again; twice as long each time nothing was found."""
    look_again_at_most: Duration = Duration(60)
    """The longest pause between two looks."""


class DiscoveryController:
    """Answers requests of the kind catalog."""

    def __init__(
        self, hub: Hub, sessions: Sessions, settings: DiscoverySettings, watch: WatchSettings
    ) -> None:
        self._hub = hub
        self._sessions = sessions
        self._settings = settings
        self._watch = watch
        self._asked: dict[WantedKind, None] = {}  # the latest come last
        self._missed: frozenset[WantedKind] = frozenset()  # the hub does not serve them
        self._is_asked = asyncio.Event()
        hub.catalog.when_asked(self._request)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        """Changes of objects do not define kinds."""

    async def run(self) -> None:
        kinds, hub = self._hub.catalog.on_hub, self._hub
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_forever())
            group.create_task(mirror_learned_kinds(kinds, hub.api, hub.cache, settings=self._watch))

    def _request(self, api_version: str, kind: str) -> None:
        wanted = (api_version, kind)
        self._asked.pop(wanted, None)
        self._asked[wanted] = None
        if len(self._asked) > _MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        if wanted not in self._missed:
            self._is_asked.set()

    async def _look_forever(self) -> None:
        URGENCY.set(Urgency.SUMMING_UP)
        pause = self._settings.look_again_every
        while True:
            is_new = await self._wait(pause if self._missed else None)
            found = await self._look()
            is_new = is_new or found
            first, longest = self._settings.look_again_every, self._settings.look_again_at_most
            pause = first if is_new else Duration(min(2 * pause, longest))

    async def _wait(self, pause: float | None) -> bool:
        """Wait for a kind that was not looked up yet, or for the pause; tell whether there is one."""
        try:
            async with asyncio.timeout(pause):
                await self._is_asked.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(_GATHER)
        self._is_asked.clear()
        return True

    async def _look(self) -> bool:
        """Look up what is wanted and not known; tell whether something was found."""
        catalog = self._hub.catalog
        before = len(catalog.learned.all)
        await self._look_at(self._hub.api, self._list_wanted(), on_hub=True)
        wanted = self._list_wanted()
        unknown = _list_unknown(catalog, wanted)
        # All at a time: a member that does not answer must not keep those after it waiting.
        await asyncio.gather(
            *(self._look_at(each.api, unknown, on_hub=False) for each in self._sessions.all())
        )
        new = [each for each in _list_unknown(catalog, wanted) if each not in self._missed]
        for api_version, kind in new[:_NAMED]:
            log.warning("resource kind not served by any cluster", kind=kind, version=api_version)
        self._missed = frozenset(wanted)
        return len(catalog.learned.all) > before

    def _list_wanted(self) -> list[WantedKind]:
        """List the kinds that the hub does not serve yet: those of policies, and those asked for lately."""
        policies = (resources.POLICIES, resources.CLUSTER_POLICIES)
        named = {
            (selector.api_version, selector.kind)
            for resource in policies
            for policy in self._hub.cache.of(resource.kind).rows()
            for selector in policy.spec.resource_selectors
        }
        on_hub = {(each.api_version, each.kind.name) for each in self._hub.catalog.on_hub.all}
        on_hub.update((each.api_version, each.kind.name) for each in resources.TEMPLATES)
        wanted = (named | self._asked.keys()) - on_hub
        return sorted(each for each in wanted if resources.can_be_propagated(*each))

    async def _look_at(self, api: ObjectApi, wanted: Iterable[WantedKind], *, on_hub: bool) -> None:
        try:
            with handling("discovery", ""):
                await self._look_up(api, frozenset(wanted), on_hub=on_hub)
        except ApiError as error:
            log.debug("resource kinds not read", server=api.server, reason=str(error))

    async def _look_up(self, api: ObjectApi, wanted: Collection[WantedKind], *, on_hub: bool) -> None:
        if not wanted:
            return
        versions = {api_version for api_version, _ in wanted}
        served = await list_served(api, versions)
        for api_version, kinds in served.kinds.items():
            for each in kinds:
                if (api_version, each.kind) in wanted:
                    self._learn(api_version, each.kind, each.name, namespaced=each.namespaced, on_hub=on_hub)

    def _learn(self, api_version: str, kind: str, name: str, *, namespaced: bool, on_hub: bool) -> None:
        version = api_version.rpartition("/")[2]
        found = plain_kind(kind, ResourceTemplate, group_of(api_version))
        log.info("resource kind discovered", kind=kind, version=api_version)
        self._hub.catalog.learn(Resource(found, name, version, namespaced=namespaced), on_hub=on_hub)


def _list_unknown(catalog: KindCatalog, wanted: Iterable[WantedKind]) -> list[WantedKind]:
    return [each for each in wanted if not catalog.is_known(*each)]
