"""The forecast for the executor: where a pod may be moved to, and what a landing was worth."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reberth.cluster.node_lifecycle import judge_node
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.cycle import run_scores
from reberth.forecast.forecast import profile_of
from reberth.forecast.state.incoming_pod import read_bound_pod
from reberth.forecast.state.verdict import Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.records import OpenMove, Pod
from reberth.values.refusal import Refused
from rescheduler.model.plan import BROKEN_RULES, LandingScores
from rescheduler.observe.prospects import Prospect, forecast_move, list_destinations
from rescheduler.observe.scheduler_model import AdvisedScheduler, CachedAdvice, SchedulerModel

NO_FEASIBLE_DESTINATION = "NoFeasibleDestination"


@dataclass(frozen=True)
class Forecaster:
    """Forecasts from a model of the scheduler."""

    model: SchedulerModel

    @property
    def schedulers(self) -> frozenset[str]:
        return self.model.scheduler_names

    def look_at(self, snapshot: Snapshot) -> "SnapshotForecaster":
        return SnapshotForecaster(self.model, snapshot)


@dataclass(frozen=True, eq=False)
class SnapshotForecaster:
    """Answers questions about single pods of one snapshot; what they have in common is found once."""

    model: SchedulerModel
    snapshot: Snapshot

    def find_destinations(self, pod: Pod) -> tuple[str, ...] | Refused:
        """List the nodes that the pod may be moved to, best first."""
        prospect = self._look_ahead(pod)
        if isinstance(prospect, Refused):
            return prospect
        names, records = self.snapshot.nodes.names, self.snapshot.nodes.records
        noted = self._memory.advise(prospect.forecast.incoming).noted
        good = [judge_node(records[node]) is None and names[node] not in noted for node in prospect.nodes]
        chosen = prospect.feasible & np.array(good) & (prospect.nodes != prospect.source)
        if not chosen.any():
            return Refused(NO_FEASIBLE_DESTINATION, "the pod fits on no node that may be a destination")
        return tuple(names[node] for node in list_destinations(prospect, chosen))

    def refuse_destinations(self, pod: Pod, destinations: tuple[str, ...]) -> Refused | None:
        """Refuse a move if the pod fits on none of these nodes."""
        prospect = self._look_ahead(pod)
        if isinstance(prospect, Refused):
            return prospect
        index = self.snapshot.nodes.index
        places = [index[name] for name in destinations if name in index]
        if np.isin(places, prospect.forecast.feasible).any():
            return None
        reasons = {reason for place in places for reason in prospect.forecast.reasons(place)}
        return Refused(NO_FEASIBLE_DESTINATION, "; ".join(sorted(reasons)) or "no such nodes")

    def score_landing(self, move: OpenMove, landed_on: str) -> LandingScores | None:
        """Score the source node and the node of the replacement, in one list and without the replacement."""
        view, nodes = self._view, self.snapshot.nodes.index
        place = _find_replacement(self.snapshot, move, landed_on)
        if place is None or move.from_ not in nodes or landed_on not in nodes:
            return None
        incoming = read_bound_pod(view.facts, place)
        profile = profile_of(incoming, self.model.scheduler)
        if isinstance(profile, Unforeseeable):
            return None
        both = np.array(sorted({nodes[move.from_], nodes[landed_on]}), np.int32)
        prospect = forecast_move(place, view, self._advised)
        listed = both if isinstance(prospect, Refused) else np.union1d(prospect.nodes, both).astype(np.int32)
        found = run_scores(incoming, view.without(place), profile, listed)
        if isinstance(found, Rejected):
            return None
        totals = dict(zip(listed.tolist(), found.totals.tolist(), strict=True))
        is_mended = move.policy == BROKEN_RULES and not _may_return(prospect, nodes[move.from_])
        return LandingScores(None if is_mended else totals[nodes[move.from_]], totals[nodes[landed_on]])

    def _look_ahead(self, pod: Pod) -> Prospect | Refused:
        place = self.snapshot.pods.by_uid(pod.metadata.uid)
        if place is None:
            return Refused(NO_FEASIBLE_DESTINATION, "the pod is not in the cache yet")
        found = forecast_move(place, self._view, self._advised)
        return Refused(NO_FEASIBLE_DESTINATION, found.reason) if isinstance(found, Refused) else found

    @cached_property
    def _view(self) -> View:
        return self.model.look_at(self.snapshot)

    @cached_property
    def _memory(self) -> CachedAdvice:
        return CachedAdvice(self._view.facts, self.model.extender)

    @cached_property
    def _advised(self) -> AdvisedScheduler:
        return self.model.advise(self._memory)


def _may_return(prospect: Prospect | Refused, source: int) -> bool:
    return not isinstance(prospect, Refused) and bool(np.isin(source, prospect.forecast.feasible))


def _find_replacement(snapshot: Snapshot, move: OpenMove, landed_on: str) -> int | None:
    """Find the youngest pod of the move's controller on the node."""
    rows = snapshot.pods.rows
    theirs = [
        place
        for place in snapshot.pods.on(snapshot.nodes.index.get(landed_on, -1)).tolist()
        if (controller := rows[place].template.controller) and controller.uid == move.controller_uid
    ]
    return max(theirs, key=lambda place: (rows[place].created, rows[place].uid), default=None)
