"""The rules for every arm: protected pods, remaining limits, feasible nodes and the landing of a pod.

All of it is the planner's own: its protections, its limits, its forecast. An arm only chooses whom to move
next, and where the forecast leaves a choice.
"""

from dataclasses import dataclass

import numpy as np

from reberth.cluster.columns import Bools
from reberth.forecast.state.view import View
from reberth.values.refusal import Refused
from rescheduler.budgets.limits import CandidateMove, Limits, begin_limits
from rescheduler.model.plan import UNDER_UTILISED_NODES
from rescheduler.observe.prospects import Prospect, forecast_move
from rescheduler.observe.utilisation import measure_spread
from rescheduler.planning.cycle import Cycle
from rescheduler.protections import find_protected

Hop = tuple[int, int]
"""A pod and the node that it lands on, by their places."""


@dataclass
class Course:
    """A fleet while pods are moved in it, and how evenly its nodes were used after each move."""

    cycle: Cycle
    view: View
    limits: Limits
    protected: Bools
    hops: list[Hop]
    spreads: list[float]

    def may_move(self, pod: int) -> bool:
        """Tell whether protections and limits allow to move the pod."""
        return not self.protected[pod] and self.limits.refuse(self._spend(pod)) is None

    def look_ahead(self, pod: int) -> Prospect | None:
        """Return the forecast of a pod that has a feasible node."""
        found = forecast_move(pod, self.view, self.cycle.advised)
        return None if isinstance(found, Refused) else found

    def move(self, pod: int, node: int) -> bool:
        """Move a pod, unless a limit of where it goes is against it."""
        left = self.limits.spend(self._spend(pod, node))
        if isinstance(left, Refused):
            return False
        self.limits, self.view = left, self.view.with_pod_on(pod, node)
        self.protected[pod] = True  # a pod is moved only once
        self.hops.append((pod, node))
        self.spreads.append(measure_spread(self.view))
        return True

    def _spend(self, pod: int, node: int | None = None) -> CandidateMove:
        return CandidateMove(pod, int(self.view.node[pod]), UNDER_UTILISED_NODES, node)


def begin(cycle: Cycle) -> Course:
    protected = np.array(find_protected(cycle.context))
    return Course(cycle, cycle.view, begin_limits(cycle.context), protected, [], [measure_spread(cycle.view)])
