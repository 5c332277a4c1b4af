"""A mirror that keeps objects whole, and says of each that has come, changed or gone."""

from collections.abc import Callable
from typing import Any

from federation.objects.retention import keep
from reberth.cluster.cache import Cache, Listing
from reberth.cluster.kinds import NODE, POD, Kept, Kind, Wire
from reberth.cluster.pods.requests import Version
from reberth.cluster.rows import trim
from reberth.cluster.tables import Rows

OnChange = Callable[[Kind[Any, Any], Any], None]


class _NotifyingListing(Listing[Wire, Kept]):
    """A list that says, once it is in place, in what it differs from what was there."""

    def watch(
        self, rows: Callable[[], Rows[Any]], tell: Callable[[Any], None]
    ) -> "_NotifyingListing[Wire, Kept]":
        self._rows, self._tell = rows, tell
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
            self._tell(row)


class NotifyingCache(Cache):
    """Calls `on_change` with the kind and the object as it is now, or as it was last if it is gone."""

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

    def _mirror(self, kind: Kind[Wire, Kept]) -> Any:  # noqa: ANN401 - the library names no type for it
        """Keep every annotation: what is propagated, and to whom things belong, is written there."""
        mirror = super()._mirror(kind)
        if mirror.keep is trim:
            mirror.keep = keep
        return mirror
