"""The kinds that can be propagated: some are always cached, any other one once a policy or Work names it.

Only API servers know which kinds exist. Looking up an unknown kind returns None and requests its discovery;
once it is discovered the kind is watched, and every object of it is reported to the controllers.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from federation.objects.resources import TEMPLATES, can_be_propagated
from federation.objects.template import ResourceTemplate
from reberth.cluster.kinds import Kind, Resource


class LearnedKinds:
    """Kinds beyond the ones that are always cached; they grow only."""

    def __init__(self) -> None:
        self.all: tuple[Resource[ResourceTemplate], ...] = ()
        self._grown = asyncio.Event()

    def add(self, resource: Resource[ResourceTemplate]) -> None:
        if resource not in self.all:
            self.all = (*self.all, resource)
            self._grown.set()
            self._grown = asyncio.Event()

    async def grown(self, *, beyond: int) -> None:
        """Wait until there are more than `beyond`."""
        while len(self.all) <= beyond:
            await self._grown.wait()


class KindCatalog:
    """Kinds by name and version.

    `on_hub` are the learned kinds that the hub itself serves. A kind that members alone serve is not watched
    on the hub: a member could name any plural for it, and the hub would take other objects for that kind.
    """

    def __init__(self) -> None:
        self.learned = LearnedKinds()
        self.on_hub = LearnedKinds()
        self._known = {(each.api_version, each.kind.name): each for each in TEMPLATES}
        self._ask: Callable[[str, str], None] = lambda _, __: None

    def find(self, api_version: str, kind: str) -> Resource[ResourceTemplate] | None:
        """Return the resource of a kind; None if it is not known (yet)."""
        found = self._known.get((api_version, kind))
        if found is None and can_be_propagated(api_version, kind):
            self._ask(api_version, kind)
        return found

    def when_asked(self, ask: Callable[[str, str], None]) -> None:
        """Set the handler that discovers unknown kinds."""
        self._ask = ask

    def is_known(self, api_version: str, kind: str) -> bool:
        """Tell whether an API server serves the kind."""
        return (api_version, kind) in self._known

    def learn(self, resource: Resource[ResourceTemplate], *, on_hub: bool) -> None:
        """Add a kind; what the hub says of it replaces what members have said."""
        key = (resource.api_version, resource.kind.name)
        if on_hub or key not in self._known:
            self._known[key] = resource
            self.learned.add(resource)
        if on_hub:
            self.on_hub.add(resource)

    def of(self, kind: Kind[Any, Any]) -> Resource[ResourceTemplate]:
        """Return the resource of a learned kind."""
        return next(each for each in self.learned.all if each.kind == kind)
