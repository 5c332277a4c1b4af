"""The condition Failover of a binding: what becomes of a workload that fails, and what holds it back."""

from federation.api import ResourceBinding
from federation.failover.application_failover import UNHELD, FailoverReason
from federation.failover.eviction_tasks import FAILOVER, MEMBER_LOST
from federation.objects.conditions import find_condition, put_condition
from federation.objects.template import Object
from reberth.records import Condition

_NONE = "It has no application failover."


def change_condition(
    binding: ResourceBinding, reason: FailoverReason, message: str, *, now: float
) -> Object | None:
    """Return the merge patch of the condition; None if nothing changes.

    The one that says that a lost member holds a new copy back is not ours to change.
    """
    known = find_condition(binding.status.conditions, FAILOVER)
    if known is not None and known.reason == MEMBER_LOST:
        return None
    wanted = Condition(FAILOVER, str(reason in UNHELD), str(reason), message)
    conditions = put_condition(binding.status.conditions, wanted, now=now)
    if conditions is None:
        return None
    version = binding.metadata.resource_version
    return {"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}


def is_news(binding: ResourceBinding, reason: FailoverReason) -> bool:
    """Tell whether the condition of the binding has another reason, or none."""
    known = find_condition(binding.status.conditions, FAILOVER)
    return known is None or known.reason != reason


def calm_condition(binding: ResourceBinding, *, now: float) -> Object | None:
    """Return the merge patch for a workload that does not fail over any more; None if nothing changes."""
    known = find_condition(binding.status.conditions, FAILOVER)
    if known is None or known.reason == FailoverReason.CALM:
        return None
    return change_condition(binding, FailoverReason.CALM, _NONE, now=now)
