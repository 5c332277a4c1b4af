"""Conditions of a status: find one by its type, set some and keep the others."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from federation.objects.template import Object
from reberth.records import Condition
from reberth.values.text_limits import cut
from reberth.values.timestamp import write_time


def find_condition(conditions: tuple[Condition, ...] | None, name: str) -> Condition | None:
    for each in conditions or ():
        if each.type == name:
            return each
    return None


def put_condition(has: tuple[Condition, ...] | None, wanted: Condition, *, now: float) -> list[Object] | None:
    """Return all conditions with this one set; None if it is set already and says the same."""
    return put_conditions(has, (wanted,), now=now)


def put_conditions(
    has: tuple[Condition, ...] | None, wanted: Iterable[Condition], *, now: float
) -> list[Object] | None:
    """Return all conditions with these set; None if all are set already and say the same."""
    held, is_changed = has or (), False
    for each in wanted:
        if (new := _renew(find_condition(held, each.type), each, now)) is not None:
            held, is_changed = (*(other for other in held if other.type != each.type), new), True
    return [_write(each) for each in held] if is_changed else None


def _renew(old: Condition | None, wanted: Condition, now: float) -> Condition | None:
    """Return a condition as it is to be written; None if it says the same already.

    A condition that changes its status gets the present time, unless it comes with another one.
    A message is cut: the API server refuses a status with a longer one than the definition allows, and with
    it everything else that the status says.
    """
    message = cut(wanted.message or "")
    says = wanted.status, wanted.reason, message, wanted.observed_generation
    if old and (old.status, old.reason, old.message, old.observed_generation) == says:
        return None
    is_same = old is not None and old.status == wanted.status
    since = old.last_transition_time if old and is_same else wanted.last_transition_time or write_time(now)
    return replace(wanted, message=message, last_transition_time=since)


def _write(condition: Condition) -> Object:
    """The schema requires a reason and a message, even if they are empty."""
    written: Object = msgspec.to_builtins(condition)
    return {"reason": "", "message": "", **written}
