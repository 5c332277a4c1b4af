"""Whom each refusal concerns: what is not tried again for a while after a move that was refused.

A plan cannot foresee every refusal: a webhook is asked only when the eviction is sent. The table says for
each rule how far its refusal reaches, and that is kept as small as it is true. 40 replicas behind one policy
are not 40 tries, so what a policy says about one pod holds for the workload; but a policy that denies one
workload says nothing about the next one. A webhook that cannot be called refuses whoever is behind it.

`NOTHING` is remembered of a rule that the next plan sees by itself in the same objects: rates, moves in
flight, room in the ledger and for notes, quiet hours, brakes and the pause, and what only a plan judges. The
plan waits exactly as long as they say, and a memory of them would only wait longer. A PodDisruptionBudget is
not among them: the plan has asked it, so a refusal that comes all the same was not foreseen, and the next
plan need not foresee it either.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from reberth.records import RememberedRefusal
from reberth.values.refusal import Refused
from rescheduler.model import rules


class Scope(StrEnum):
    """Whom a refusal concerns."""

    NOTHING = "nothing"
    POD = "pod"
    WORKLOAD = "workload"
    NODE = "node"
    NAMESPACE = "namespace"
    WEBHOOK = "webhook"
    EVERYTHING = "everything"


SHARED: Final = frozenset({Scope.NODE, Scope.NAMESPACE, Scope.WEBHOOK, Scope.EVERYTHING})
"""These concern moves of other workloads too: all of them wait together, and one of them asks again."""

CONCERNED: Final[Mapping[Scope, frozenset[str]]] = {
    Scope.NOTHING: frozenset(
        {
            *rules.WORTH,
            *rules.BRAKES,
            *rules.PAUSES,
            *("Limit", "WorkloadInFlight", "NamespaceInFlight", "NodeInFlight"),
            *("ClusterRate", "NamespaceRate", "WorkloadRate", "QuietHours"),
            *("GivenUp", "WorkloadBackOff", "PairBackOff", "RefusedBefore", "RefusalRate"),
            *("LedgerFull", "NotesFull", "NoteUnreadable"),
            *("Off", "Paused", "PlanOld", "MoveUnderWay", "RequestExpired"),
        }
    ),
    Scope.POD: frozenset(
        {
            *("Terminating", "Finished", "NotBound", "MirrorPod", "Claims", "MinAge", "MarkedForAWhile"),
            *(
                "NoFeasibleNode",
                "NoFeasibleDestination",
                "DestinationLeaving",
                "DestinationYoung",
                "MayBeRejected",
            ),
            *("NoSuchPod", "PodMoved", "NotMirrored", "NoteLost", "DebitLost", "NoDebit", "AlreadySpent"),
            *("Fault", "NoSuchMove", "PhasePassed", "HistoryGone", "Conflict", "ReasonGone"),
        }
    ),
    Scope.WORKLOAD: frozenset(
        {
            *("DaemonSetPod", "BarePod", "RestartPolicy", "UnknownController", "CriticalPod", "JobPod"),
            *("Labels", "MarkedNo", "MarkedWait"),
            *("AutomationOff", "LocalStorage", "ResourceClaims", "Gang", "EvictionResponders"),
            *(
                "CannotForecast",
                "CannotBeReplaced",
                "Surge",
                "RolloutPaused",
                "Rollout",
                "Quota",
                "MinReplicas",
                "LastReady",
            ),
            *("PDB", "BudgetUnobserved", "SeveralBudgets", "MovesFull", "Interrupted", "Expired"),
            *("DryRunFailed", "EvictionRefused", "EvictionPaced", "Unanswered"),
        }
    ),
    Scope.NODE: frozenset(
        {
            *("SourceLeaving", "SourceYoung", "NodeMarked", "NodeGone"),
        }
    ),
    Scope.NAMESPACE: frozenset({"SystemNamespace", "Namespace", "NamespaceTerminating", "Forbidden"}),
    Scope.WEBHOOK: frozenset({"WebhookFailing"}),
    Scope.EVERYTHING: frozenset({"NotSeen", "Unreachable", "ServerBusy", "Unauthorized"}),
}
"""The table: every rule that refuses a move, under what its refusal concerns."""

_SCOPES: Final = {rule: scope for scope, named in CONCERNED.items() for rule in named}


def find_scope(rule: str) -> Scope:
    """Tell whom a refusal concerns; a rule of a newer version concerns the workload."""
    return _SCOPES.get(rule, Scope.WORKLOAD)


def find_key(refused: Refused, namespace: str, *, uid: str, node: str) -> str:
    """Name what a refusal of this pod's move concerns, if it is not the workload itself or everything."""
    match find_scope(refused.rule):
        case Scope.POD:
            return uid
        case Scope.NODE:
            return node
        case Scope.NAMESPACE:
            return namespace
        case Scope.WEBHOOK:
            return refused.key
        case _:
            return ""


def is_disproved(one: RememberedRefusal, *, uid: str, node: str) -> bool:
    """Tell whether a granted eviction of this pod off this node disproves a refusal in its history.

    It was asked of everybody; only other pods and other nodes may be refused all the same.
    """
    match find_scope(one.rule):
        case Scope.POD:
            return one.key == uid
        case Scope.NODE:
            return one.key == node
        case _:
            return True
