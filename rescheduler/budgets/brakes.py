"""Brakes stop all moves; pauses stop the moves that no broken rule demands.

A brake is on when the cluster, its cache or the results of earlier moves are not as they should be. Pods that
break rules are still moved during a pause.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from reberth.cluster.kinds import HISTORY
from reberth.memory.backoff import closing_time, instant
from reberth.memory.destination_draw import Replica, list_untaken, replica_of
from reberth.records import EvictionHistory, Node, Outcome, Phase
from reberth.values.refusal import Refused
from reberth.values.timestamp import TimeError, parse_time
from rescheduler.observe.rule_context import RuleContext

_DRAINING_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")


class _JudgedLanding(NamedTuple):
    """A landing that was compared with the forecast; sorted by time."""

    closed_at: float
    move: str
    as_forecast: bool


@dataclass(frozen=True, eq=False)
class ClusterHealth:
    """What only a process that watches the cluster knows: the brakes need it beside the snapshot.

    `cache_ages` gives by kind how many seconds old the cached objects are. `brakes` are those that the
    process itself has put on. Unless replacements are `drawn` to their destinations, by the extender, no
    landing says anything about the forecast.
    """

    cache_ages: Mapping[str, float] = field(default_factory=dict)
    brakes: tuple[Refused, ...] = ()
    drawn: bool = True


NOT_WATCHED: Final = ClusterHealth()
"""For a snapshot that was read once, such as one from files."""


def find_brakes(context: RuleContext, health: ClusterHealth = NOT_WATCHED) -> tuple[Refused, ...]:
    """List all brakes that are on."""
    found = (
        *health.brakes,
        _find_not_ready(context),
        _find_stale(health.cache_ages, context),
        _find_pending(context),
        _find_astray(context) if health.drawn else None,
    )
    return tuple(refused for refused in found if refused)


def find_pauses(context: RuleContext) -> tuple[Refused, ...]:
    """List all pauses that are on."""
    found = _find_draining(context), _find_scale_up(context)
    return tuple(refused for refused in found if refused)


def _find_not_ready(context: RuleContext) -> Refused | None:
    nodes, most = context.snapshot.nodes.records, context.brakes.not_ready_nodes
    count = sum(_is_not_ready(node) for node in nodes)
    if count <= most * len(nodes):
        return None
    return Refused("NodesNotReady", f"{count} of {len(nodes)} nodes are not Ready, more than {most:.0%}")


def _find_stale(ages: Mapping[str, float], context: RuleContext) -> Refused | None:
    most = context.brakes.mirror_age
    old = {kind: age for kind, age in ages.items() if age > most}
    if not old:
        return None
    kind = max(sorted(old), key=old.__getitem__)
    return Refused("StaleMirror", f"the cache of {kind} is {old[kind]:.0f} s old, more than {most:g} s")


def _find_pending(context: RuleContext) -> Refused | None:
    """Find the replacement of a moved pod that has been pending for too long."""
    pods, most = context.snapshot.pods, context.brakes.pending_replacement
    waiting = (pods.node < 0) & ~pods.terminating & ~context.finished & (pods.created < context.now - most)
    for place in np.flatnonzero(waiting).tolist():
        row, history = context.row(place), context.history(context.template_of(place))
        if history and row.node is None and _is_replacement(place, history, context):
            waited = context.now - row.created
            said = f"{row.namespace}/{row.name} has been pending for {waited:.0f} s"
            return Refused("PendingReplacement", f"{said}, more than {most:g} s")
    return None


def _find_astray(context: RuleContext) -> Refused | None:
    """Find that too few of the last landings were as forecast.

    The eviction histories tell, so a plan, the check before an eviction and the next leader agree. All moves
    may be stopped, so that nothing lands any more: therefore only landings of a limited time count.
    """
    settings = context.brakes
    last = _list_landings(context)[-settings.landings :]
    count = sum(landing.as_forecast for landing in last)
    if len(last) < settings.fewest_landings or count >= settings.inside_forecast * len(last):
        return None
    least = f"fewer than {settings.inside_forecast:.0%}"
    return Refused("ForecastAstray", f"{count} of the last {len(last)} landings were as forecast, {least}")


def _find_draining(context: RuleContext) -> Refused | None:
    names = sorted(node.metadata.name for node in context.snapshot.nodes.records if _is_drained(node))
    if not names or not context.brakes.pause_while_draining:
        return None
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Refused("AutoscalerDrains", f"an autoscaler is removing node {names[0]}{more}")


def _find_scale_up(context: RuleContext) -> Refused | None:
    """Find young nodes among older ones; if all are young, the cluster is new, and nothing pauses."""
    settling = context.brakes.settling
    births = [_read_birth(node) for node in context.snapshot.nodes.records]
    young = [birth for birth in births if birth > context.now - settling]
    if not young or len(young) == len(births):
        return None
    end = max(young) + settling
    return Refused("ScaleUp", f"{len(young)} nodes are younger than {settling:g} s", end)


def _is_not_ready(node: Node) -> bool:
    conditions = node.status.conditions or ()
    return any(each.type == "Ready" and each.status != "True" for each in conditions)


def _is_drained(node: Node) -> bool:
    return any(taint.key in _DRAINING_TAINTS for taint in node.spec.taints or ())


def _read_birth(node: Node) -> float:
    try:
        return parse_time(node.metadata.creation_timestamp or "")
    except TimeError:
        return -math.inf


def _is_replacement(place: int, history: EvictionHistory, context: RuleContext) -> bool:
    """Tell whether a pending pod is the replacement of a pod that we evicted."""
    created = context.row(place).created
    controller = context.row(place).template.controller
    left_waiting = (move for move in history.status.past or () if move.outcome == Outcome.PENDING)
    if any(instant(move.evicted_at) - 1 < created <= closing_time(move) for move in left_waiting):
        return True
    moves = [
        move for move in history.status.open or () if controller and move.controller_uid == controller.uid
    ]
    untaken = list_untaken(moves, _list_replicas(place, context), now=context.now) if moves else []
    return any(move.phase == Phase.EVICTED and instant(move.planned_at) - 1 < created for move in untaken)


def _list_replicas(place: int, context: RuleContext) -> list[Replica]:
    """List all pods of the pod's controller."""
    pods = context.snapshot.pods
    workloads = context.workload_of[pods.template]
    alike = np.flatnonzero(workloads == workloads[place]).tolist()
    return [replica_of(pods.rows[other]) for other in alike]


def _list_landings(context: RuleContext) -> list[_JudgedLanding]:
    """List the recent landings, oldest first."""
    since = context.now - context.brakes.landings_within
    parts = (part.read(_read_landings) for part in context.snapshot.of(HISTORY).parts)
    return sorted(landing for landing in chain.from_iterable(parts) if landing.closed_at > since)


def _read_landings(histories: tuple[EvictionHistory, ...]) -> tuple[_JudgedLanding, ...]:
    past = (move for history in histories for move in history.status.past or ())
    return tuple(
        _JudgedLanding(closing_time(move), move.id, move.as_forecast)
        for move in past
        if move.as_forecast is not None
    )
