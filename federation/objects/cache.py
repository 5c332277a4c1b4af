"""A cache that keeps objects whole and calls a handler for each one that is added, changed or deleted."""

from collections.abc import Callable
from typing import Any

from federation.objects.retention import keep
from federation.objects.template import ResourceTemplate
from reberth.cluster.cache import MODIFIED, Cache, Listing
from reberth.cluster.kinds import NODE, POD, Kept, Kind, Wire
from reberth.cluster.pods.requests import Version
from reberth.cluster.tables import Rows, meta_of
from reberth.records import Record

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
    """Calls `on_change` with the kind and the object: its present state, or its last one if it is deleted.

    `on_status` is called instead, if given, where an object says more than before and wants the same.
    """

    def __init__(self, on_change: OnChange, *, version: Version, on_status: OnChange | None = None) -> None:
        super().__init__(version=version)
        self._on_change = on_change
        self._on_status = on_status or on_change

    def apply(self, kind: Kind[Wire, Any], event: str, subject: Wire) -> bool:
        if kind in (POD, NODE):
            return super().apply(kind, event, subject)
        before = self.of(kind).by_uid(meta_of(subject).uid)
        changed = super().apply(kind, event, subject)
        if changed:
            is_wish = event != MODIFIED or not _wants_the_same(before, subject)
            (self._on_change if is_wish else self._on_status)(kind, subject)
        return changed

    def relist(self, kind: Kind[Wire, Kept]) -> Listing[Wire, Kept]:
        listing: _NotifyingListing[Wire, Kept] = _NotifyingListing(self._mirror(kind))
        return listing.watch(lambda: self.of(kind).rows(), lambda row: self._on_change(kind, row))

    def _keeper_of(self, kind: Kind[Any, Any]) -> Callable[[Any], Any]:
        """Keep objects whole, with all annotations: they are propagated, and say what belongs together."""
        del kind
        return keep


def _wants_the_same(before: Record | None, after: Record) -> bool:
    """Tell whether all but the status is as before."""
    if before is None or _read_marks(before) != _read_marks(after):
        return False
    if isinstance(before, ResourceTemplate) and isinstance(after, ResourceTemplate):
        # Of some kinds, such as PriorityClass, the generation stays 1 whatever is changed.
        return before.wish() == after.wish()
    return 0 < meta_of(before).generation == meta_of(after).generation


def _read_marks(record: Record) -> tuple[object, ...]:
    meta = meta_of(record)
    return meta.deletion_timestamp, meta.labels, meta.annotations, meta.owner_references
