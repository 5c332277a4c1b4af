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


class KindCatalog:
    """Kinds by name and version. `learned` are those beyond the ones that are always cached."""

    def __init__(self) -> None:
        self.learned: tuple[Resource[ResourceTemplate], ...] = ()
        self._known = {(each.api_version, each.kind.name): each for each in TEMPLATES}
        self._grown = asyncio.Event()
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

    def learn(self, resource: Resource[ResourceTemplate]) -> None:
        key = (resource.api_version, resource.kind.name)
        if key not in self._known:
            self._known[key] = resource
            self.learned = (*self.learned, resource)
            self._grown.set()
            self._grown = asyncio.Event()

    def of(self, kind: Kind[Any, Any]) -> Resource[ResourceTemplate]:
        """Return the resource of a learned kind."""
        return next(each for each in self.learned if each.kind == kind)

    async def grown(self, *, beyond: int) -> None:
        """Wait until more than `beyond` kinds have been learned."""
        while len(self.learned) <= beyond:
            await self._grown.wait()
