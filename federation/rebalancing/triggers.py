"""Triggers: spec.rescheduleTriggeredAt requests a fresh scheduling by being later than the last one.

Times are whole seconds. The scheduler carries out a trigger that is later than status.lastScheduledTime, and
then sets that to a time not before the trigger. So the two times alone tell whether a trigger was handled.
"""

from typing import Any

from msgspec.structs import replace

from federation.api import Handover, ResourceBinding
from federation.api.bindings import kind_of
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import TimeError, parse_time

_LEAST_STEP = 1


def choose_trigger(binding: ResourceBinding, *, created: float, now: float) -> float:
    """Return the time of the request, or a later one if the scheduler has run since."""
    last = last_scheduled(binding)
    if last is None or created > last:
        return created
    return max(now // 1, last + _LEAST_STEP)


def is_triggered(binding: ResourceBinding, trigger: float) -> bool:
    """Tell whether the binding has this trigger, or a later one."""
    written = _read(binding, binding.spec.reschedule_triggered_at, "spec.rescheduleTriggeredAt")
    return written is not None and written >= trigger


def is_scheduled(binding: ResourceBinding, trigger: float) -> bool:
    """Tell whether the binding was scheduled since the trigger."""
    last = last_scheduled(binding)
    return last is not None and last >= trigger


def is_pending(binding: ResourceBinding) -> bool:
    """Tell whether the binding has a trigger that the scheduler has not handled."""
    written = _read(binding, binding.spec.reschedule_triggered_at, "spec.rescheduleTriggeredAt")
    return written is not None and not is_scheduled(binding, written)


def is_handled(binding: ResourceBinding) -> bool:
    """Tell whether there was a trigger, and it is handled or unreadable."""
    try:
        return binding.spec.reschedule_triggered_at is not None and not is_pending(binding)
    except ObjectError:
        return True


def check_times(binding: ResourceBinding) -> None:
    """Raise an ObjectError if one of the two times cannot be read."""
    is_pending(binding)
    last_scheduled(binding)


def with_trigger(binding: ResourceBinding, at: str, handover: int | None) -> ResourceBinding:
    """Return the binding as it is once triggered; `handover` is how long new copies may take to get ready."""
    timed = replace(binding.spec.handover or Handover(), timeout_seconds=handover)
    return replace(binding, spec=replace(binding.spec, reschedule_triggered_at=at, handover=timed))


def write_trigger(
    binding: ResourceBinding, at: str, handover: int | None, placed: dict[str, Any]
) -> dict[str, Any]:
    """Return the merge patch of the trigger and of the decision, if there is one."""
    spec = placed.get("spec", {})
    return {
        "metadata": {**placed.get("metadata", {}), "resourceVersion": binding.metadata.resource_version},
        "spec": {
            **spec,
            "rescheduleTriggeredAt": at,
            "handover": {"timeoutSeconds": handover, **spec.get("handover", {})},
        },
    }


def last_scheduled(binding: ResourceBinding) -> float | None:
    return _read(binding, binding.status.last_scheduled_time, "status.lastScheduledTime")


def _read(binding: ResourceBinding, text: str | None, field: str) -> float | None:
    try:
        return None if text is None else parse_time(text) // 1
    except TimeError as error:
        raise ObjectError(kind_of(binding), binding.metadata, field=field, reason=str(error)) from error
