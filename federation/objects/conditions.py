"""Conditions of a status: find one by its type, set one and keep the others."""

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
    """Return all conditions with this one set; None if it is set already and says the same.

    A condition that changes its status gets the present time, unless it comes with another one.
    A message is cut: the API server refuses a status with a longer one than the definition allows, and with
    it everything else that the status says.
    """
    old, message = find_condition(has, wanted.type), cut(wanted.message or "")
    says = wanted.status, wanted.reason, message, wanted.observed_generation
    if old and (old.status, old.reason, old.message, old.observed_generation) == says:
        return None
    is_same = old is not None and old.status == wanted.status
    since = old.last_transition_time if old and is_same else wanted.last_transition_time or write_time(now)
    new = replace(wanted, message=message, last_transition_time=since)
    others = [each for each in has or () if each.type != wanted.type]
    return [_write(each) for each in (*others, new)]


def _write(condition: Condition) -> Object:
    """The schema requires a reason and a message, even if they are empty."""
    written: Object = msgspec.to_builtins(condition)
    return {"reason": "", "message": "", **written}
