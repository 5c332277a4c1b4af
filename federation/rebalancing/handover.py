"""Handover, make before break: old replicas stay until the new ones in other clusters are ready.

The scheduler writes the old replicas in the same patch as the new clusters: with two patches, a controller
may read the binding in between and remove the old copies. The handover ends when the new copies are ready.
If they are not ready in time, the workload returns to where it was: what is healthy is not taken away for
something that is not there. Where its placement would send it on again at once, or where the old copies are
not all available either, it does not return: both stay until the new copies are ready.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from federation.api import Handover, HandoverMode, HandoverPolicy, OnTimeout, ResourceBinding, TargetCluster
from federation.api.bindings import kind_of
from federation.rebalancing.replicas import are_dead, are_ready, is_ready
from federation.rebalancing.triggers import is_pending, last_scheduled
from federation.scheduling import Fleet, decide
from federation.scheduling.demand import SCHEDULE_NOTE, write_note_at
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import TimeError, parse_time, write_time

_ENDED = {"clusters": None, "until": None, "origin": None, "originAffinity": None}


class Ready(NamedTuple):
    """The old copies may go: the new ones are ready.

    Or the timeout is over, and the policy lets them go or they do not work themselves.
    """

    in_time: bool


class Wait(NamedTuple):
    """The old copies stay for at most these seconds."""

    seconds: float


class Return(NamedTuple):
    """The new copies were not ready in time: the workload returns to where it was."""

    clusters: tuple[TargetCluster, ...]


class Hold(NamedTuple):
    """The timeout is over, but the workload cannot return: old and new copies stay."""


def read_handover_policy(binding: ResourceBinding) -> HandoverPolicy:
    failover = binding.spec.failover
    return (failover.handover if failover else None) or HandoverPolicy()


def set_timeout(binding: ResourceBinding, default: float) -> int:
    """Return how long new copies have to get ready: as the policy says, or the default."""
    return read_handover_policy(binding).timeout_seconds or max(1, int(default))


def write_handover(
    binding: ResourceBinding,
    clusters: Iterable[TargetCluster],
    *,
    now: float,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """Return the part of the spec that keeps old copies, to be written with the new clusters.

    Nothing is kept in the clusters `without`: evictions decide about their copies.
    """
    said = binding.spec.handover
    if said is None or said.timeout_seconds is None or _breaks_first(binding):
        return {}
    wanted = {each.name: each.replicas for each in clusters}
    has = [each for each in binding.spec.clusters or () if each.name not in without]
    old = _highest(*(said.clusters or ()), *has)
    kept = {name: count for name, count in old.items() if name not in wanted or count > wanted[name]}
    if not kept:
        return {"handover": dict(_ENDED)} if said.clusters else {}
    origin, affinity = _find_origin(binding, said, has)
    return {
        "handover": {
            "clusters": [{"name": name, "replicas": kept[name]} for name in sorted(kept)],
            "until": write_time(now + said.timeout_seconds),
            "origin": [{"name": each.name, "replicas": each.replicas} for each in origin],
            "originAffinity": affinity,
        }
    }


def kept_replicas(binding: ResourceBinding) -> dict[str, int]:
    """Return the clusters that keep old replicas for now, and how many."""
    said = binding.spec.handover
    if said is None or _runs_to_an_end(binding):
        return {}
    return {each.name: each.replicas for each in said.clusters or ()}


def review_handover(
    binding: ResourceBinding, fleet: Callable[[], Fleet], *, now: float
) -> Ready | Wait | Return | Hold | None:
    """Tell whether old copies may go; None if none are kept, or a newer request will decide about them."""
    said = binding.spec.handover
    if said is None or not said.clusters or is_pending(binding):
        return None
    if _is_replaced(binding, said):
        return Ready(in_time=True)
    rest = _read_until(binding, said) - now
    if rest > 0:
        return Wait(rest)
    if read_handover_policy(binding).on_timeout is OnTimeout.LET_GO or are_dead(binding, said.clusters):
        return Ready(in_time=False)
    origin = said.origin or ()
    if not are_ready(binding, origin):
        return Hold()
    return Return(origin) if _would_stay(binding, said, fleet(), now=now) else Hold()


def is_overdue(binding: ResourceBinding, *, now: float) -> bool:
    """Tell whether old copies are kept although the time is over: that may last, and nobody waits for it."""
    said = binding.spec.handover
    return said is not None and bool(said.clusters) and _read_until(binding, said) < now


def write_handover_end(binding: ResourceBinding) -> dict[str, Any]:
    """Return the merge patch that ends the handover: the new copies are there, or the old ones are let go."""
    return {
        "metadata": {"resourceVersion": binding.metadata.resource_version},
        "spec": {"handover": {**_ENDED, "returns": None, "returnedAt": None}},
    }


def write_return(binding: ResourceBinding, back: Return, *, now: float) -> dict[str, Any]:
    """Return the merge patch that sends the workload back, as a decision of the scheduler would."""
    said = binding.spec.handover or Handover()
    note = write_note_at(binding, _after_last(binding, now), said.origin_affinity or "")
    clusters = [{"name": each.name, "replicas": each.replicas} for each in back.clusters]
    again = {"returns": (said.returns or 0) + 1, "returnedAt": write_time(now)}
    return {
        "metadata": {
            "resourceVersion": binding.metadata.resource_version,
            "annotations": {SCHEDULE_NOTE: note},
        },
        "spec": {"clusters": clusters, "handover": {**_ENDED, **again}},
    }


def last_return(binding: ResourceBinding) -> float | None:
    """Return when the workload last returned because new copies were not ready; None if it did not."""
    said = binding.spec.handover
    if said is None or said.returned_at is None:
        return None
    return _read_time(binding, said.returned_at, "spec.handover.returnedAt")


def _runs_to_an_end(binding: ResourceBinding) -> bool:
    """A Job must not do its work twice, so its old copies are never kept beside new ones."""
    return binding.spec.resource.kind == "Job"


def _breaks_first(binding: ResourceBinding) -> bool:
    return _runs_to_an_end(binding) or read_handover_policy(binding).mode is HandoverMode.BREAK_FIRST


def _highest(*clusters: TargetCluster) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in clusters:
        found[each.name] = max(each.replicas, found.get(each.name, 0))
    return found


def _find_origin(
    binding: ResourceBinding, said: Handover, has: Iterable[TargetCluster]
) -> tuple[Iterable[TargetCluster], str]:
    """A handover that follows another one that has not ended returns to where the first one began."""
    if said.clusters and said.origin:
        return said.origin, said.origin_affinity or ""
    return has, binding.status.observed_affinity


def _is_replaced(binding: ResourceBinding, said: Handover) -> bool:
    """Tell whether the clusters that have gained replicas have them ready."""
    had = {each.name: each.replicas for each in said.origin or ()}
    gaining = [each for each in binding.spec.clusters or () if each.replicas > had.get(each.name, -1)]
    return are_ready(binding, gaining) or is_ready(binding)


def _would_stay(binding: ResourceBinding, said: Handover, fleet: Fleet, *, now: float) -> bool:
    """Tell whether the scheduler would leave the workload in the clusters to which it returns."""
    back = replace(
        binding,
        spec=replace(binding.spec, clusters=said.origin, handover=None),
        status=replace(
            binding.status,
            scheduler_observing_affinity_name=said.origin_affinity or "",
            old_observed_affinity_name="",
            last_scheduled_time=write_time(_after_last(binding, now)),
            scheduler_observed_generation=binding.metadata.generation,
        ),
    )
    stays = {each.name for each in decide(back, fleet, now=now).clusters}
    return stays.issuperset(each.name for each in said.origin or ())


def _after_last(binding: ResourceBinding, now: float) -> float:
    return max(now, last_scheduled(binding) or 0.0)


def _read_until(binding: ResourceBinding, said: Handover) -> float:
    """Read when the new copies have to be ready; a missing time means now."""
    return _read_time(binding, said.until, "spec.handover.until") if said.until else 0.0


def _read_time(binding: ResourceBinding, text: str, field: str) -> float:
    try:
        return parse_time(text)
    except TimeError as error:
        raise ObjectError(kind_of(binding), binding.metadata, field=field, reason=str(error)) from error
