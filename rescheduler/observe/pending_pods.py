"""Pending pods come first: moves must not take the room that they are about to use.

A pending pod that fits somewhere is counted where kube-scheduler would bind it, so a plan begins with the
cluster as it will be in a moment. A pod that fits nowhere takes no room and stops nothing.
"""

import numpy as np

from reberth.cluster.columns import Indices
from reberth.forecast.forecast import forecast
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import read_pending_pod
from reberth.forecast.state.verdict import Unforeseeable
from reberth.forecast.state.view import View
from rescheduler.observe.scheduler_model import AdvisedScheduler

# A bound on the time of a plan: each costs a forecast, and more are rarely about to be bound at once.
_MOST = 100


def place_pending_pods(view: View, advised: AdvisedScheduler) -> View:
    """Place pending pods on the nodes where they will land, in the order of kube-scheduler's queue."""
    rows, hopeless, forecasts = view.facts.snapshot.pods.rows, set(), 0
    for place in _list_waiting(view.facts).tolist():
        alike = (rows[place].template, rows[place].own)
        if alike in hopeless:
            continue
        if forecasts == _MOST:
            break
        forecasts += 1
        node = _find_landing(place, view, advised)
        if node is None:
            hopeless.add(alike)
        else:
            view = view.with_pod_on(place, node)
    return view


def _list_waiting(facts: SnapshotFacts) -> Indices:
    """List the pods in kube-scheduler's queue: by priority, then the oldest first."""
    pods = facts.snapshot.pods
    nowhere = np.flatnonzero((pods.node < 0) & ~pods.terminating)
    waiting = nowhere[[_is_queued(facts, place) for place in nowhere.tolist()]] if len(nowhere) else nowhere
    order = np.lexsort((waiting, pods.created[waiting], -pods.priority[waiting]))
    return waiting[order].astype(np.int32)


def _is_queued(facts: SnapshotFacts, place: int) -> bool:
    row = facts.snapshot.pods.rows[place]
    return row.node is None and not row.is_finished and not row.template.spec.scheduling_gates


def _find_landing(place: int, view: View, advised: AdvisedScheduler) -> int | None:
    """Forecast where a pending pod lands; forecasts already respect nominated nodes."""
    found = forecast(
        read_pending_pod(view.facts, place), view, advised.scheduler, extenders=advised.extenders
    )
    if isinstance(found, Unforeseeable) or not len(found.feasible):
        return None
    return int(found.best[0])
