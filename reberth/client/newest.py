"""The newest version of each object that this process knows: of the cache, or as it was last answered.

A writer that begins with the newest known version needs no read before its write: the resourceVersion tells
the API server if it was not the newest. The cache alone would often be too old, since the watch event of a
write arrives after its answer.

Answers are whole objects, and nodes are large. So each is held only until the cache has seen it, and no more
than so many while the cache is behind: what is forgotten then costs a conflict and a read.
"""

from typing import Any, NamedTuple, TypeVar, cast

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import Kind, Resource
from reberth.cluster.rows import NodeRow
from reberth.cluster.tables import meta_of
from reberth.records import Record

R = TypeVar("R", bound=Record)

_MOST = 500  # answers that the cache has not seen


class _Place(NamedTuple):
    kind: Kind[Any, Any]
    namespace: str
    name: str


class NewestObjects:
    """Whole objects, not pods: the cache keeps those in parts. Without a cache only the answers are known."""

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._answers: dict[_Place, Record] = {}
        self._seen: dict[Kind[Any, Any], int] = {}  # the newest versions that the cache has seen

    def find(self, resource: Resource[R], name: str, *, namespace: str = "") -> R | None:
        """Give the newest known version of an object; None: nothing is known of it, or it is deleted."""
        self._drop_restored(resource.kind)
        place = _Place(resource.kind, namespace, name)
        answer, cached = self._answers.get(place), self._find_cached(place)
        if answer is None:
            return cast("R | None", cached)
        if self._has_seen(resource.kind, answer):
            del self._answers[place]
            return cast("R | None", cached)
        return cast("R", answer)

    def is_known_missing(self, resource: Resource[Any], name: str, *, namespace: str = "") -> bool:
        """Tell whether the cache has all objects of the kind, and this one is not among them."""
        is_listed = self._cache is not None and self._cache.is_complete(resource.kind)
        return is_listed and self.find(resource, name, namespace=namespace) is None

    def learn(self, resource: Resource[R], answer: R) -> R:
        """Take over the answer to a read or a write of an object, unless a newer one has come before it."""
        meta = meta_of(answer)
        place = _Place(resource.kind, meta.namespace, meta.name)
        self._drop_seen()
        known: list[Record] = [answer, self._answers.pop(place, answer)]
        self._answers[place] = max(known, key=_read_version)
        if len(self._answers) > _MOST:
            del self._answers[next(iter(self._answers))]
        return answer

    def forget(self, resource: Resource[Any], name: str, *, namespace: str = "") -> None:
        """Forget what was answered of an object: it is not there any more, or not as it was said to be."""
        self._answers.pop(_Place(resource.kind, namespace, name), None)

    def _drop_restored(self, kind: Kind[Any, Any]) -> None:
        """Drop all answers of a kind if its versions have gone back: etcd was restored."""
        if self._cache is None:
            return
        seen, before = self._cache.seen(kind), self._seen.get(kind, 0)
        self._seen[kind] = seen
        if seen < before:
            self._answers = {place: one for place, one in self._answers.items() if place.kind is not kind}

    def _find_cached(self, place: _Place) -> Record | None:
        if self._cache is None:
            return None
        row: Record | NodeRow | None = self._cache.of(place.kind).named(place.namespace, place.name)
        return row.record if isinstance(row, NodeRow) else row

    def _has_seen(self, kind: Kind[Any, Any], answer: Record) -> bool:
        return self._cache is not None and _read_version(answer) <= self._cache.seen(kind)

    def _drop_seen(self) -> None:
        self._answers = {
            place: answer for place, answer in self._answers.items() if not self._has_seen(place.kind, answer)
        }


def _read_version(record: Record) -> int:
    return int(meta_of(record).resource_version)
