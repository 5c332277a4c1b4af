"""How much memory one object, and one namespace, may take: what is too large is cut, and never left out.

An object that was left out would still take the place that it takes in the cluster. So what the numbers say
is counted before (requests, what a node offers), and then the lists and texts of the object are cut. Its
identity and its controller stay.

A namespace may hold any number of small objects; large ones share a fixed amount.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any, Final, TypeVar
from weakref import finalize

import msgspec
from msgspec.structs import replace

from reberth.records import ObjectMeta, OwnerReference, Record
from reberth.values.text_limits import LONGEST_TEXT

R = TypeVar("R", bound=Record)

LARGE: Final = 2**14
"""Bytes that an object of any namespace may take."""
LARGEST: Final = 2**18
"""Bytes that one object may take while its namespace has room for it."""
MOST_IN_NAMESPACE: Final = 2**26
"""Bytes that the large objects of one namespace may take together."""

# What Python takes for a value beside its text.
_PER_VALUE = 128
# How much is left of each list, and of each text; the first that is small enough is taken.
_CUTS = ((512, LONGEST_TEXT + 1), (64, LONGEST_TEXT + 1), (16, 253), (4, 253), (1, 64))

OnCut = Callable[[str, ObjectMeta], None]


def weigh(text: bytes) -> int:
    """Estimate how much memory an object takes, by its JSON."""
    return len(text) + _PER_VALUE * (text.count(b",") + text.count(b"{"))


def limit(record: R, most: int) -> tuple[R, bool]:
    """Give a record that takes no more than this, and whether it was cut for that."""
    is_large = weigh(msgspec.json.encode(record)) > most
    return shorten(record, most) if is_large else record, is_large


def shorten(record: R, most: int) -> R:
    """Cut lists and texts until the record takes no more than this, as far as that goes."""
    short = record
    for count, length in _CUTS:
        short = _cut_fields(record, count, length)
        if weigh(msgspec.json.encode(short)) <= most:
            break
    return short


class NamespaceSizes:
    """What the large objects of each namespace take. An object is known by any key of its own."""

    def __init__(self) -> None:
        self._sizes: defaultdict[str, dict[Hashable, int]] = defaultdict(dict)
        self._sums: Counter[str] = Counter()
        self._gone: deque[tuple[str, Hashable]] = deque()

    def limit(self, namespace: str, key: Hashable, size: int) -> int:
        """Tell how large this object may be."""
        if size <= LARGE:
            return LARGE
        while self._gone:
            self.drop(*self._gone.popleft())
        wanted = min(size, LARGEST)
        others = self._sums[namespace] - self._sizes[namespace].get(key, 0)
        return LARGEST if others + wanted <= MOST_IN_NAMESPACE else LARGE

    def put(self, namespace: str, key: Hashable, size: int) -> None:
        self.drop(namespace, key)
        if size > LARGE:
            self._sizes[namespace][key] = size
            self._sums[namespace] += size

    def drop_with(self, owner: object, namespace: str, key: Hashable) -> None:
        """Drop an object when this owner is collected, which any thread may do."""
        finalize(owner, self._gone.append, (namespace, key)).atexit = False

    def retain(self, kind: str, is_there: Callable[[str], object]) -> None:
        """Drop the objects of a kind, known by kind and uid, that are no longer there."""
        gone = [
            (namespace, key)
            for namespace, sizes in self._sizes.items()
            for key in sizes
            if isinstance(key, tuple) and key[0] == kind and not is_there(key[1])
        ]
        for namespace, key in gone:
            self.drop(namespace, key)

    def drop(self, namespace: str, key: Hashable) -> None:
        size = self._sizes[namespace].pop(key, 0) if namespace in self._sizes else 0
        if size:
            self._sums[namespace] -= size
            if not self._sizes[namespace]:
                del self._sizes[namespace], self._sums[namespace]


def _cut(value: Any, count: int, length: int) -> Any:  # noqa: ANN401 - whatever a record holds
    match value:
        case str():
            return value[:length]
        case ObjectMeta():
            return _cut_metadata(value, count, length)
        case Record():
            return _cut_fields(value, count, length)
        case tuple():
            return tuple(_cut(each, count, length) for each in value[:count])
        case dict():
            return {key[:length]: _cut(each, count, length) for key, each in islice(value.items(), count)}
        case _:
            return value


def _cut_fields(record: R, count: int, length: int) -> R:
    return replace(
        record, **{name: _cut(getattr(record, name), count, length) for name in record.__struct_fields__}
    )


def _cut_metadata(meta: ObjectMeta, count: int, length: int) -> ObjectMeta:
    owners = sorted(meta.owner_references or (), key=_is_no_controller)
    return replace(
        meta,
        labels=_cut(meta.labels, count, length),
        annotations=_cut(meta.annotations, count, length),
        owner_references=_cut(tuple(owners), count, LONGEST_TEXT) or None,
    )


def _is_no_controller(owner: OwnerReference) -> bool:
    return not owner.controller
