"""What an error of the Eviction API means: decided by its cause, never by its status code alone.

A refusal is certain only if the API server sent it, or if the server was never reached. No answer and server
errors give IN_DOUBT: the eviction may have happened. Then the pod is read, and the eviction is not sent a
second time: if the first one was carried out, the second could use up the disruption budget for nothing.
PODS_STATE means that the server found the pod deleted or changed: then, too, the pod is read.

One denial is a grant: a webhook that evacuates the pod itself, as KubeVirt does when it migrates a virtual
machine, denies the eviction and says that the evacuation has begun.
"""

from collections.abc import Callable
from enum import Enum

from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused

_BUDGET_CAUSE = "DisruptionBudget"
_NAMESPACE_CAUSE = "NamespaceTerminating"
_SEVERAL_BUDGETS = "more than one PodDisruptionBudget"
# The message that KubeVirt sends and the descheduler looks for.
_EVACUATION = "Eviction triggered evacuation"


class UncertainAnswer(Enum):
    """Answers that neither grant nor refuse the eviction."""

    IN_DOUBT = "it is not known whether the pod is evicted"
    PODS_STATE = "the pod is deleted, or is another pod"


def read_answer(error: ApiError, *, now: float) -> Refused | UncertainAnswer | None:
    """Tell what an error means; None: the eviction is granted nevertheless."""
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
    """A refusal with retryAfterSeconds: the disruption controller has not processed the budget yet."""
    said = next((message for cause, message, _ in error.causes if cause == _BUDGET_CAUSE), "")
    reason = said or error.message
    if error.retry_after is not None:
        return Refused("BudgetUnobserved", reason, now + error.retry_after)
    return Refused("PDB", reason)


def _read_busy(error: ApiError, now: float) -> Refused:
    """Tell an admission webhook that limits evictions from a server that is overloaded."""
    until = None if error.retry_after is None else now + error.retry_after
    is_paced = isinstance(error, errors.TooManyRequests) and error.is_decided
    return Refused("EvictionPaced" if is_paced else "ServerBusy", error.message, until)


def _uncertain(what: UncertainAnswer) -> Callable[[ApiError, float], UncertainAnswer]:
    return lambda _error, _now: what


def _refused(rule: str) -> Callable[[ApiError, float], Refused]:
    return lambda error, _now: Refused(rule, error.message)


_READINGS: tuple[tuple[type[ApiError], Callable[[ApiError, float], Refused | UncertainAnswer]], ...] = (
    (errors.TooManyRequests, _read_busy),
    (errors.NotFound, _uncertain(UncertainAnswer.PODS_STATE)),
    (errors.Conflict, _uncertain(UncertainAnswer.PODS_STATE)),
    (errors.ServerFault, _uncertain(UncertainAnswer.IN_DOUBT)),
    (errors.Unanswered, _uncertain(UncertainAnswer.IN_DOUBT)),
    (errors.Unreadable, _uncertain(UncertainAnswer.IN_DOUBT)),
    (errors.Unreachable, _refused("Unreachable")),
    (errors.Forbidden, _refused("Forbidden")),
    (errors.Unauthorized, _refused("Unauthorized")),
)
