"""Health of the extenders: checked at an interval, independently of any move.

With `extender: required` a move needs the acknowledgement of all extenders. Without this check, moves would
be started only to be refused, one after the other. So unreachable extenders are a brake, which is released
when they answer again.
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
    """Whether all extenders answer; `on_change` is called when that changes."""

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

    async def run(self) -> NoReturn:
        while True:
            await self.check()
            await asyncio.sleep(self._settings().extender_access.try_every)

    async def check(self) -> None:
        """Ask all extenders what a move would ask them: whether they have seen a node of our cache."""
        node = next((row.record.metadata for row in self._cache.of(NODE).rows()), None)
        if self._settings().extender == "none" or node is None:
            self._record(None)
            return
        try:
            unseen = await self._extenders.refuse_unseen(
                [ObjectVersion(NODES.name, "", node.name, node.resource_version)]
            )
        except ReberthError as error:
            unseen = Refused(RULE, str(error))
        self._record(Refused(RULE, unseen.reason) if unseen else None)

    def _record(self, refused: Refused | None) -> None:
        was, self.refused = self.refused, refused
        if (was is None) == (refused is None):
            return
        if refused:
            log.warning("extenders unreachable", reason=refused.reason)
        else:
            log.info("extenders reachable again")
        self._on_change()
