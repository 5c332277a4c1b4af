"""Reads all objects of a live hub once, by lists alone; nothing is watched or written."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from federation.api import PropagationPolicy, ResourceBinding
from federation.hub.object_api import ObjectApi
from federation.hub.served_kinds import list_served
from federation.objects import resources
from federation.objects.template import ResourceTemplate
from federation.planning.hub_objects import HubSnapshot
from reberth.client.access import Access
from reberth.cluster.kinds import Resource, plain_kind
from reberth.cluster.pods.identity import group_of
from reberth.protocol.response import BadObject
from reberth.records import Record
from reberth.values.errors import ApiError, Forbidden, NotFound

T = TypeVar("T", bound=Record)
_KNOWN = {(each.api_version, each.kind.name): each for each in resources.TEMPLATES}


class HubReading(NamedTuple):
    """The objects, the time of the API server, and what could not be read."""

    snapshot: HubSnapshot
    now: float
    troubles: tuple[str, ...]


async def read_hub(access: Access) -> HubReading:
    """Read the hub. Raises ApiError if a kind of the federation itself cannot be read."""
    async with ObjectApi(access) as api:
        return await _HubReader(api).read()


class _HubReader:
    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._troubles: list[str] = []

    async def read(self) -> HubReading:
        clusters, policies, bindings, works, rebalancers = await asyncio.gather(
            self._list(resources.CLUSTERS),
            self._list_all(resources.POLICIES, resources.CLUSTER_POLICIES),
            self._list_all(*resources.ALL_BINDINGS),
            self._list(resources.WORKS),
            self._list(resources.REBALANCERS),
        )
        interpreters = await self._list_if_served(resources.INTERPRETERS)
        templates = await self._read_templates(_list_wanted(policies, bindings))
        snapshot = HubSnapshot(
            clusters,
            bindings,
            works,
            policies,
            [(resources.key_of(resource, one), one) for resource, found in templates for one in found],
            rebalancers,
            frozenset((resource.api_version, resource.kind.name) for resource, _ in templates),
            interpreters,
        )
        return HubReading(snapshot, self._api.clock.now(), tuple(self._troubles))

    async def _list(self, resource: Resource[T]) -> list[T]:
        """List a kind. An object that cannot be read is left out, as the federation leaves it out."""
        found: list[T] = []
        async for page in self._api.list_pages(resource):
            for each in page.found:
                if isinstance(each, BadObject):
                    name = "/".join(filter(None, (each.namespace, each.name)))
                    self._troubles.append(f"{resource.kind.name} {name}: left out: {each.reason}")
                else:
                    found.append(each)
        return found

    async def _list_if_served(self, resource: Resource[T]) -> list[T]:
        """List a kind of which the hub may not have the definition, or the reader no rights to read it."""
        try:
            return await self._list(resource)
        except NotFound:
            return []
        except Forbidden as error:
            self._troubles.append(f"planned without {resource.name}: {error}")
            return []

    async def _list_all(self, *listed: Resource[T]) -> list[T]:
        return [one for each in await asyncio.gather(*map(self._list, listed)) for one in each]

    async def _read_templates(
        self, wanted: set[tuple[str, str]]
    ) -> list[tuple[Resource[ResourceTemplate], list[ResourceTemplate]]]:
        """Read the objects that policies select and bindings name; a kind that cannot be read is left out."""
        found = await asyncio.gather(*map(self._read_kind, await self._find_resources(wanted)))
        return [each for each in found if each is not None]

    async def _read_kind(
        self, resource: Resource[ResourceTemplate]
    ) -> tuple[Resource[ResourceTemplate], list[ResourceTemplate]] | None:
        try:
            return resource, await self._list(resource)
        except ApiError as error:
            self._troubles.append(f"planned without {resource.name}: {error}")
            return None

    async def _find_resources(self, wanted: set[tuple[str, str]]) -> list[Resource[ResourceTemplate]]:
        known = {each: _KNOWN[each] for each in wanted if each in _KNOWN}
        if others := wanted - known.keys():
            served = await list_served(self._api, {api_version for api_version, _ in others})
            for version, kinds in served.kinds.items():
                for each in kinds:
                    if (version, each.kind) in others:
                        kind = plain_kind(each.kind, ResourceTemplate, group_of(version))
                        known[version, each.kind] = Resource(
                            kind, each.name, version.rpartition("/")[2], namespaced=each.namespaced
                        )
        return [known[each] for each in sorted(known)]


def _list_wanted(
    policies: Iterable[PropagationPolicy], bindings: Iterable[ResourceBinding]
) -> set[tuple[str, str]]:
    return {each for each in _list_named(policies, bindings) if resources.can_be_propagated(*each)}


def _list_named(
    policies: Iterable[PropagationPolicy], bindings: Iterable[ResourceBinding]
) -> Iterator[tuple[str, str]]:
    for policy in policies:
        yield from ((each.api_version, each.kind) for each in policy.spec.resource_selectors)
    for binding in bindings:
        yield binding.spec.resource.api_version, binding.spec.resource.kind
