"""The cache of a cluster: rows of many kinds, kept in sync by lists and the watch events that follow them.

**One stream per kind.** A kind is fed by one list and the watch that continues it. Within this stream
versions only rise, and versions are integers; so an event that is not newer than the newest version seen is a
duplicate or late, and is dropped. A late event can therefore not bring back a deleted object.

**A new list replaces everything.** `relist` collects it aside, from pages or a stream, while readers still
see the old state; `finish` puts it in place between two steps of the event loop. No reader ever sees a half
replaced kind, and a list that breaks off changes nothing. Objects that the list does not contain are removed.
This holds even if the list is older than what was seen before (a restored etcd).

**Rows never change.** An event replaces the old row with a new one. So `contents` is cheap and final: another
thread can make a snapshot of it while the cache goes on.

**Changes are told to those they concern.** Who waits for one object is not called for every other.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from typing import Any, Generic

import msgspec

from reberth.cluster.kinds import (
    DEPLOYMENT,
    HISTORY,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    OWNED_CONTROLLERS,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    REVISION,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    Kept,
    Kind,
    Wire,
)
from reberth.cluster.object_size import LARGE, NamespaceSizes, OnCut, shorten, weigh
from reberth.cluster.owner_templates import (
    drop_template,
    keep_custom,
    keep_name,
    keep_revision,
    keep_template,
)
from reberth.cluster.pod_counts import PodCounts, list_guessed
from reberth.cluster.pods.identity import Signature, find_controller, find_signature, group_of
from reberth.cluster.pods.requests import Version
from reberth.cluster.rows import (
    NodeRow,
    PodRow,
    make_node_row,
    make_pod_row,
    trim,
    trim_history,
    trim_limit_range,
    trim_namespace,
)
from reberth.cluster.tables import Listeners, ObjectIdentity, Rows, Table, Tally, identify, meta_of
from reberth.cluster.templates import Template, Templates
from reberth.records import CustomOwner, Node, ObjectMeta, Owner, Pod, Record, WorkloadIdentity
from reberth.values.object_error import ObjectError
from reberth.values.refusal import Refused

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"

_encode = msgspec.json.Encoder().encode

Contents = Mapping[Kind[Any, Any], Rows[Any]]


class _Mirror(Generic[Wire, Kept]):
    """All objects of one kind, and the newest version seen."""

    def __init__(
        self,
        kind: str,
        keep: Callable[[Wire], Kept],
        identify: Callable[[Kept], ObjectIdentity],
        group_of: Callable[[Kept], str] = lambda _: "",
        tally: Tally[Kept] | None = None,
        *,
        listeners: Listeners,
        sizes: NamespaceSizes,
    ) -> None:
        self.kind = kind
        self.keep = keep
        self.identify = identify
        self.table = Table(identify, group_of, tally, listeners=listeners)
        self.sizes = sizes
        self.seen = 0
        self.is_complete = False
        self.wanted = self.made = 0  # rows are outdated unless they were made as it is wanted now

    @property
    def is_outdated(self) -> bool:
        """Whether its rows lack annotations, or count requests for an earlier version of Kubernetes."""
        return self.made < self.wanted

    def apply(self, event: str, subject: Wire) -> bool:
        identity = _read_identity(self.kind, subject)
        if identity.version <= self.seen:
            return False
        if event == DELETED:
            self.table.remove(identity.uid)
            self.sizes.drop(identity.namespace, (self.kind, identity.uid))
        elif event != BOOKMARK:
            self.table.put(identity, self.keep(subject))
        self.seen = identity.version
        return True


class Listing(Generic[Wire, Kept]):
    """A new list in progress. Readers do not see it before it is finished, and it may be dropped."""

    def __init__(self, mirror: _Mirror[Wire, Kept]) -> None:
        self._mirror = mirror
        self._table = mirror.table.begin()
        self._remakes_rows = mirror.is_outdated
        self._made = mirror.wanted

    @property
    def count(self) -> int:
        """How many objects it has so far."""
        return len(self._table)

    def apply(self, event: str, subject: Wire) -> None:
        """Apply an event of the stream that brings the list; an object of a page counts as ADDED.

        An unchanged object keeps its row, unless the row is outdated. Raises ObjectError; the cache
        then keeps the last readable version of the object.
        """
        if event == BOOKMARK:
            return
        identity = _read_identity(self._mirror.kind, subject)
        if event == DELETED:
            self._table.remove(identity.uid)
            return
        known = self._table.by_uid(identity.uid) or self._mirror.table.by_uid(identity.uid)
        if known is not None:
            self._table.put(identity, known)
        if known is None or self._remakes_rows or self._mirror.identify(known) != identity:
            self._table.put(identity, self._mirror.keep(subject))

    def finish(self, resource_version: str) -> None:
        """Replace the old contents with this list."""
        self._mirror.seen = _read_version(
            self._mirror.kind, ObjectMeta("(list)", resource_version=resource_version)
        )
        self._mirror.is_complete = True
        if self._remakes_rows:
            self._mirror.made = self._made
        self._mirror.table.become(self._table)
        self._mirror.sizes.retain(self._mirror.kind, self._mirror.table.by_uid)


class Cache:
    """The cached objects of a cluster that runs this version of Kubernetes.

    Pods keep the annotations that Reberth always reads, and these `annotations`. Owners keep the templates of
    their pods, unless nobody asks what these create.
    """

    def __init__(
        self, *, version: Version, annotations: frozenset[str] = frozenset(), keeps_templates: bool = True
    ) -> None:
        self._keeps_templates = keeps_templates
        self._sizes = NamespaceSizes()
        self.templates = Templates(version=version, annotations=annotations, sizes=self._sizes)
        self.pod_counts = PodCounts()
        self.on_cut: OnCut = _overlook
        """Called for each version of an object that was too large to be kept whole."""
        self._listeners = Listeners()
        make = partial(_Mirror[Any, Any], listeners=self._listeners, sizes=self._sizes)
        self._mirrors: dict[Kind[Any, Any], _Mirror[Any, Any]] = {
            POD: make(POD.name, self._keep_pod, _identify_pod, _find_controller_uid, self.pod_counts),
            NODE: make(NODE.name, self._keep_node, _identify_node),
        }

    def of(self, kind: Kind[Wire, Kept]) -> Table[Kept]:
        """Give the table of a kind; it is the same object for the whole life of the cache.

        Pods, ReplicaSets and Jobs are grouped by the uid of their controller.
        """
        return self._mirror(kind).table

    def count_workload(self, namespace: str, workload: WorkloadIdentity) -> int:
        """Count the pods of a workload, as `pod_counts` counts them."""
        workload = self.with_uid(namespace, workload)
        list_owned = partial(self._list_owned, namespace, workload)
        return self.pod_counts.of_workload(namespace, workload, list_owned)

    def with_uid(self, namespace: str, workload: WorkloadIdentity) -> WorkloadIdentity:
        """Give a workload with its uid, if it is cached: of some Deployments only the name is known."""
        found = None if workload.uid else self.find_deployment(namespace, workload)
        return msgspec.structs.replace(workload, uid=found.metadata.uid) if found else workload

    def find_deployment(self, namespace: str, workload: WorkloadIdentity) -> Owner | None:
        """Give a workload that is a Deployment by its name."""
        named = (group_of(workload.api_version), workload.kind)
        is_deployment = named == (DEPLOYMENT.group, DEPLOYMENT.name)
        return self.of(DEPLOYMENT).named(namespace, workload.name) if is_deployment else None

    def sign(self, template: Template) -> Signature | Refused:
        """Give the signature of a template's pods by the owners that are cached."""
        uid = template.controller.uid if template.controller else ""
        found = (self.of(kind).by_uid(uid) for kind in OWNED_CONTROLLERS)
        owner = next(filter(None, found), None)
        return find_signature(template.pod.metadata, {uid: owner.metadata} if owner else {})

    def seen(self, kind: Kind[Any, Any]) -> int:
        """Give the newest version of this kind that was seen."""
        return self._mirror(kind).seen

    def is_complete(self, kind: Kind[Any, Any]) -> bool:
        """Tell whether the kind has been listed."""
        return self._mirror(kind).is_complete

    def apply(self, kind: Kind[Wire, Any], event: str, subject: Wire) -> bool:
        """Apply a watch event: ADDED, MODIFIED, DELETED or BOOKMARK. False if it is not new.

        Raises ObjectError; the cache then keeps the object as it was.
        """
        return self._mirror(kind).apply(event, subject)

    def relist(self, kind: Kind[Wire, Kept]) -> Listing[Wire, Kept]:
        """Start a new list of the kind."""
        return Listing(self._mirror(kind))

    def keep_annotations(self, keys: frozenset[str]) -> bool:
        """Keep these annotations of pods, too; tell whether the pods must be listed again for that."""
        if keys <= self.templates.annotations:
            return False
        self.templates.annotations |= keys
        self._mirror(POD).wanted += 1
        return True

    def keeps_annotations(self, keys: frozenset[str]) -> bool:
        """Tell whether all cached pods carry these annotations, and none is to be listed again."""
        return keys <= self.templates.annotations and not self._mirror(POD).is_outdated

    def take_version(self, version: Version) -> None:
        """Count the requests of pods for this version of Kubernetes; cached pods must be listed again."""
        self.templates.take_version(version)
        self._mirror(POD).wanted += 1

    def replace(self, kind: Kind[Wire, Any], listed: Iterable[Wire], resource_version: str) -> None:
        """Replace the contents of a kind by a complete list. Raises ObjectError; then nothing has changed."""
        listing = self.relist(kind)
        for each in listed:
            listing.apply(ADDED, each)
        listing.finish(resource_version)

    def hearing(self, uid: str, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call the listener when the object with this uid changes, or a pod that it controls.

        It is called, too, when a kind was listed anew.
        """
        return self._listeners.hearing(uid, listener)

    def contents(self) -> Contents:
        """Give all rows of all kinds as they are now, each kind sorted by namespace and name."""
        return {kind: mirror.table.rows() for kind, mirror in self._mirrors.items()}

    def _list_owned(self, namespace: str, workload: WorkloadIdentity) -> Iterable[str]:
        """List the uids of the controllers that a workload owns."""
        if not workload.uid:
            return list_guessed(self.pod_counts.within(namespace).by_template, self.sign).get(workload, ())
        groups = (self.of(kind).group(namespace, workload.uid) for kind in OWNED_CONTROLLERS)
        return chain.from_iterable(groups)

    def _mirror(self, kind: Kind[Wire, Kept]) -> _Mirror[Wire, Kept]:
        if kind not in self._mirrors:
            group = _find_owner_uid if kind in OWNED_CONTROLLERS else _ungrouped
            self._mirrors[kind] = _Mirror(
                kind.name,
                self._keeper_of(kind),
                identify,
                group,
                listeners=self._listeners,
                sizes=self._sizes,
            )
        return self._mirrors[kind]

    def _keeper_of(self, kind: Kind[Any, Any]) -> Callable[[Any], Any]:
        """Give what makes the rows of a kind that is neither pods nor nodes."""
        if kind is HISTORY:
            return trim_history
        first = keep_custom if kind.record is CustomOwner else _SHORTENED.get(kind)
        if first is not None:
            if not self._keeps_templates:
                first = _WITHOUT_TEMPLATES.get(kind, first)
            return lambda record: self._keep(kind.name, first(record))
        # What is ours is limited by its definition, and written again from what is cached.
        return trim if kind.group == HISTORY.group else partial(self._keep, kind.name)

    def _keep_pod(self, pod: Pod) -> PodRow:
        row = make_pod_row(pod, self.templates)
        if row.template.is_cut:
            self.on_cut(POD.name, pod.metadata)
        return row

    def _keep_node(self, node: Node) -> NodeRow:
        row = make_node_row(node)
        if row.is_cut:
            self.on_cut(NODE.name, node.metadata)
        return row

    def _keep(self, kind: str, record: Record) -> Record:
        kept = trim(record)
        meta, size = meta_of(kept), weigh(_encode(kept))
        if size <= LARGE:
            self._sizes.drop(meta.namespace, (kind, meta.uid))
            return kept
        most = self._sizes.limit(meta.namespace, (kind, meta.uid), size)
        self._sizes.put(meta.namespace, (kind, meta.uid), min(size, most))
        if size <= most:
            return kept
        self.on_cut(kind, meta)
        return shorten(kept, most)


_SHORTENED: dict[Kind[Any, Any], Callable[[Any], Any]] = {
    REPLICA_SET: keep_template,
    STATEFUL_SET: keep_template,
    REPLICATION_CONTROLLER: keep_template,
    REVISION: keep_revision,
    SERVICE_ACCOUNT: keep_name,
    NAMESPACE: trim_namespace,
    LIMIT_RANGE: trim_limit_range,
}
_WITHOUT_TEMPLATES: dict[Kind[Any, Any], Callable[[Any], Any]] = dict.fromkeys(
    (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER), drop_template
)


def _overlook(_kind: str, _meta: ObjectMeta) -> None:
    """Tell nobody that an object was cut."""


def _identify_pod(row: PodRow) -> ObjectIdentity:
    return ObjectIdentity(row.namespace, row.name, row.uid, row.version)


def _find_controller_uid(row: PodRow) -> str:
    controller = row.template.controller
    return controller.uid if controller else ""


def _find_owner_uid(record: Record) -> str:
    owner = find_controller(meta_of(record))
    return owner.uid if owner else ""


def _ungrouped(_record: Record) -> str:
    return ""


def _identify_node(row: NodeRow) -> ObjectIdentity:
    return identify(row.record)


def _read_identity(kind: str, subject: Record) -> ObjectIdentity:
    meta = meta_of(subject)
    return ObjectIdentity(meta.namespace, meta.name, meta.uid, _read_version(kind, meta))


def _read_version(kind: str, meta: ObjectMeta) -> int:
    version = meta.resource_version
    if version.isdecimal() and version.isascii():
        return int(version)
    raise ObjectError(kind, meta, field="metadata.resourceVersion", reason=f"{version!r:.80} is not a number")
