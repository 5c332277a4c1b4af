"""A cache that keeps objects whole and calls a handler for each one that is added, changed or deleted."""

from collections.abc import Callable
from typing import Any

from federation.objects.retention import keep
from reberth.cluster.cache import Cache, Listing
from reberth.cluster.kinds import NODE, POD, Kept, Kind, Wire
from reberth.cluster.pods.requests import Version
from reberth.cluster.tables import Rows

OnChange = Callable[[Kind[Any, Any], Any], None]


class _NotifyingListing(Listing[Wire, Kept]):
    """A list that, once it has replaced the cache, reports the differences."""

    def watch(
        self, rows: Callable[[], Rows[Any]], report: Callable[[Any], None]
    ) -> "_NotifyingListing[Wire, Kept]":
        self._rows, self._report = rows, report
        return self

    def finish(self, resource_version: str) -> None:
        before = self._rows()
        super().finish(resource_version)
        after = self._rows()
        old, new = {id(row) for row in before}, {id(row) for row in after}
        for row in (
            *(row for row in before if id(row) not in new),
            *(row for row in after if id(row) not in old),
        ):
            self._report(row)


class NotifyingCache(Cache):
    """Calls `on_change` with the kind and the object: its present state, or its last one if it is deleted."""

    def __init__(self, on_change: OnChange, *, version: Version) -> None:
        super().__init__(version=version)
        self._on_change = on_change

    def apply(self, kind: Kind[Wire, Any], event: str, subject: Wire) -> bool:
        changed = super().apply(kind, event, subject)
        if changed and kind not in (POD, NODE):
            self._on_change(kind, subject)
        return changed

    def relist(self, kind: Kind[Wire, Kept]) -> Listing[Wire, Kept]:
        listing: _NotifyingListing[Wire, Kept] = _NotifyingListing(self._mirror(kind))
        return listing.watch(lambda: self.of(kind).rows(), lambda row: self._on_change(kind, row))

    def _keeper_of(self, kind: Kind[Any, Any]) -> Callable[[Any], Any]:
        """Keep objects whole, with all annotations: they are propagated, and say what belongs together."""
        del kind
        return keep
