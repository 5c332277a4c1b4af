"""Protections by the state of the pod itself, checked for all pods at once."""

import math

import numpy as np

from reberth.cluster.columns import Bools, seal
from reberth.cluster.templates import Template
from reberth.records import Pod
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.observe.rule_context import FINISHED_PHASES, RuleContext
from rescheduler.protections.annotations import FOR_A_WHILE, read_go_duration

TERMINATING = Refused("Terminating", "the pod is being deleted")
UNSCHEDULED = Refused("NotBound", "the pod is not bound to a node")


def refuse_pod(pod: Pod) -> Refused | None:
    """Refuse a pod that was just read if it is terminating, finished or not bound."""
    if pod.metadata.deletion_timestamp:
        return TERMINATING
    if pod.status.phase in FINISHED_PHASES:
        return _refuse_phase(pod.status.phase)
    return None if pod.spec.node_name else UNSCHEDULED


def find_terminating(context: RuleContext) -> Bools:
    return context.snapshot.pods.terminating


def refuse_terminating(_place: int, _context: RuleContext) -> Refused:
    return TERMINATING


def find_finished(context: RuleContext) -> Bools:
    return context.finished


def refuse_finished(place: int, context: RuleContext) -> Refused:
    return _refuse_phase(context.row(place).phase)


def _refuse_phase(phase: str) -> Refused:
    return Refused("Finished", f"the pod has {phase.lower()}")


def find_unbound(context: RuleContext) -> Bools:
    return context.snapshot.pods.node < 0


def refuse_unbound(place: int, context: RuleContext) -> Refused:
    node = context.row(place).node
    return Refused(UNSCHEDULED.rule, f"node {node} is not in the cache") if node else UNSCHEDULED


def find_young(context: RuleContext) -> Bools:
    return context.snapshot.pods.created > context.now - context.protections.min_age


def refuse_young(place: int, context: RuleContext) -> Refused:
    least = context.protections.min_age
    return Refused("MinAge", f"the pod is younger than minAge {least:g}s", context.row(place).created + least)


def find_last_ready(context: RuleContext) -> Bools:
    """Find the pods that are the only Ready ones of their controller."""
    pods = context.snapshot.pods
    if not context.protections.last_ready:
        return np.zeros(len(pods.rows), np.bool_)
    counts = context.ready_replicas[context.workload_of]
    return pods.ready & (counts[pods.template] <= 1)


def refuse_last_ready(_place: int, _context: RuleContext) -> Refused:
    return Refused("LastReady", "no other replica is Ready")


def find_kept_for_a_while(context: RuleContext) -> Bools:
    """Find the pods that an annotation protects for a time after their start; without a start, it goes on."""
    found = np.zeros(len(context.snapshot.pods.rows), np.bool_)
    marked = context.snapshot.templates_where(_is_marked)
    for place in np.flatnonzero(context.spread(marked)).tolist():
        found[place] = _end(place, context) > context.now
    return seal(found)


def refuse_kept_for_a_while(place: int, context: RuleContext) -> Refused:
    end = _end(place, context)
    if not math.isfinite(end):
        return Refused("MarkedForAWhile", f"annotation {FOR_A_WHILE}: the pod has not started")
    return Refused("MarkedForAWhile", f"annotation {FOR_A_WHILE}: until {write_time(end)}", end)


def _is_marked(template: Template) -> bool:
    return _duration(template) is not None


def _duration(template: Template) -> float | None:
    annotations = template.pod.metadata.annotations
    text = annotations.get(FOR_A_WHILE) if annotations else None
    return None if text is None else read_go_duration(text)


def _end(place: int, context: RuleContext) -> float:
    row = context.row(place)
    return math.inf if row.started is None else row.started + (_duration(row.template) or 0.0)
