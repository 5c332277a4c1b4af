"""The rescheduler's metrics; beside them stand those of the library for HTTP, the API server and watches.

A label takes few values, known beforehand. Nothing is counted per node, per pod or per workload.
"""

from math import nan
from typing import get_args

from prometheus_client import Counter, Gauge, Histogram

from reberth.runtime.metrics import REGISTRY
from rescheduler.model.plan import ClusterScore, PolicyName
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.protections import RULES as PROTECTIONS

POLICIES = frozenset({*get_args(PolicyName), MANUAL})
SCORE_PARTS = ClusterScore._fields
# The right ends of the bars in which nodes are counted by what they have in use.
UTILISATION_BARS = tuple(tenth / 10 for tenth in range(1, 11))
PHASES = ("snapshot", "plan", "publish")

BRAKES = frozenset(
    {
        *("NodesNotReady", "StaleMirror", "PendingReplacement", "ForecastAstray", "SchedulerDrift"),
        "ExtendersUnreachable",
    }
)
PAUSES = frozenset({"AutoscalerDrains", "ScaleUp"})
_LIMITS = {
    *("BudgetUnobserved", "ClusterRate", "GivenUp", "LastReady", "Limit", "NamespaceInFlight"),
    *("NamespaceRate", "NodeInFlight", "PDB", "PairBackOff", "Quota", "QuietHours", "SeveralBudgets"),
    *("WorkloadBackOff", "WorkloadInFlight", "WorkloadRate", "LedgerFull", "MovesFull", "NotesFull"),
}
_NODES = {
    *("DestinationLeaving", "DestinationYoung", "NodeBusy", "NodeGone", "NodeMarked"),
    *("NoFeasibleDestination", "NoFeasibleNode", "SourceLeaving", "SourceYoung"),
}
_WORTH = {
    *("Avoided", "CannotForecast", "LandsOnItsNode", "Level", "NoBetterNode", "NotPaidBack", "NotWorthIt"),
    *("UncertainLanding", "Undoes", "WorsensCluster"),
}
_EXECUTION = {
    *("Conflict", "DebitLost", "DryRunFailed", "EvictionPaced", "EvictionRefused", "Expired"),
    *("Forbidden", "HistoryGone", "Interrupted", "MoveUnderWay", "NamespaceTerminating", "NoSuchPod"),
    *(
        "NotMirrored",
        "PlanOld",
        "NotSeen",
        "NoteLost",
        "NoteUnreadable",
        "Off",
        "Paused",
        "PodMoved",
        "RequestExpired",
        "ServerBusy",
        "Unanswered",
    ),
    *("Unauthorized", "Unreachable", "NoDebit", "AlreadySpent", "PhasePassed", "NoSuchMove"),
}
REFUSALS = frozenset(
    {rule.name for rule in PROTECTIONS} | BRAKES | PAUSES | _LIMITS | _NODES | _WORTH | _EXECUTION
)

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PATIENT = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_POINTS = (-200, -100, -50, -20, 0, 20, 50, 100, 200, 500, 1000)


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(f"reberth_rescheduler_{name}", text, labels, registry=REGISTRY)


def _gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(f"reberth_rescheduler_{name}", text, labels, registry=REGISTRY)


def _histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(f"reberth_rescheduler_{name}", text, labels, registry=REGISTRY, buckets=buckets)


CYCLES = _counter(
    "cycles_total", "Cycles by what woke them, and whether a plan came of it.", "wake", "result"
)
CYCLE_DURATION = _histogram(
    "cycle_duration_seconds", "Seconds from a cycle's snapshot to its plan being published.", buckets=_QUICK
)
PHASE_DURATION = _histogram(
    "phase_duration_seconds", "Seconds of the parts of a cycle.", "phase", buckets=_QUICK
)
LAST_CYCLE = _gauge("last_cycle_timestamp_seconds", "When a plan was last published; 0 if none was.")
PROPOSALS = _counter(
    "proposals_total", "Proposals of the policies by what the plan made of them.", "policy", "result"
)
REFUSED = _counter("refused_total", "Proposals that came to nothing, by the rule against them.", "rule")
PLAN_REFUSED = _gauge(
    "plan_refused_proposals", "Proposals that the last plan refused, by the rule against them.", "rule"
)
PLAN_MOVES = _gauge("plan_moves", "Moves in the last plan, by whether they are made.", "mode")
PLAN_WARNINGS = _gauge("plan_warnings", "Warnings in the last plan.")
SCORE = _gauge(
    "cluster_score", "How the cluster stands and would stand after the plan; less is better.", "part", "when"
)
UTILISATION = _gauge(
    "utilisation_nodes", "Nodes of which no larger share is requested (le, cumulative).", "resource", "le"
)

MOVES = _counter("moves_total", "Moves that ended, by whether a pod was evicted.", "policy", "result")
MOVES_REFUSED = _counter(
    "moves_refused_total", "Moves that were begun and dropped, by the rule against them.", "rule"
)
MOVES_RESUMED = _counter("moves_resumed_total", "Moves of an earlier leader that were taken on.")
MOVES_UNPROMISED = _counter(
    "moves_unpromised_total", "Evictions without the word of all extenders that they have seen the move."
)
IN_FLIGHT = _gauge("moves_in_flight", "Moves that are under way.")
EVICTIONS = _counter("evictions_total", "Requests for an eviction by their answer.", "answer")
OUTCOMES_SEEN = _counter("outcomes_total", "Outcomes of moves whose pod was evicted.", "policy", "outcome")
RETURNS = _counter("returns_total", "Moves whose replacement came back to the node that was left.", "policy")
TIME_TO_READY = _histogram(
    "time_to_ready_seconds", "Seconds from an eviction until its replacement was Ready.", buckets=_PATIENT
)
GAIN = _histogram(
    "gain_points", "Points of the scheduler's total that moves gain: planned, and seen.", "when",
    buckets=_POINTS,
)  # fmt: skip
LANDINGS = _counter("landings_total", "Landings of replacements by whether they were forecast.", "forecast")
LANDING_MISSES = _counter(
    "landing_misses_total", "Landings outside of the forecast by what explains them.", "cause"
)
GIVEN_UP = _gauge("given_up_workloads", "Workloads that are left alone since moves brought nothing.")
WINDOW_LEFT = _gauge(
    "window_left_disruptions", "Disruptions that a rate of the cluster still allows.", "rate"
)

BRAKES_ON = _gauge("brake_on", "1 while a brake stops all moves, or a pause those for balance.", "rule")
AGREEMENT = _gauge(
    "scheduler_agreement_ratio", "Share of the pods bound lately that landed where the forecast saw them."
)
BINDINGS = _counter(
    "bindings_total", "Pods that were seen to be bound, by how that agreed with the forecast.", "forecast"
)
MODE = _gauge("mode", "1 for the mode that a policy is in: off, recommend or apply.", "policy", "mode")
PAUSED = _gauge("paused", "1 while the annotation on the lease pauses all moves.")
LEADING = _gauge("leading", "1 while this process holds the lease.")
APPLYING = _gauge("applying", "1 while the plan's moves are made.")

AGREEMENT.set(nan)
