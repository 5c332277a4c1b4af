"""The pause: an annotation on the Lease stops all moves with one command.

kubectl annotate lease -n reberth-system reberth-rescheduler reberth.dev/paused=true
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import NoReturn

from reberth.client.api import Api
from reberth.client.lease import LEASES, LeaseSettings
from reberth.cluster.cache import BOOKMARK, DELETED
from reberth.protocol.response import BadObject
from reberth.records import Lease
from reberth.runtime.faults import handling
from reberth.runtime.logs import Log
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.telemetry import metrics

ANNOTATION = "reberth.dev/paused"
PAUSED = Refused("Paused", f"the lease's annotation {ANNOTATION} pauses all moves")

# The server ends a watch after this time; a connection that died silently is noticed when it does not.
_WATCH_SECONDS = 30.0
_PATIENCE = 5.0
_PAUSE = 1.0

log = Log(__name__)


class PauseWatch:
    """Watches the Lease: whether all moves are paused. `on_end` is called when a pause ends."""

    def __init__(self, api: Api, lease: LeaseSettings, *, on_end: Callable[[], None]) -> None:
        self.refused: Refused | None = None
        self.trouble: str | None = None
        """Why the lease cannot be watched: then a new pause would not be noticed."""
        self.listener: Callable[[Lease], None] | None = None
        """Called with every version of the lease that is read."""
        self._was_there = False
        self._api = api
        self.lease = lease
        self._on_end = on_end

    async def run(self) -> NoReturn:
        """Watch the lease; while it cannot be read, its last known state holds."""
        while True:
            try:
                async with asyncio.timeout(_WATCH_SECONDS + _PATIENCE):
                    await self._watch()
            except ApiError as error:
                self._log_trouble(str(error))
            except TimeoutError:
                log.debug("watch of the lease timed out")
            await asyncio.sleep(_PAUSE)

    async def read(self) -> None:
        """Read the lease once. Raises ApiError."""
        await self._read()

    def list_warnings(self) -> Iterator[str]:
        """Warn of a pause, and of a lease that cannot be watched."""
        if self.refused:
            yield f"{self.refused.rule}: {self.refused.reason}"
        if self.trouble:
            yield f"the lease {self.lease.namespace}/{self.lease.name} cannot be watched: {self.trouble}"

    async def _watch(self) -> None:
        version = await self._read()
        async with self._api.watch(LEASES, since=version, seconds=_WATCH_SECONDS, **self._where()) as lines:
            async for line in lines:
                if isinstance(line, BadObject) or line.type == BOOKMARK:
                    continue
                self._take(None if line.type == DELETED else line.object)

    async def _read(self) -> str:
        version, lease = "", None
        async for page in self._api.list_pages(LEASES, **self._where()):
            version, lease = page.resource_version, next(iter(page.objects), lease)
        self._take(lease)
        return version

    def _where(self) -> dict[str, str]:
        return {
            "namespace": self.lease.namespace,
            "fieldSelector": f"metadata.name={self.lease.name}",
        }

    def _log_trouble(self, trouble: str | None) -> None:
        """Log a trouble once, until it changes."""
        if trouble and trouble != self.trouble:
            log.warning("lease cannot be watched", lease=self.lease.name, reason=trouble)
        self.trouble = trouble

    def _take(self, lease: Lease | None) -> None:
        self._log_trouble("it was deleted" if self._was_there and lease is None else None)
        self._was_there = self._was_there or lease is not None
        annotations = (lease.metadata.annotations if lease else None) or {}
        is_paused, was_paused = annotations.get(ANNOTATION) == "true", self.refused is not None
        self.refused = PAUSED if is_paused else None
        metrics.PAUSED.set(is_paused)
        if is_paused != was_paused:
            log.info("paused" if is_paused else "resumed", lease=self.lease.name)
        if was_paused and not is_paused:
            self._on_end()
        if lease and self.listener:
            with handling("request", f"{self.lease.namespace}/{self.lease.name}"):
                self.listener(lease)
