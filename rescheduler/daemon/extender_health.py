"""Whether the extenders can be asked at all: tried again and again, without beginning a move.

Where no move may be made without their word, moves are not begun to be dropped: this is a brake, which lets
go by itself when they are back.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import NODE, NODES
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused
from rescheduler.execution.extenders import ExtenderClient, ObjectVersion
from rescheduler.settings import ReschedulerSettings

RULE = "ExtendersUnreachable"

log = Log(__name__)


class ExtenderHealth:
    """Whether all extenders answer; `on_change` hears when that becomes otherwise."""

    def __init__(
        self,
        extenders: ExtenderClient,
        cache: Cache,
        *,
        settings: Callable[[], ReschedulerSettings],
        on_change: Callable[[], None],
    ) -> None:
        self.refused: Refused | None = None
        self._extenders = extenders
        self._cache = cache
        self._settings = settings
        self._on_change = on_change

    async def follow(self) -> NoReturn:
        while True:
            await self.look()
            await asyncio.sleep(self._settings().extender_access.try_every)

    async def look(self) -> None:
        """Ask all extenders what a move would ask them, of a node as it is mirrored here."""
        node = next((row.record.metadata for row in self._cache.of(NODE).rows()), None)
        if self._settings().extender == "none" or node is None:
            self._take(None)
            return
        try:
            unseen = await self._extenders.refuse_unseen(
                [ObjectVersion(NODES.name, "", node.name, node.resource_version)]
            )
        except ReberthError as error:
            unseen = Refused(RULE, str(error))
        self._take(Refused(RULE, unseen.reason) if unseen else None)

    def _take(self, refused: Refused | None) -> None:
        was, self.refused = self.refused, refused
        if (was is None) == (refused is None):
            return
        if refused:
            log.warning("extenders away", reason=refused.reason)
        else:
            log.info("extenders back")
        self._on_change()
