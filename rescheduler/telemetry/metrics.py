"""The metrics of the rescheduler; the library adds those for HTTP, the API server and watches.

A label has few values, all known in advance: no metric is per node, per pod or per workload.
"""

from math import nan
from typing import get_args

from prometheus_client import Counter, Gauge, Histogram

from reberth.runtime.metrics import REGISTRY
from rescheduler.model import rules
from rescheduler.model.plan import ClusterScore, PolicyName
from rescheduler.moves.lifecycle import MANUAL

POLICIES = frozenset({*get_args(PolicyName), MANUAL})
SCORE_PARTS = ClusterScore._fields
# Upper bounds of the buckets in which nodes are counted by their utilisation.
UTILISATION_BARS = tuple(tenth / 10 for tenth in range(1, 11))
PHASES = ("snapshot", "plan", "publish")

BRAKES = frozenset(rules.BRAKES)
PAUSES = frozenset(rules.PAUSES)
REFUSALS = frozenset(rules.MOVE_RULES)

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
    "cycles_total", "Cycles, by what triggered them and whether they made a plan.", "trigger", "result"
)
CYCLE_DURATION = _histogram(
    "cycle_duration_seconds",
    "Seconds from the snapshot of a cycle until its plan is published.",
    buckets=_QUICK,
)
PHASE_DURATION = _histogram(
    "phase_duration_seconds", "Seconds that each phase of a cycle takes.", "phase", buckets=_QUICK
)
LAST_CYCLE = _gauge("last_cycle_timestamp_seconds", "Time of the last published plan; 0 if there is none.")
PROPOSALS = _counter(
    "proposals_total", "Proposals of the policies, by what became of them.", "policy", "result"
)
REFUSED = _counter("refused_total", "Refused proposals, by the rule that refused them.", "rule")
PLAN_REFUSED = _gauge(
    "plan_refused_proposals", "Proposals that the last plan refused, by the rule that refused them.", "rule"
)
PLAN_MOVES = _gauge("plan_moves", "Moves in the last plan, by mode: apply or recommend.", "mode")
REJECTING_NODES = _gauge(
    "rejecting_nodes", "Nodes whose kubelets have rejected pods in the last hour: no destinations for such."
)
PROVEN = _gauge(
    "kubernetes_version_proven",
    "Whether the forecast has been proven on the version of the API server: 1 or 0.",
    "version",
)
PLAN_WARNINGS = _gauge("plan_warnings", "Warnings in the last plan.")
SCORE = _gauge(
    "cluster_score", "Score of the cluster now and after the last plan; less is better.", "part", "when"
)
UTILISATION = _gauge(
    "utilisation_nodes", "Nodes whose requested share is at most le (cumulative).", "resource", "le"
)

MOVES = _counter("moves_total", "Moves that ended, by whether their pod was evicted.", "policy", "result")
MOVES_REFUSED = _counter(
    "moves_refused_total",
    "Moves that were refused after they had begun, by the rule that refused them.",
    "rule",
)
REFUSALS_REMEMBERED = _counter(
    "refusals_remembered_total",
    "Refusals that keep moves from being tried again for a while, by rule and whom it concerns.",
    "rule",
    "scope",
)
WAITING_REFUSALS = _gauge(
    "waiting_refusals",
    "Refusals because of which moves are not tried at present, by rule and whom it concerns.",
    "rule",
    "scope",
)
MOVES_RESUMED = _counter("moves_resumed_total", "Open moves of an earlier leader that were continued.")
MOVES_UNACKNOWLEDGED = _counter(
    "moves_unacknowledged_total", "Evictions that not all extenders had acknowledged."
)
NOTES_SWEPT = _counter(
    "notes_swept_total", "Notes that were removed from nodes later than their moves ended, by cause.", "cause"
)
IN_FLIGHT = _gauge("moves_in_flight", "Open moves of this process.")
EVICTIONS = _counter("evictions_total", "Eviction requests, by the answer of the API server.", "answer")
DRY_RUNS = _counter(
    "replacement_dry_runs_total", "Dry runs of replacements before an eviction, by answer.", "answer"
)
OUTCOMES_SEEN = _counter("outcomes_total", "Moves whose pod was evicted, by outcome.", "policy", "outcome")
RETURNS = _counter("returns_total", "Moves whose replacement landed on the source node again.", "policy")
TIME_TO_READY = _histogram(
    "time_to_ready_seconds", "Seconds from an eviction until the replacement was Ready.", buckets=_PATIENT
)
GAIN = _histogram(
    "gain_points", "Gain of moves in points of kube-scheduler's total score: planned, and seen.", "when",
    buckets=_POINTS,
)  # fmt: skip
LANDINGS = _counter(
    "landings_total", "Landings of replacements, by whether they were as forecast.", "forecast"
)
LANDING_MISSES = _counter("landing_misses_total", "Landings that were not as forecast, by cause.", "cause")
GIVEN_UP = _gauge(
    "given_up_workloads", "Workloads that are not moved because their last moves gained nothing."
)
RATE_REMAINING = _gauge(
    "rate_remaining_disruptions", "Disruptions that a rate of the cluster still allows.", "rate"
)

BRAKES_ON = _gauge(
    "brake_on", "1 while a brake stops all moves, or while moves for balance are paused.", "rule"
)
CLOCK_OFFSET = _gauge(
    "clock_offset_seconds",
    "Seconds that the API server's clock is ahead of this machine's; no decision depends on it.",
)
AGREEMENT = _gauge(
    "scheduler_agreement_ratio", "Share of the last bound pods that landed where the forecast expected them."
)
BINDINGS = _counter(
    "bindings_total", "Bound pods that were compared with the forecast, by result.", "forecast"
)
MODE = _gauge("mode", "1 for the mode of each policy: off, recommend or apply.", "policy", "mode")
PAUSED = _gauge("paused", "1 while the annotation on the Lease pauses all moves.")
LEADING = _gauge("leading", "1 while this process holds the Lease.")
APPLYING = _gauge("applying", "1 while moves of the last plan are made.")

AGREEMENT.set(nan)
