"""Events that tell that a step is done, with the reasons of Karmada's: dashboards and people know those.

Each is recorded when something has changed, never again at every look. They are minor: where many Events wait
to be written, these are left out, so that they delay none that matters more.
"""

from collections.abc import Iterable
from typing import NamedTuple

from federation.api import ResourceBinding
from federation.hub.hub import Hub, refer_to
from federation.objects.names import Key
from federation.propagation.binding import template_of
from reberth.records import ObjectMeta, ObjectReference


class StepEvent(NamedTuple):
    reason: str
    note: str
    action: str


POLICY_APPLIED = StepEvent("ApplyPolicySucceed", "Claimed by {policy}.", "ApplyPolicy")
DEPENDENCIES_FOUND = StepEvent("GetDependenciesSucceed", "Depends on {needs}.", "GetDependencies")
DEPENDENCY_PLACED = StepEvent(
    "SyncScheduleResultToDependenciesSucceed", "{need} follows it to its clusters.", "SyncScheduleResult"
)
WORKS_WRITTEN = StepEvent("SyncWorkSucceed", "Wrote its Works for {clusters}.", "SyncWork")
COPY_APPLIED = StepEvent("SyncSucceed", "Applied {copy} in cluster {cluster}.", "Sync")
STATUS_AGGREGATED = StepEvent(
    "AggregateStatusSucceed",
    "Applied in all clusters; the statuses are summed up.",
    "AggregateStatus",
)
SPACE_CREATED = StepEvent(
    "CreateExecutionSpaceSucceed", "Created namespace {namespace}.", "CreateExecutionSpace"
)
SPACE_REMOVED = StepEvent(
    "RemoveExecutionSpaceSucceed", "Removed namespace {namespace}.", "RemoveExecutionSpace"
)


def tell_step(hub: Hub, step: StepEvent, *regarding: ObjectReference, **words: object) -> None:
    """Record an Event on each of these objects, unless many others wait."""
    if not hub.recorder.takes_minor:
        return
    note = step.note.format(**words)
    for one in regarding:
        hub.recorder.record(one, reason=step.reason, note=note, action=step.action, is_minor=True)


def refer_to_template(binding: ResourceBinding) -> ObjectReference:
    return refer_to(template_of(binding), ObjectMeta(uid=binding.spec.resource.uid))


def list_names(names: Iterable[Key | str], *, most: int = 5) -> str:
    """Write the first names, and how many there are beyond them."""
    known = sorted(map(str, names))
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f"{', '.join(known[:most])}{more}"
