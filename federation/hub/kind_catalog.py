"""The kinds that are propagated: some are always mirrored, any other once somebody has asked for it.

Which kinds there are is known to API servers alone. Who looks up a kind that is not known yet is told so, and
the question is written down; once it is answered the kind is mirrored, and every object of it is heard of.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from federation.objects.resources import TEMPLATES, can_be_propagated
from federation.objects.template import ResourceTemplate
from reberth.cluster.kinds import Kind, Resource


class KindCatalog:
    """Kinds by name and version. `learned` are those beyond the ones that are always mirrored."""

    def __init__(self) -> None:
        self.learned: tuple[Resource[ResourceTemplate], ...] = ()
        self._known = {(each.api_version, each.kind.name): each for each in TEMPLATES}
        self._grown = asyncio.Event()
        self._ask: Callable[[str, str], None] = lambda _, __: None

    def find(self, api_version: str, kind: str) -> Resource[ResourceTemplate] | None:
        """Give the resource of a kind; None where it is not known, or not yet."""
        found = self._known.get((api_version, kind))
        if found is None and can_be_propagated(api_version, kind):
            self._ask(api_version, kind)
        return found

    def when_asked(self, ask: Callable[[str, str], None]) -> None:
        """Have somebody find out about kinds that are not known."""
        self._ask = ask

    def learn(self, resource: Resource[ResourceTemplate]) -> None:
        key = (resource.api_version, resource.kind.name)
        if key not in self._known:
            self._known[key] = resource
            self.learned = (*self.learned, resource)
            self._grown.set()
            self._grown = asyncio.Event()

    def of(self, kind: Kind[Any, Any]) -> Resource[ResourceTemplate]:
        """Give the resource of a kind that was learned."""
        return next(each for each in self.learned if each.kind == kind)

    async def grown(self, *, beyond: int) -> None:
        """Wait until more kinds have been learned than so many."""
        while len(self.learned) <= beyond:
            await self._grown.wait()
