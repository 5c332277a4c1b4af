"""Handover, make before break: old replicas stay until the new ones in other clusters are ready.

The request for a fresh scheduling says how long old copies may stay. The scheduler writes the old replicas in
the same patch as the new clusters: with two patches, a controller may read the binding in between and remove
the old copies. The handover ends when every cluster has its replicas ready, or at the timeout.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from federation.api import Handover, ResourceBinding, TargetCluster
from federation.api.bindings import kind_of
from federation.rebalancing.replicas import is_ready
from federation.rebalancing.triggers import is_pending
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import TimeError, parse_time, write_time


class Ready(NamedTuple):
    """The old copies may go: the new ones are ready, or the timeout is over."""

    in_time: bool


class Wait(NamedTuple):
    """The old copies stay for at most these seconds."""

    seconds: float


def write_handover(
    binding: ResourceBinding, clusters: Iterable[TargetCluster], *, now: float
) -> dict[str, Any]:
    """Return the part of the spec that keeps old copies, to be written with the new clusters."""
    said = binding.spec.handover
    if said is None or said.timeout_seconds is None or _runs_to_an_end(binding):
        return {}
    wanted = {each.name: each.replicas for each in clusters}
    old = _highest(*(said.clusters or ()), *(binding.spec.clusters or ()))
    kept = {name: count for name, count in old.items() if name not in wanted or count > wanted[name]}
    if not kept:
        return {"handover": {"clusters": None, "until": None}} if said.clusters else {}
    return {
        "handover": {
            "clusters": [{"name": name, "replicas": kept[name]} for name in sorted(kept)],
            "until": write_time(now + said.timeout_seconds),
        }
    }


def kept_replicas(binding: ResourceBinding) -> dict[str, int]:
    """Return the clusters that keep old replicas for now, and how many."""
    said = binding.spec.handover
    if said is None or _runs_to_an_end(binding):
        return {}
    return {each.name: each.replicas for each in said.clusters or ()}


def review_handover(binding: ResourceBinding, *, now: float) -> Ready | Wait | None:
    """Tell whether old copies may go; None if none are kept, or a newer request will decide about them."""
    said = binding.spec.handover
    if said is None or not said.clusters or is_pending(binding):
        return None
    if is_ready(binding):
        return Ready(in_time=True)
    rest = _read_until(binding, said) - now
    return Wait(rest) if rest > 0 else Ready(in_time=False)


def write_handover_end(binding: ResourceBinding) -> dict[str, Any]:
    """Return the merge patch that ends the handover."""
    return {
        "metadata": {"resourceVersion": binding.metadata.resource_version},
        "spec": {"handover": {"clusters": None, "until": None}},
    }


def _runs_to_an_end(binding: ResourceBinding) -> bool:
    """A Job must not do its work twice, so its old copies are never kept beside new ones."""
    return binding.spec.resource.kind == "Job"


def _highest(*clusters: TargetCluster) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in clusters:
        found[each.name] = max(each.replicas, found.get(each.name, 0))
    return found


def _read_until(binding: ResourceBinding, said: Handover) -> float:
    """Read when the old copies go in any case; a missing time means now."""
    try:
        return parse_time(said.until) if said.until else 0.0
    except TimeError as error:
        raise ObjectError(
            kind_of(binding), binding.metadata, field="spec.handover.until", reason=str(error)
        ) from error
