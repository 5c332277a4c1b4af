"""When a workload is asked to be scheduled afresh: a time that the scheduler has not reached yet.

Times are whole seconds. The scheduler carries out a wish that is later than its last scheduling, and then
writes a time that is not before the wish. So whether a wish has been heard is told by two times alone.
"""

from federation.api import ResourceBinding
from federation.api.bindings import kind_of
from reberth.values.object_error import ObjectError
from reberth.values.timestamp import TimeError, parse_time

_LEAST_STEP = 1


def choose_trigger(binding: ResourceBinding, *, created: float, now: float) -> float:
    """Give the time when the wish was made, or a later one where the scheduler has been there since."""
    last = last_scheduled(binding)
    if last is None or created > last:
        return created
    return max(now // 1, last + _LEAST_STEP)


def is_triggered(binding: ResourceBinding, trigger: float) -> bool:
    """Tell whether the binding carries this wish, or one that was made later."""
    written = _read(binding, binding.spec.reschedule_triggered_at, "spec.rescheduleTriggeredAt")
    return written is not None and written >= trigger


def is_scheduled(binding: ResourceBinding, trigger: float) -> bool:
    """Tell whether the scheduler has been there since the wish."""
    last = last_scheduled(binding)
    return last is not None and last >= trigger


def is_pending(binding: ResourceBinding) -> bool:
    """Tell whether the binding carries a wish that the scheduler has not heard."""
    written = _read(binding, binding.spec.reschedule_triggered_at, "spec.rescheduleTriggeredAt")
    return written is not None and not is_scheduled(binding, written)


def has_been_heard(binding: ResourceBinding) -> bool:
    """Tell whether there was a wish, and it needs no waiting for any more."""
    try:
        return binding.spec.reschedule_triggered_at is not None and not is_pending(binding)
    except ObjectError:
        return True


def check_times(binding: ResourceBinding) -> None:
    """Raise an ObjectError where one of the two times cannot be read."""
    is_pending(binding)
    last_scheduled(binding)


def last_scheduled(binding: ResourceBinding) -> float | None:
    return _read(binding, binding.status.last_scheduled_time, "status.lastScheduledTime")


def _read(binding: ResourceBinding, text: str | None, field: str) -> float | None:
    try:
        return None if text is None else parse_time(text) // 1
    except TimeError as error:
        raise ObjectError(kind_of(binding), binding.metadata, field=field, reason=str(error)) from error
