"""Every rule that may refuse a move: its name, and what it means in one sentence.

A name is the `rule` of a `Refused`, in plans, logs, Events and answers, and the label `rule` of the metrics.
The reason beside it says what was found; docs/refusals.md lists all of them. A rule that is not declared here
is counted under `other`, so tests compare this list with the source and with the page.
"""

from collections.abc import Mapping
from typing import Final

_Rules = Mapping[str, str]

PROTECTIONS: Final[_Rules] = {
    "Terminating": "The pod is being deleted.",
    "Finished": "The pod has succeeded or failed.",
    "NotBound": "The pod is not bound to a node, or to one that is not in the cache.",
    "MirrorPod": "The kubelet runs the pod from a file on its node.",
    "DaemonSetPod": "The pod belongs to a DaemonSet, or is annotated as if it did.",
    "BarePod": "The pod has no controller that would replace it.",
    "CriticalPod": "The pod is critical to the system by its priority or priority class.",
    "JobPod": "The pod belongs to a Job, which counts an eviction as a failure.",
    "RestartPolicy": "The pod runs to an end, by its `restartPolicy`: its work would be lost.",
    "UnknownController": "The kind of the pod's controller is not known to replace its pods.",
    "SystemNamespace": "The namespace is one of `systemNamespaces`.",
    "Namespace": "The settings exclude the namespace, or it is being deleted.",
    "Labels": "The labels of the pod do not match `podSelector`.",
    "MarkedNo": "A label or annotation forbids the eviction.",
    "MarkedForAWhile": "An annotation forbids the eviction for a time after the start of the pod.",
    "MarkedWait": "A label or annotation says that another tool is already evicting the pod.",
    "AutomationOff": "The annotation `reberth.dev/automation` turns moves off.",
    "LocalStorage": "The pod has a volume whose data does not follow it to another node.",
    "Claims": "The pod has a PersistentVolumeClaim that cannot follow it to another node.",
    "ResourceClaims": "The pod has claims for devices.",
    "Gang": "The pod belongs to a group of pods that is scheduled together.",
    "EvictionResponders": "The pod names a responder that wants to prepare its eviction.",
    "CannotForecast": "It is not known what the replacement will be, or where its scheduler would place it.",
    "CannotBeReplaced": "The API server would refuse to create the replacement.",
    "Surge": "The workload runs additional replicas because of another eviction.",
    "RolloutPaused": "The rollout of the workload is paused.",
    "Rollout": "The workload has a rollout in progress.",
    "Quota": "A ResourceQuota has no room for the replacement.",
    "MinReplicas": "The workload has fewer replicas than `minReplicas`.",
    "MinAge": "The pod is younger than `minAge`.",
    "LastReady": "No other replica of the workload is Ready.",
}
"""Rules about the pod and its workload, in the order in which they are checked."""

NODES: Final[_Rules] = {
    "SourceLeaving": "The source node is being removed or does not work: its pods leave it anyway.",
    "SourceYoung": "The source node is not initialized yet.",
    "DestinationLeaving": "The destination is being removed or does not work.",
    "DestinationYoung": "The destination is not initialized yet.",
    "NodeMarked": "A label or annotation of the source node forbids that its pods are removed.",
    "NodeGone": "The source node has been deleted.",
    "NoFeasibleNode": "kube-scheduler would find no feasible node for the replacement.",
    "MayBeRejected": "The kubelets of all nodes that fit have rejected such pods a short time ago.",
    "NoFeasibleDestination": "The pod fits on none of the destinations of the move.",
}
"""Rules about the nodes that a pod leaves or enters."""

LIMITS: Final[_Rules] = {
    "Fault": "Reberth has a defect that this pod or move meets; the log names it, and others go on.",
    "Limit": "The plan has as many moves, or has made as many forecasts, as it may.",
    "WorkloadInFlight": "As many pods of the workload are being moved as may be at once.",
    "NamespaceInFlight": "As many pods of the namespace are being moved as may be at once.",
    "NodeInFlight": "As many pods are being moved off the node, or onto it, as may be at once.",
    "ClusterRate": "The rate of disruptions in the cluster is used up.",
    "NamespaceRate": "The rate of disruptions in the namespace is used up.",
    "WorkloadRate": "The rate of disruptions of the workload is used up.",
    "PDB": "The PodDisruptionBudget allows no more disruptions.",
    "BudgetUnobserved": "The disruption controller has not processed the PodDisruptionBudget yet.",
    "SeveralBudgets": "More than one PodDisruptionBudget selects the pod; Kubernetes evicts no such pod.",
    "QuietHours": "The policy is in its quiet hours.",
    "GivenUp": "Too many moves of the workload were fruitless; none is made for some time.",
    "WorkloadBackOff": "A move of the workload was fruitless; none is made for some time.",
    "PairBackOff": "A move of the workload off this node was fruitless; none is made for some time.",
    "RefusedBefore": "A move like it was refused a short time ago; it is tried again later.",
    "RefusalRate": "As many moves as may be were refused in the last minute; one that may be refused waits.",
    "LedgerFull": "The move ledger has no room for another debit.",
    "MovesFull": "The eviction history of the workload has no room for another open move.",
    "NotesFull": "The node has no room for another note.",
}
"""Rules about how much may be moved: budgets, rates, and moves at once."""

WORTH: Final[_Rules] = {
    "Level": "At this level, only pods that break a rule are moved.",
    "NoBetterNode": "No node serves the purpose of the policy, has room, and scores more.",
    "Avoided": "The workload is to avoid every node that fits.",
    "LandsOnItsNode": "The replacement would most likely land on the node that the pod leaves.",
    "UncertainLanding": "The replacement would most likely not land on a destination.",
    "NotPaidBack": "The gain of the last move of the pod has not paid for its cost yet.",
    "Undoes": "The move would undo another one of the same controller.",
    "NotWorthIt": "The move is worth fewer points than the level requires.",
    "WorsensCluster": "The score of the whole cluster would be worse.",
}
"""Rules about whether a move is worth making."""

BRAKES: Final[_Rules] = {
    "NodesNotReady": "Too many nodes are not Ready.",
    "StaleMirror": "The cache is too old, or a kind is being listed that the settings now need.",
    "PendingReplacement": "The replacement of a moved pod has been pending for too long.",
    "ForecastAstray": "Too few of the last moves landed as forecast.",
    "SchedulerDrift": "The running scheduler does not place pods as its configuration file says.",
    "ExtendersUnreachable": "An extender does not answer or is behind, or there is none.",
}
"""They stop the moves of every policy."""

PAUSES: Final[_Rules] = {
    "AutoscalerDrains": "An autoscaler is removing a node of the pool.",
    "NodePoolBudget": "The disruption budget of the Karpenter NodePool allows no disruption now.",
    "ScaleUp": "Nodes were added to the pool a short time ago.",
}
"""They stop the moves that no rule demands."""

EXECUTION: Final[_Rules] = {
    "Off": "The mode of the policy file is `off`.",
    "Paused": "The annotation `reberth.dev/paused` on the Lease pauses all moves.",
    "PlanOld": "The moves before it in the plan did not land in time.",
    "MoveUnderWay": "Another move of the workload has not ended.",
    "NoSuchPod": "There is no such pod.",
    "PodMoved": "The pod is not on the source node of the move.",
    "ReasonGone": "The policy of the move has no reason for it any more.",
    "NotMirrored": "The pod or a node of the move is not in the cache yet.",
    "NotSeen": "Not every extender has seen what was just written for the move.",
    "NoteUnreadable": "The notes of the node cannot be read.",
    "NoteLost": "The source node no longer has the note of the move.",
    "HistoryGone": "The eviction history of the workload has been deleted.",
    "NoSuchMove": "The eviction history has no such open move.",
    "PhasePassed": "The move has already been closed.",
    "NoDebit": "The move ledger has no debit of the move.",
    "DebitLost": "The move ledger no longer has the debit of the move.",
    "AlreadySpent": "The disruption has happened, so its debit cannot be taken back.",
    "DryRunFailed": "The dry run of the eviction failed.",
    "EvictionRefused": "The API server, an admission policy or a webhook refused the eviction.",
    "EvictionPaced": "A webhook limits how often pods are evicted.",
    "WebhookFailing": "An admission webhook that evictions must pass cannot be called.",
    "NamespaceTerminating": "The namespace is being deleted.",
    "Conflict": "The API server found another pod than the one of the move.",
    "Unanswered": "The eviction was not answered, and the pod is still alive.",
    "Unreachable": "The API server cannot be reached.",
    "ServerBusy": "The API server is overloaded.",
    "Forbidden": "The rescheduler lacks a permission.",
    "Unauthorized": "The API server does not accept the credentials of the rescheduler.",
    "Interrupted": "The move was interrupted before its debit and its note were written.",
    "Expired": "The move expired before its pod was evicted.",
    "RequestExpired": "The move request expired before the daemon took it.",
}
"""Rules that are checked while a move is carried out."""

COMMANDS: Final[_Rules] = {
    "LeaseHeld": "Another process holds the Lease.",
    "EarlierWait": "Moves of an earlier plan are waiting for their turn.",
    "RequestBusy": "Another move request is waiting for its answer.",
    "RequestGone": "The move request was answered, withdrawn or replaced.",
    "NotBegun": "The daemon took the move over and has not begun it in time.",
    "Unended": "The move expired, and the daemon has not ended it.",
    "MoveDropped": "The daemon dropped the move; the Event `MoveRefused` gives the reason.",
}
"""Answers of commands, and reasons in the log: they refuse no move, so no metric counts them."""

MOVE_RULES: Final[_Rules] = {
    **PROTECTIONS, **NODES, **LIMITS, **WORTH, **BRAKES, **PAUSES, **EXECUTION,
}  # fmt: skip
"""All rules that refuse a move: the values of the metrics' label `rule`."""
