"""What an error of the Eviction API means: decided by its cause, never by its status code alone.

A refusal is certain only if the API server sent it, or if the server was never reached. No answer and server
errors give IN_DOUBT: the eviction may have happened. Then the pod is read, and the eviction is not sent a
second time: if the first one was carried out, the second could use up the disruption budget for nothing.
PODS_STATE means that the server found the pod deleted or changed: then, too, the pod is read.

One denial is a grant: a webhook that evacuates the pod itself, as KubeVirt does when it migrates a virtual
machine, denies the eviction and says that the evacuation has begun.

A webhook chooses the code of its denial, so a denial is recognised by the words that the API server puts
before its message. Equally by its words: a webhook that could not be called (500), and a permission that the
rescheduler lacks (403), which is a fact about us and not about the pod.
"""

import re
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
# What the API server says before the message of a webhook, and of a ValidatingAdmissionPolicy.
_DENIALS = ("denied the request", "denied request:")
_FAILED_CALL = re.compile(r'failed calling webhook "([^"]{1,253})"')
_NO_PERMISSION = re.compile(r'User "[^"]*" cannot ')


class UncertainAnswer(Enum):
    """Answers that neither grant nor refuse the eviction."""

    IN_DOUBT = "it is not known whether the pod is evicted"
    PODS_STATE = "the pod is deleted, or is another pod"


def read_answer(error: ApiError, *, now: float) -> Refused | UncertainAnswer | None:
    """Tell what an error means; None: the eviction is granted nevertheless."""
    if isinstance(error, errors.TooManyRequests) and _EVACUATION in error.message:
        return None
    decision = _read_cause(error, now) or _read_admission(error)
    if decision:
        return decision
    for kind, read in _READINGS:
        if isinstance(error, kind):
            return read(error, now)
    return Refused("EvictionRefused", error.message)


def _read_cause(error: ApiError, now: float) -> Refused | None:
    if error.has_cause(_BUDGET_CAUSE):
        return _read_budget(error, now)
    if error.has_cause(_NAMESPACE_CAUSE):
        return Refused("NamespaceTerminating", "the namespace is being deleted")
    if isinstance(error, errors.ServerFault) and _SEVERAL_BUDGETS in error.message:
        return Refused("SeveralBudgets", "more than one PodDisruptionBudget selects the pod")
    return None


def _read_admission(error: ApiError) -> Refused | None:
    """Read what admission says: a webhook that could not be called, or the denial of a webhook or policy."""
    failed = _FAILED_CALL.search(error.message) if isinstance(error, errors.ServerFault) else None
    if failed:
        return Refused("WebhookFailing", error.message, key=failed[1])
    return Refused("EvictionRefused", error.message) if _is_denied(error) else None


def _is_denied(error: ApiError) -> bool:
    """Tell whether admission denied the eviction; a denial with 429 says when to come back."""
    if isinstance(error, errors.TooManyRequests):
        return False
    if any(words in error.message for words in _DENIALS):
        return True
    return isinstance(error, errors.Forbidden) and not _NO_PERMISSION.search(error.message)


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
