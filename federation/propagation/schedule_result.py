"""What a scheduling decision writes: the clusters, the status of the binding, and Events."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from federation.api import (
    APPLIED_PLACEMENT,
    DEFAULT_SCHEDULER,
    SCHEDULED,
    ClusterAffinity,
    Handover,
    Placement,
    ResourceBinding,
    TargetCluster,
)
from federation.api.labels import SCHEDULABLE
from federation.failover.eviction_tasks import add_tasks_for_leaving
from federation.objects.conditions import find_condition, put_condition
from federation.objects.template import Object
from federation.propagation.binding import is_divided
from federation.propagation.schedule_note import write_note
from federation.rebalancing.handover import set_timeout, write_handover
from federation.scheduling import Decision, Reason
from federation.scheduling.cause import Cause, SkipReason
from federation.scheduling.demand import SCHEDULE_NOTE
from federation.scheduling.unreported_clusters import UNREPORTED_CLUSTERS, write_unreported
from reberth.records import Condition
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import write_time

SUCCEEDED, FAILED, UNKNOWN = "ScheduleBindingSucceed", "ScheduleBindingFailed", "UnknownCluster"
_SUCCESS_TEXT = "Binding has been scheduled successfully."


class BindingEvent(NamedTuple):
    """An Event for the binding and for its template."""

    reason: str
    note: str
    is_failure: bool


def is_scheduled_by_us(binding: ResourceBinding) -> bool:
    """Tell whether this scheduler schedules the binding: by its name, and by a claim or managed-by label."""
    labels = binding.metadata.labels or {}
    return (
        binding.metadata.deletion_timestamp is None
        and (binding.spec.scheduler_name or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        and any(label in labels for label in SCHEDULABLE)
    )


def priority_rank(binding: ResourceBinding | None) -> int:
    """Return the rank in the queue: a higher priority is a smaller rank."""
    priority = binding.spec.schedule_priority if binding else None
    return -(priority.priority if priority else 0)


def change_clusters(
    binding: ResourceBinding,
    decision: Decision,
    *,
    leaving: Collection[str] = (),
    handover: int | None = None,
) -> Object | None:
    """Return the merge patch of clusters and applied placement; None if nothing changes.

    Copies in clusters that are `leaving` stay until their replacements are healthy. `handover` is how many
    seconds new copies have to get ready after a decision that nobody requested; None keeps no old copies.
    """
    if decision.reason is not Reason.SUCCESS or not decision.cause:
        return None
    patch: Object = {}
    if (binding.spec.clusters or ()) != decision.clusters:
        patch["spec"] = {
            "clusters": [{"name": each.name, "replicas": each.replicas} for each in decision.clusters]
        }
        if tasks := add_tasks_for_leaving(binding, decision.clusters, leaving):
            patch["spec"]["gracefulEvictionTasks"] = [msgspec.to_builtins(task) for task in tasks]
        evicting = {each.from_cluster for each in binding.spec.graceful_eviction_tasks or ()}
        gone = {each.name for each in binding.spec.clusters or ()} - decision.verdicts.keys()
        patch["spec"] |= _hand_over(binding, decision, handover, evicting.union(leaving, gone))
    had = binding.metadata.annotations or {}
    wanted = {APPLIED_PLACEMENT: write_placement(binding), **_annotate_unreported(had, decision)}
    if not patch and wanted.items() <= had.items():
        return None
    metadata = {
        "resourceVersion": binding.metadata.resource_version,
        "annotations": {**wanted, SCHEDULE_NOTE: write_note(binding, decision)},
    }
    return {**patch, "metadata": metadata}


def _hand_over(
    binding: ResourceBinding, decision: Decision, handover: int | None, without: Collection[str]
) -> Object:
    """Keep old copies until the new ones are ready, whatever the cause of the decision.

    A request for a fresh scheduling says itself for how long. Nothing is kept in the clusters `without`, nor
    where no cluster gains replicas: then there is nothing to wait for.
    """
    if decision.scheduled_at is None:
        return {}
    if decision.cause == Cause.REQUESTED:
        return write_handover(binding, decision.clusters, now=decision.scheduled_at, without=without)
    if handover is None or not _gains(binding, decision):
        return {}
    seconds = set_timeout(binding, handover)
    timed = replace(binding.spec.handover or Handover(), timeout_seconds=seconds)
    had = _without_surplus(binding, decision)
    asked = replace(binding, spec=replace(binding.spec, handover=timed, clusters=had))
    kept = write_handover(asked, decision.clusters, now=decision.scheduled_at, without=without)
    return {"handover": {"timeoutSeconds": seconds, **kept["handover"]}} if kept else {}


def _gains(binding: ResourceBinding, decision: Decision) -> bool:
    had = {each.name: each.replicas for each in binding.spec.clusters or ()}
    return any(each.replicas > had.get(each.name, -1) for each in decision.clusters)


def _without_surplus(binding: ResourceBinding, decision: Decision) -> tuple[TargetCluster, ...]:
    """Return the old clusters; of a workload that is not divided, fewer replicas in one are not a move."""
    had = binding.spec.clusters or ()
    if is_divided(binding):
        return had
    wanted = {each.name: each.replicas for each in decision.clusters}
    return tuple(
        TargetCluster(each.name, min(each.replicas, wanted.get(each.name, each.replicas))) for each in had
    )


def _annotate_unreported(had: Mapping[str, str], decision: Decision) -> dict[str, str | None]:
    """Return the annotation that names unreported clusters; None removes it."""
    if decision.unreported is None:
        return {}
    noted = write_unreported(decision.unreported)
    return {UNREPORTED_CLUSTERS: noted} if noted or UNREPORTED_CLUSTERS in had else {}


def write_placement(binding: ResourceBinding) -> str:
    """Write the placement always in the same way: the next scheduling compares the text."""
    return msgspec.json.encode(binding.spec.placement or Placement()).decode()


def change_schedule_status(
    binding: ResourceBinding, decision: Decision, *, was_changed: bool, now: float
) -> Object | None:
    """Return the merge patch of the status, for the binding as it is after its clusters were written."""
    status: Object = {}
    generation = binding.metadata.generation
    if binding.status.scheduler_observed_generation != generation:
        status["schedulerObservedGeneration"] = generation
    if decision.reason is Reason.SUCCESS and decision.cause:
        if binding.status.scheduler_observing_affinity_name != decision.affinity_name:
            status["schedulerObservingAffinityName"] = decision.affinity_name
        if decision.scheduled_at is not None and (was_changed or status):
            status["lastScheduledTime"] = write_time(decision.scheduled_at)
    if _is_judged(decision) and (conditions := _change_conditions(binding, decision, now)):
        status["conditions"] = conditions
    if not status:
        return None
    return {"metadata": {"resourceVersion": binding.metadata.resource_version}, "status": status}


def describe_unreadable(binding: ResourceBinding, error: ObjectError) -> Decision:
    """Return the decision for a binding that cannot be read: it stays where it is."""
    return Decision(
        clusters=binding.spec.clusters or (),
        affinity_name=binding.status.observed_affinity,
        reason=Reason.SCHEDULER_ERROR,
        message=str(error),
        verdicts={},
        cause=Cause.NEW,
    )


def list_events(binding: ResourceBinding, decision: Decision, *, was_changed: bool) -> Iterator[BindingEvent]:
    """Yield Events for news: a success, or a failure with a message that the condition does not have yet."""
    for failure in decision.failures if was_changed or not _is_known(binding, decision) else ():
        yield BindingEvent(FAILED, failure.message, is_failure=True)
    if was_changed or not _is_known(binding, decision):
        yield from _tell_unknown(binding, decision)
    if decision.reason is Reason.SUCCESS:
        if was_changed:
            yield BindingEvent(SUCCEEDED, decision.message, is_failure=False)
    elif not _is_known(binding, decision):
        yield BindingEvent(FAILED, decision.message, is_failure=True)


def _tell_unknown(binding: ResourceBinding, decision: Decision) -> Iterator[BindingEvent]:
    unknown = list_unknown_clusters(binding.spec.placement, decision.verdicts)
    if unknown and decision.cause:
        note = f"The placement names clusters that do not exist: {', '.join(unknown)}"
        yield BindingEvent(UNKNOWN, note, is_failure=True)


def _is_judged(decision: Decision) -> bool:
    """Tell whether the condition is written: after a decision, or if nothing has changed since one."""
    return bool(decision.cause) or decision.message == SkipReason.UNCHANGED


def _change_conditions(binding: ResourceBinding, decision: Decision, now: float) -> list[Object] | None:
    is_success = decision.reason is Reason.SUCCESS
    wanted = Condition(
        type=SCHEDULED,
        status=str(is_success),
        reason=str(decision.reason),
        message=_SUCCESS_TEXT if is_success else decision.steady or decision.message,
    )
    return put_condition(binding.status.conditions, wanted, now=now)


def _is_known(binding: ResourceBinding, decision: Decision) -> bool:
    has = find_condition(binding.status.conditions, SCHEDULED)
    said = decision.steady or decision.message
    return has is not None and (has.reason, has.message) == (str(decision.reason), said)


def list_unknown_clusters(placement: Placement | None, known: Collection[str]) -> list[str]:
    """List the clusters that a placement names and that do not exist, in their order.

    They may be misspelt, or not have joined yet.
    """
    named = (name for affinity in _list_affinities(placement) for name in affinity.cluster_names or ())
    return [name for name in dict.fromkeys(named) if name not in known]


def _list_affinities(placement: Placement | None) -> Iterator[ClusterAffinity]:
    if placement is None:
        return
    if placement.cluster_affinity is not None:
        yield placement.cluster_affinity
    for term in placement.cluster_affinities or ():
        yield term
        yield from term.overflow_affinities or ()
