"""Memory of cached objects: raw parts are copied out of the response, and equal strings are shared.

A msgspec.Raw is a view of the response that it was decoded from and keeps all of it in memory, managedFields
included, which are most of it. And thousands of objects have the same few labels.
"""

import sys
from collections.abc import Callable
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from federation.api import ResourceBinding
from federation.objects.resources import HeldWork
from reberth.cluster.tables import meta_of
from reberth.records import Labels, ObjectMeta, Record

Copy = Callable[[Any], Any]


def keep(record: Any) -> Any:  # noqa: ANN401 - any record in, the same one out
    """Return the record without references into the response that it came from."""
    own = _COPIES.get(type(record), _leave)(record)
    return replace(own, metadata=_share(meta_of(record)))


def _share(meta: ObjectMeta) -> ObjectMeta:
    return replace(
        meta,
        namespace=sys.intern(meta.namespace),
        labels=_share_all(meta.labels),
        annotations=_share_all(meta.annotations),
    )


def _share_all(labels: Labels | None) -> Labels | None:
    if labels is None:
        return None
    return {sys.intern(name): sys.intern(value) for name, value in labels.items()}


def _copy_work(work: HeldWork) -> HeldWork:
    workload, statuses = work.spec.workload, work.status.manifest_statuses
    manifests = None if workload.manifests is None else tuple(map(_copy, workload.manifests))
    return replace(
        work,
        spec=replace(work.spec, workload=replace(workload, manifests=manifests)),
        status=replace(work.status, manifest_statuses=_copy_statuses(statuses)),
    )


def _copy_binding(binding: ResourceBinding) -> ResourceBinding:
    said = binding.status.aggregated_status
    return replace(binding, status=replace(binding.status, aggregated_status=_copy_statuses(said)))


def _copy_statuses(statuses: Any) -> Any:  # noqa: ANN401 - records of one kind or another with a status
    if statuses is None:
        return None
    return tuple(replace(each, status=_copy(each.status)) for each in statuses)


def _copy(raw: Raw) -> Raw:
    return raw.copy()


def _leave(record: Record) -> Record:
    return record


_COPIES: dict[type[Record], Copy] = {HeldWork: _copy_work, ResourceBinding: _copy_binding}
