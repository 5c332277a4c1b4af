"""Which kinds of objects must be cached before anything is decided, by the names of their resources.

Every other kind may be missing, because it is not installed or access to it is forbidden: the plan then does
without it. But a plan is never made while a kind that it reads is still being listed.
"""

from collections.abc import Iterator

from reberth.forecast.extender import asks_reberth
from reberth.forecast.state.profile import KubeScheduler
from rescheduler.model.guardrails import ProtectionSettings

FOR_A_PLAN = ("nodes", "pods")

FOR_A_MOVE = (*FOR_A_PLAN, "replicasets", "statefulsets", "replicationcontrollers", "poddisruptionbudgets")
"""Also the controllers whose replicas tell whether a replacement is to be expected, and the budgets."""

FOR_THE_DAEMON = (*FOR_A_PLAN, "replicasets", "evictionhistories", "moveledgers", "poddisruptionbudgets")
"""Also what a plan must not be made without: what workloads have been through, the rates and the budgets."""

ONLY_INFORMING = ("nodeclaims", "nodepools")
"""What only prices and pauses moves for balance: if it is old, nothing is moved that must not be."""


def find_unread(protections: ProtectionSettings, scheduler: KubeScheduler) -> frozenset[str]:
    """Give the kinds that no plan reads with these settings: none waits for their lists."""
    return frozenset(_list_unread(protections, scheduler))


def _list_unread(protections: ProtectionSettings, scheduler: KubeScheduler) -> Iterator[str]:
    if not protections.quotas:
        yield "resourcequotas"
    if not asks_reberth(scheduler):
        yield "nodeplacementscores"
