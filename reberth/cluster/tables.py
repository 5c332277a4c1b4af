"""Objects of one kind: found by uid or name, in an order that does not depend on their arrival.

A `Table` changes with every event. `Rows` are its contents at one moment, and never change. They consist of
one part for each namespace; a namespace without changes keeps its part, and everything that was ever
derived from it. So reading a large cluster costs only as much as has changed since the last read. Rows are
sorted by whoever reads them first: the event loop only copies what has changed, and another thread sorts.

A table tells listeners of its changes: of many thousand changes a second, few concern a move.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from reberth.records import ObjectMeta, Record

T = TypeVar("T")
Counted_contra = TypeVar("Counted_contra", contravariant=True)
Read = TypeVar("Read")


class ObjectIdentity(NamedTuple):
    """The identity of an object, and its version."""

    namespace: str
    name: str
    uid: str
    version: int


def meta_of(record: Record) -> ObjectMeta:
    """Give the metadata, which every record of a complete object has."""
    meta: ObjectMeta = record.metadata  # type: ignore[attr-defined] # only its base does not say so
    return meta


def identify(record: Record) -> ObjectIdentity:
    meta = meta_of(record)
    return ObjectIdentity(meta.namespace, meta.name, meta.uid, int(meta.resource_version))


class NamespaceRows(Generic[T]):
    """The objects of one namespace by name. They never change.

    Two threads may read it at the same time: then both do the same work once.
    """

    def __init__(self, namespace: str, by_name: dict[str, T]) -> None:
        self.namespace = namespace
        self._rows: dict[str, T] | tuple[T, ...] = by_name  # sorted when they are read first
        self._known: dict[Hashable, Any] = {}

    @property
    def rows(self) -> tuple[T, ...]:
        rows = self._rows
        if isinstance(rows, dict):
            rows = self._rows = tuple(map(rows.__getitem__, sorted(rows)))
        return rows

    def read(self, how: Callable[[tuple[T, ...]], Read]) -> Read:
        """Give the result of a function of the rows; it is called only once."""
        return self.once(how, lambda: how(self.rows))

    def once(self, key: Hashable, find: Callable[[], Read]) -> Read:
        """Give the cached result under this key, or compute it; it must depend only on rows and key."""
        if key not in self._known:
            self._known[key] = find()
        found: Read = self._known[key]
        return found


class Rows(Generic[T]):
    """Objects sorted by namespace and name. They never change.

    A part is indexed at the first lookup of one of its objects, and keeps its index.
    """

    def __init__(self, parts: Iterable[NamespaceRows[T]], identify: Callable[[T], ObjectIdentity]) -> None:
        self.parts = tuple(parts)
        self._identify = identify

    @cached_property
    def all(self) -> tuple[T, ...]:
        return tuple(chain.from_iterable(map(attrgetter("rows"), self.parts)))

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[T]:
        return iter(self.all)

    def part(self, namespace: str) -> NamespaceRows[T]:
        """Give the objects of a namespace; cluster-scoped objects are in ""."""
        return self._parts.get(namespace, _EMPTY)

    def within(self, namespace: str) -> tuple[T, ...]:
        """Give the objects of a namespace by name."""
        return self.part(namespace).rows

    def named(self, namespace: str, name: str) -> T | None:
        """Give the object with this name; the namespace of cluster-scoped objects is ""."""
        part = self.part(namespace)
        return part.once("by name", lambda: self._index(part.rows, "name")).get(name)

    def by_uid(self, uid: str, *, near: str = "") -> T | None:
        """Give the object with this uid. The expected namespace is searched first."""
        part = self.part(near)
        found = part.once("by uid", lambda: self._index(part.rows, "uid")).get(uid)
        return self._by_uid.get(uid) if found is None else found

    @cached_property
    def _parts(self) -> dict[str, NamespaceRows[T]]:
        return {part.namespace: part for part in self.parts}

    @cached_property
    def _by_uid(self) -> dict[str, T]:
        return self._index(self.all, "uid")

    def _index(self, rows: Iterable[T], key: str) -> dict[str, T]:
        return {getattr(self._identify(row), key): row for row in rows}


_EMPTY: NamespaceRows[Any] = NamespaceRows("", {})
_NO_MEMBERS: Mapping[str, Any] = MappingProxyType({})


class Listeners:
    """Whom to call after changes, by the uid of the changed object or the key of its group."""

    def __init__(self) -> None:
        self.by_key: dict[str, list[Callable[[], None]]] = {}

    @contextmanager
    def hearing(self, key: str, listener: Callable[[], None]) -> Iterator[None]:
        """Call the listener as long as the context lasts. A table may be in the middle of a change then."""
        self.by_key.setdefault(key, []).append(listener)
        try:
            yield
        finally:
            left = self.by_key[key]
            left.remove(listener)
            if not left:
                del self.by_key[key]

    def tell(self, key: str) -> None:
        for listener in self.by_key.get(key, ()):
            listener()

    def tell_all(self) -> None:
        for key in self.by_key:
            self.tell(key)


class Tally(Protocol[Counted_contra]):
    """Counts of the objects of a table, kept current by it."""

    def change(self, before: Counted_contra | None, after: Counted_contra | None) -> None:
        """Count an object as it is now instead of as it was; None where there is none."""

    def recount(self, namespaces: Mapping[str, Mapping[str, Counted_contra]]) -> None:
        """Count all objects of a new list, which are given by namespace and name."""


class Table(Generic[T]):
    """Objects that come and go. A name belongs to one object: a newer one replaces the older.

    `group_of` gives the key of the group that an object belongs to.
    """

    def __init__(
        self,
        identify: Callable[[T], ObjectIdentity],
        group_of: Callable[[T], str] = lambda _: "",
        tally: Tally[T] | None = None,
        *,
        listeners: Listeners | None = None,
    ) -> None:
        self._identify = identify
        self._group_of = group_of
        self._tally = tally
        self._listeners = Listeners() if listeners is None else listeners
        self._groups: dict[str, dict[str, dict[str, T]]] = {}  # of each namespace whose groups were asked for
        self._by_uid: dict[str, T] = {}
        self._by_namespace: dict[str, dict[str, T]] = {}
        self._parts: dict[str, NamespaceRows[T]] = {}
        self._rows: Rows[T] | None = None

    def __len__(self) -> int:
        return len(self._by_uid)

    def by_uid(self, uid: str) -> T | None:
        return self._by_uid.get(uid)

    def named(self, namespace: str, name: str) -> T | None:
        """Give the object with this name; the namespace of cluster-scoped objects is ""."""
        return self._by_namespace.get(namespace, {}).get(name)

    def within(self, namespace: str) -> Iterator[T]:
        """Give the objects of a namespace."""
        return iter(self._by_namespace.get(namespace, {}).values())

    def group(self, namespace: str, key: str) -> Mapping[str, T]:
        """Give the objects of a group by uid, all of which are in this namespace.

        The first question about a namespace groups all of its objects; then they are kept grouped.
        """
        groups = self._groups.get(namespace)
        if groups is None:
            groups = self._groups[namespace] = {}
            for row in self.within(namespace):
                groups.setdefault(self._group_of(row), {})[self._identify(row).uid] = row
        return groups.get(key, _NO_MEMBERS)

    def put(self, identity: ObjectIdentity, row: T) -> None:
        namespace, name, uid, _ = identity
        names = self._by_namespace.get(namespace)
        before = names.get(name) if names else None
        holder = self._by_uid.get(uid)
        if before is not holder:
            self._drop(before)
            self._drop(holder)
            names = self._by_namespace.get(namespace)  # it goes with its last object
        elif holder is not None:
            self._leave_group(namespace, uid, holder)
        if names is None:
            names = self._by_namespace[namespace] = {}
        names[name] = self._by_uid[uid] = row
        if namespace in self._groups:
            self._groups[namespace].setdefault(self._group_of(row), {})[uid] = row
        if self._tally is not None:
            self._tally.change(holder if before is holder else None, row)
        if self._parts:
            self._parts.pop(namespace, None)
        self._rows = None
        if self._listeners.by_key:
            self._tell(uid, row)

    def remove(self, uid: str) -> None:
        row = self._by_uid.pop(uid, None)
        if row is None:
            return
        if self._tally is not None:
            self._tally.change(row, None)
        namespace, name, *_ = self._identify(row)
        self._leave_group(namespace, uid, row)
        names = self._by_namespace[namespace]
        del names[name]
        if not names:
            del self._by_namespace[namespace]
        self._forget(namespace)

    def begin(self) -> "Table[T]":
        """Give an empty table for a new list."""
        return Table(self._identify)

    def become(self, other: "Table[T]") -> None:
        """Take over the whole contents of the other table at once; do not use the other afterwards."""
        self._by_uid = other._by_uid  # noqa: SLF001 - it is of this class
        self._by_namespace = other._by_namespace  # noqa: SLF001 - likewise
        self._parts = other._parts  # noqa: SLF001 - likewise
        self._groups = {}
        self._rows = None
        if self._tally is not None:
            self._tally.recount(self._by_namespace)
        self._listeners.tell_all()

    def rows(self) -> Rows[T]:
        """Give the current contents; the same object until something changes."""
        if self._rows is None:
            self._rows = Rows(map(self._part, sorted(self._by_namespace)), self._identify)
        return self._rows

    def _leave_group(self, namespace: str, uid: str, row: T) -> None:
        if namespace in self._groups:
            groups, key = self._groups[namespace], self._group_of(row)
            members = groups[key]
            del members[uid]
            if not members:
                del groups[key]
        if self._listeners.by_key:
            self._tell(uid, row)

    def _tell(self, uid: str, row: T) -> None:
        self._listeners.tell(uid)
        self._listeners.tell(self._group_of(row))

    def _drop(self, row: T | None) -> None:
        """Remove an object of the same name with another uid, or of the same uid with another name."""
        if row is not None:
            self.remove(self._identify(row).uid)

    def _forget(self, namespace: str) -> None:
        self._parts.pop(namespace, None)
        self._rows = None

    def _part(self, namespace: str) -> NamespaceRows[T]:
        if namespace not in self._parts:
            self._parts[namespace] = NamespaceRows(namespace, self._by_namespace[namespace].copy())
        return self._parts[namespace]
