"""What one binding demands of the scheduler: its object, read once into values that are quick to compare."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto

import msgspec

from federation.api import (
    BindingSpec,
    ClusterToleration,
    DivisionPreference,
    Placement,
    ResourceBinding,
    SchedulingType,
    SpreadConstraint,
    SpreadField,
)
from federation.api.bindings import NAMESPACED, kind_of
from federation.api.eviction_blocks import find_blocks
from federation.scheduling.affinity import (
    AffinityGroup,
    CompiledAffinity,
    FieldError,
    compile_affinity,
    list_groups,
)
from federation.scheduling.fleet import Request, read_request
from federation.scheduling.rounding import prefers_last_name
from reberth.records import Record
from reberth.values.object_error import ObjectError
from reberth.values.quantity import QuantityError
from reberth.values.text_limits import read_json
from reberth.values.timestamp import TimeError, parse_time, write_time

SCHEDULE_NOTE = "reberth.dev/scheduling"


class ScheduleNote(Record, frozen=True):
    """Written with a decision's clusters: its time, its group, and the request for a fresh scheduling."""

    time: str
    affinity_name: str = ""
    trigger: str = msgspec.field(default="", name="wish")


def read_note(binding: ResourceBinding) -> ScheduleNote | None:
    """Return None for a note that is missing or unreadable: another program may have written it."""
    return read_json((binding.metadata.annotations or {}).get(SCHEDULE_NOTE), ScheduleNote)


def write_note_at(binding: ResourceBinding, at: float, affinity_name: str) -> str:
    """Write the note of a decision that was made at this time for this group."""
    trigger = binding.spec.reschedule_triggered_at or ""
    return msgspec.json.encode(ScheduleNote(write_time(at), affinity_name, trigger)).decode()


_PLACEMENT = "spec.placement"


class Strategy(Enum):
    """How replicas are divided: all to each cluster, by fixed weights, by room, or to as few as possible."""

    DUPLICATED = auto()
    STATIC_WEIGHT = auto()
    DYNAMIC_WEIGHT = auto()
    AGGREGATED = auto()


class Bounds(msgspec.Struct, frozen=True):
    """Lower and upper limits; no `most` is no limit."""

    least: int = 1
    most: int | None = None


class BindingDemand(msgspec.Struct, frozen=True, eq=False):
    """One binding. A `fresh` one is scheduled as if it had no clusters yet.

    `blocked` are clusters in which it failed, with the time until which it does not return there.
    """

    kind: str
    name: str
    uid: str
    api: tuple[str, str]
    replicas: int
    is_workload: bool
    request: Request
    targets: dict[str, int]
    evicting: frozenset[str]
    blocked: dict[str, float]
    groups: tuple[AffinityGroup, ...]
    observed: str
    fresh: bool
    requested_at: float
    tolerations: tuple[ClusterToleration, ...]
    spread: dict[SpreadField | None, Bounds]
    strategy: Strategy
    weights: tuple[tuple[CompiledAffinity, int], ...]

    @property
    def is_namespaced(self) -> bool:
        return self.kind == NAMESPACED

    @property
    def divides_by_room(self) -> bool:
        return self.strategy in {Strategy.DYNAMIC_WEIGHT, Strategy.AGGREGATED}

    @property
    def last_name_first(self) -> bool:
        return prefers_last_name(self.uid)


def read_binding_demand(binding: ResourceBinding, *, now: float) -> BindingDemand:
    """Read a binding. Raises ObjectError if a field cannot be read."""
    with _naming(binding):
        return _read(binding, binding.spec.placement or Placement(), now)


def name_of(binding: ResourceBinding) -> str:
    """Return namespace/name, or the name alone if there is no namespace."""
    return "/".join(filter(None, (binding.metadata.namespace, binding.metadata.name)))


def is_due(binding: ResourceBinding) -> bool:
    """Tell whether a fresh scheduling was requested and has not been done since.

    Both times are whole seconds. If they are equal, the request counts as the later one if the object has
    changed since the scheduler observed it, unless its note says that this very request was carried out.
    """
    trigger, last = binding.spec.reschedule_triggered_at, binding.status.last_scheduled_time
    if trigger is None or last is None:
        return False
    requested = _read_seconds(trigger, "spec.rescheduleTriggeredAt")
    done = _read_seconds(last, "status.lastScheduledTime")
    return requested > done or (requested == done and _is_later(binding, trigger))


def _is_later(binding: ResourceBinding, trigger: str) -> bool:
    """Tell whether a request made in the same second as the last scheduling came after it."""
    generation, note = binding.metadata.generation, read_note(binding)
    if note is not None and note.trigger == trigger:
        return False
    return generation == 0 or generation > binding.status.scheduler_observed_generation


def _read(binding: ResourceBinding, placement: Placement, now: float) -> BindingDemand:
    spec = binding.spec
    one_part = len(spec.components or ()) <= 1
    is_workload = one_part and (spec.replicas > 0 or spec.replica_requirements is not None)
    strategy = _find_strategy(placement)
    return BindingDemand(
        kind=kind_of(binding),
        name=name_of(binding),
        uid=spec.resource.uid,
        api=(spec.resource.api_version, spec.resource.kind),
        replicas=spec.replicas if one_part else 0,
        is_workload=is_workload,
        request=_read_request(spec),
        targets={target.name: target.replicas for target in spec.clusters or ()},
        evicting=frozenset(task.from_cluster for task in spec.graceful_eviction_tasks or ()),
        blocked=find_blocks(binding, now=now),
        groups=list_groups(placement, _PLACEMENT, with_overflow=is_workload),
        observed=binding.status.observed_affinity,
        fresh=is_due(binding),
        requested_at=_read_request_time(spec),
        tolerations=placement.cluster_tolerations or (),
        spread={each.spread_by_field: _read_bounds(each) for each in placement.spread_constraints or ()},
        strategy=strategy,
        weights=_read_weights(placement) if strategy is Strategy.STATIC_WEIGHT else (),
    )


def _find_strategy(placement: Placement) -> Strategy:
    scheduling = placement.replica_scheduling
    if scheduling is None or scheduling.replica_scheduling_type is SchedulingType.DUPLICATED:
        return Strategy.DUPLICATED
    if scheduling.replica_division_preference is DivisionPreference.AGGREGATED:
        return Strategy.AGGREGATED
    preference = scheduling.weight_preference
    return Strategy.DYNAMIC_WEIGHT if preference and preference.dynamic_weight else Strategy.STATIC_WEIGHT


def _read_bounds(constraint: SpreadConstraint) -> Bounds:
    return Bounds(constraint.min_groups or 1, constraint.max_groups or None)


def _read_weights(placement: Placement) -> tuple[tuple[CompiledAffinity, int], ...]:
    scheduling = placement.replica_scheduling
    preference = scheduling.weight_preference if scheduling else None
    rules = (preference.static_weight_list if preference else None) or ()
    path = f"{_PLACEMENT}.replicaScheduling.weightPreference.staticWeightList"
    return tuple(
        (compile_affinity(rule.target_cluster, f"{path}[{index}].targetCluster"), rule.weight)
        for index, rule in enumerate(rules)
    )


def _read_request(spec: BindingSpec) -> Request:
    needs = spec.replica_requirements
    try:
        return read_request(needs.resource_request if needs else None)
    except QuantityError as error:
        raise FieldError("spec.replicaRequirements.resourceRequest", str(error)) from error


def _read_request_time(spec: BindingSpec) -> float:
    trigger = spec.reschedule_triggered_at
    return 0.0 if trigger is None else _read_seconds(trigger, "spec.rescheduleTriggeredAt")


def _read_seconds(text: str, field: str) -> float:
    try:
        return parse_time(text) // 1
    except TimeError as error:
        raise FieldError(field, str(error)) from error


@contextmanager
def _naming(binding: ResourceBinding) -> Iterator[None]:
    """Turn the error of a field into one that names the binding."""
    try:
        yield
    except FieldError as error:
        raise ObjectError(
            kind_of(binding), binding.metadata, field=error.field, reason=error.reason
        ) from error
