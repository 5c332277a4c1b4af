"""Memory of cached objects: raw parts are copied out of the response, and equal strings are shared.

A msgspec.Raw is a view of the response that it was decoded from and keeps all of it in memory, managedFields
included, which are most of it. And thousands of objects have the same few labels.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Raw
from msgspec.structs import astuple, replace

from federation.api import AggregatedStatus, ManifestStatus, ResourceBinding
from federation.objects.resources import HeldWork
from reberth.cluster.tables import meta_of
from reberth.records import Labels, ObjectMeta, Record

Copy = Callable[[Any], Any]
T = TypeVar("T")
Texts = TypeVar("Texts", bound=Record)
Told = TypeVar("Told", AggregatedStatus, ManifestStatus)


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
    manifests = _map(_copy, workload.manifests)
    return replace(
        work,
        spec=replace(work.spec, workload=replace(workload, manifests=manifests)),
        status=replace(
            work.status,
            conditions=_map(_share_texts, work.status.conditions),
            manifest_statuses=_map(_copy_manifest_status, statuses),
        ),
    )


def _copy_binding(binding: ResourceBinding) -> ResourceBinding:
    said = binding.status
    return replace(
        binding,
        spec=replace(
            binding.spec,
            resource=_share_texts(binding.spec.resource),
            clusters=_map(_share_texts, binding.spec.clusters),
        ),
        status=replace(
            said,
            conditions=_map(_share_texts, said.conditions),
            aggregated_status=_map(_copy_status, said.aggregated_status),
        ),
    )


def _copy_manifest_status(status: ManifestStatus) -> ManifestStatus:
    return _copy_status(replace(status, identifier=_share_texts(status.identifier)))


def _copy_status(status: Told) -> Told:
    return _share_texts(replace(status, status=_copy(status.status)))


def _share_texts(record: Texts) -> Texts:
    """Share the texts of a small record: most are the same in all objects of their kind."""
    values = (sys.intern(each) if type(each) is str else each for each in astuple(record))
    return type(record)(*values)


def _map(change: Callable[[T], T], values: tuple[T, ...] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(map(change, values))


def _copy(raw: Raw) -> Raw:
    return raw.copy()


def _leave(record: Record) -> Record:
    return record


_COPIES: dict[type[Record], Copy] = {HeldWork: _copy_work, ResourceBinding: _copy_binding}
