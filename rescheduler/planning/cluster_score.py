"""The score of a cluster, calculated from columns alone; no plan may make it worse.

Broken rules count most, then pods on leaving nodes, then requests beyond the thresholds, and then the
spread of utilisation. A move for preferences may increase the spread, since this may be what the pod
prefers. It must not make any of the other three worse.
"""

from dataclasses import dataclass, field

from reberth.forecast.state.view import View
from reberth.values.refusal import Refused
from rescheduler.model.plan import BETTER_PREFERENCES, ClusterScore
from rescheduler.observe.utilisation import Bounds, count_on_leaving, measure_excess, measure_spread
from rescheduler.observe.view_cache import ViewCache
from rescheduler.policies.proposal import Proposal
from rescheduler.policies.rules import SchedulingRules

# Smaller differences are rounding errors of floating point.
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class ClusterScorer:
    """Scores one snapshot, and the views of it while a plan moves pods."""

    rules: SchedulingRules
    bounds: Bounds
    _known: ViewCache[float] = field(default_factory=ViewCache, repr=False)

    def measure(self, view: View) -> ClusterScore:
        return self.measure_uses(view, broken=self.rules.count_broken(view))

    def measure_uses(self, view: View, *, broken: int) -> ClusterScore:
        """Score a view whose number of broken rules is known."""
        return ClusterScore(
            broken,
            count_on_leaving(view),
            self._measure_excess(view),
            self._measure_spread(view),
        )

    def count_mended(self, pod: int, before: View, after: View) -> int:
        """Count how many fewer rules are broken after a move."""
        touched = self.rules.list_touched(pod, before)
        return self.rules.count_among(touched, before) - self.rules.count_among(touched, after)

    def refuse_worse(self, proposal: Proposal, before: View, after: View, *, mended: int) -> Refused | None:
        """Refuse a move that makes the score worse; one that ends a broken rule may increase the spread."""
        if mended < 0:
            return Refused("WorsensCluster", "other pods would break more rules")
        if mended > 0:
            return None
        return self._refuse_uneven(proposal, before, after)

    def _refuse_uneven(self, proposal: Proposal, before: View, after: View) -> Refused | None:
        excess, more = self._measure_excess(before), self._measure_excess(after)
        if more > excess:
            return Refused("WorsensCluster", "more would be requested beyond the thresholds")
        if more < excess or proposal.policy == BETTER_PREFERENCES:
            return None
        if self._measure_spread(after) <= self._measure_spread(before):
            return None
        return Refused("WorsensCluster", "the utilisation of nodes would be less even")

    def _measure_excess(self, view: View) -> float:
        return self._known.once(view, "excess", lambda: round(measure_excess(view, self.bounds), _DIGITS))

    def _measure_spread(self, view: View) -> float:
        return self._known.once(view, "spread", lambda: round(measure_spread(view), _DIGITS))
