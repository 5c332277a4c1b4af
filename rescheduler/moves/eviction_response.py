"""What the Eviction API's errors mean, by their cause and never by their code alone.

A "no" is certain only if the API server has said it, or was never reached. For the rest (no answer, a fault
of the server) there is IN_DOUBT: then the pod is looked up, and nothing is repeated blindly. PODS_STATE says
that the server has found the pod gone or changed: then, too, a look tells what is true.

Some "no" is a yes: who evacuates the pod himself, as KubeVirt migrates a virtual machine, denies the eviction
and says that it has begun.
"""

from collections.abc import Callable
from enum import Enum

from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused

_BUDGET_CAUSE = "DisruptionBudget"
_NAMESPACE_CAUSE = "NamespaceTerminating"
_SEVERAL_BUDGETS = "more than one PodDisruptionBudget"
# The words that the descheduler and KubeVirt have agreed on.
_EVACUATION = "Eviction triggered evacuation"


class UncertainAnswer(Enum):
    """Answers that are neither yes nor no."""

    IN_DOUBT = "nobody knows whether the pod is evicted"
    PODS_STATE = "the pod is gone, or is another"


def read_answer(error: ApiError, *, now: float) -> Refused | UncertainAnswer | None:
    """Tell what an eviction's error means; None: it is granted all the same."""
    if isinstance(error, errors.TooManyRequests) and _EVACUATION in error.message:
        return None
    if error.has_cause(_BUDGET_CAUSE):
        return _read_budget(error, now)
    if error.has_cause(_NAMESPACE_CAUSE):
        return Refused("NamespaceTerminating", "the namespace is being deleted")
    if isinstance(error, errors.ServerFault) and _SEVERAL_BUDGETS in error.message:
        return Refused("SeveralBudgets", "more than one PodDisruptionBudget selects the pod")
    for kind, read in _READINGS:
        if isinstance(error, kind):
            return read(error, now)
    return Refused("EvictionRefused", error.message)


def _read_budget(error: ApiError, now: float) -> Refused:
    """A refusal that names a time to wait is one of a budget that its controller has not looked at yet."""
    said = next((message for cause, message, _ in error.causes if cause == _BUDGET_CAUSE), "")
    reason = said or error.message
    if error.retry_after is not None:
        return Refused("BudgetUnobserved", reason, now + error.retry_after)
    return Refused("PDB", reason)


def _read_busy(error: ApiError, now: float) -> Refused:
    """It is an admission webhook that paces evictions, or the server's own load."""
    until = None if error.retry_after is None else now + error.retry_after
    is_paced = isinstance(error, errors.TooManyRequests) and error.is_decided
    return Refused("EvictionPaced" if is_paced else "ServerBusy", error.message, until)


def _unsettled(what: UncertainAnswer) -> Callable[[ApiError, float], UncertainAnswer]:
    return lambda _error, _now: what


def _refused(rule: str) -> Callable[[ApiError, float], Refused]:
    return lambda error, _now: Refused(rule, error.message)


_READINGS: tuple[tuple[type[ApiError], Callable[[ApiError, float], Refused | UncertainAnswer]], ...] = (
    (errors.TooManyRequests, _read_busy),
    (errors.NotFound, _unsettled(UncertainAnswer.PODS_STATE)),
    (errors.Conflict, _unsettled(UncertainAnswer.PODS_STATE)),
    (errors.ServerFault, _unsettled(UncertainAnswer.IN_DOUBT)),
    (errors.Unanswered, _unsettled(UncertainAnswer.IN_DOUBT)),
    (errors.Unreadable, _unsettled(UncertainAnswer.IN_DOUBT)),
    (errors.Unreachable, _refused("Unreachable")),
    (errors.Forbidden, _refused("Forbidden")),
    (errors.Unauthorized, _refused("Unauthorized")),
)
