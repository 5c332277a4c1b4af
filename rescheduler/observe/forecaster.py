"""The forecast for the executor: where a pod may be moved to, and what a landing was worth."""

from dataclasses import dataclass

import numpy as np

from reberth.cluster.node_lifecycle import judge_node
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.cycle import run_scores
from reberth.forecast.extender import SnapshotMemory
from reberth.forecast.forecast import profile_of
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import predict_replacement
from reberth.forecast.state.verdict import Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.records import OpenMove, Pod
from reberth.values.refusal import Refused
from rescheduler.model.plan import BROKEN_RULES, LandingScores
from rescheduler.observe.prospects import Prospect, forecast_move, list_destinations
from rescheduler.observe.scheduler_model import AdvisedScheduler, SchedulerModel

NO_FEASIBLE_DESTINATION = "NoFeasibleDestination"


@dataclass(frozen=True)
class Forecaster:
    """Answers the executor's questions about one pod from a model of the scheduler."""

    model: SchedulerModel

    @property
    def schedulers(self) -> frozenset[str]:
        return self.model.scheduler_names

    def find_destinations(self, snapshot: Snapshot, pod: Pod) -> tuple[str, ...] | Refused:
        """List the nodes that the pod may be moved to, best first."""
        prospect = self._look_ahead(snapshot, pod)
        if isinstance(prospect, Refused):
            return prospect
        names, records = snapshot.nodes.names, snapshot.nodes.records
        noted = self._remember(prospect.view.facts).advise(prospect.forecast.incoming).noted
        good = [judge_node(records[node]) is None and names[node] not in noted for node in prospect.nodes]
        chosen = prospect.feasible & np.array(good) & (prospect.nodes != prospect.source)
        if not chosen.any():
            return Refused(NO_FEASIBLE_DESTINATION, "the pod fits on no node that may be a destination")
        return tuple(names[node] for node in list_destinations(prospect, chosen))

    def refuse_destinations(
        self, snapshot: Snapshot, pod: Pod, destinations: tuple[str, ...]
    ) -> Refused | None:
        """Refuse a move if the pod fits on none of these nodes."""
        prospect = self._look_ahead(snapshot, pod)
        if isinstance(prospect, Refused):
            return prospect
        index = snapshot.nodes.index
        places = [index[name] for name in destinations if name in index]
        if np.isin(places, prospect.forecast.feasible).any():
            return None
        reasons = {reason for place in places for reason in prospect.forecast.reasons(place)}
        return Refused(NO_FEASIBLE_DESTINATION, "; ".join(sorted(reasons)) or "no such nodes")

    def score_landing(self, snapshot: Snapshot, move: OpenMove, landed_on: str) -> LandingScores | None:
        """Score the source node and the node of the replacement, in one list and without the replacement."""
        view = self.model.look_at(snapshot)
        place, nodes = _find_replacement(snapshot, move, landed_on), snapshot.nodes.index
        if place is None or move.from_ not in nodes or landed_on not in nodes:
            return None
        incoming = predict_replacement(view.facts, place)
        profile = profile_of(incoming, self.model.scheduler)
        if isinstance(profile, Unforeseeable):
            return None
        both = np.array(sorted({nodes[move.from_], nodes[landed_on]}), np.int32)
        prospect = forecast_move(place, view, self._advise(view))
        listed = both if isinstance(prospect, Refused) else np.union1d(prospect.nodes, both).astype(np.int32)
        found = run_scores(incoming, view.without(place), profile, listed)
        if isinstance(found, Rejected):
            return None
        totals = dict(zip(listed.tolist(), found.totals.tolist(), strict=True))
        is_mended = move.policy == BROKEN_RULES and not _may_return(prospect, nodes[move.from_])
        return LandingScores(None if is_mended else totals[nodes[move.from_]], totals[nodes[landed_on]])

    def _look_ahead(self, snapshot: Snapshot, pod: Pod) -> Prospect | Refused:
        place = snapshot.pods.by_uid(pod.metadata.uid)
        if place is None:
            return Refused(NO_FEASIBLE_DESTINATION, "the pod is not in the cache yet")
        view = self.model.look_at(snapshot)
        found = forecast_move(place, view, self._advise(view))
        return Refused(NO_FEASIBLE_DESTINATION, found.reason) if isinstance(found, Refused) else found

    def _advise(self, view: View) -> AdvisedScheduler:
        return self.model.advise(self._remember(view.facts))

    def _remember(self, facts: SnapshotFacts) -> SnapshotMemory:
        return facts.once("memory", lambda: SnapshotMemory(facts, self.model.extender))


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
