"""The note of a decision: it makes the two writes of a decision safe against a crash between them.

The clusters (spec) and the status of a binding are two writes. The first one carries a note of what the
second one will write. A process that takes over in between finds the note: it neither schedules anew nor
forgets the status and the Events.
"""

from msgspec.structs import replace

from federation.api import ResourceBinding
from federation.scheduling import Decision, describe_success
from federation.scheduling.cause import Cause, SkipReason
from federation.scheduling.demand import ScheduleNote, read_note, write_note_at
from reberth.values.timestamp import TimeError, parse_time


def write_note(binding: ResourceBinding, decision: Decision) -> str:
    """Write the note of a decision that succeeded."""
    return write_note_at(binding, decision.scheduled_at or 0.0, decision.affinity_name)


def apply_note(binding: ResourceBinding) -> ResourceBinding:
    """Return the binding with the status that its last decision would have written."""
    note = read_note(binding)
    if note is None or not _is_newer(note, binding):
        return binding
    status, generation = binding.status, binding.status.scheduler_observed_generation
    is_carried_out = note.trigger == (binding.spec.reschedule_triggered_at or "")
    return replace(
        binding,
        status=replace(
            status,
            last_scheduled_time=note.time,
            scheduler_observing_affinity_name=note.affinity_name,
            scheduler_observed_generation=binding.metadata.generation if is_carried_out else generation,
        ),
    )


def resume(binding: ResourceBinding, known: ResourceBinding, decision: Decision) -> Decision:
    """Return the decision to report: if nothing is new, the one that the crash left unreported."""
    if known is binding or decision.message != SkipReason.UNCHANGED:
        return decision
    clusters = binding.spec.clusters or ()
    return replace(
        decision,
        message=describe_success(clusters, is_namespaced=bool(binding.metadata.namespace)),
        cause=Cause.NEW,
        scheduled_at=parse_time(known.status.last_scheduled_time or ""),
    )


def _is_newer(note: ScheduleNote, binding: ResourceBinding) -> bool:
    """Within the same second the note is newer if the binding has changed since the status was written."""
    status = binding.status
    try:
        noted = parse_time(note.time)
        reported = parse_time(status.last_scheduled_time) if status.last_scheduled_time else float("-inf")
    except TimeError:
        return False
    has_changed = binding.metadata.generation != status.scheduler_observed_generation
    is_reported = (note.time, note.affinity_name) == (status.last_scheduled_time, status.observed_affinity)
    return not is_reported and (noted > reported or (noted == reported and has_changed))
