"""A plan in the making: what was accepted so far, what was refused, and the cluster as it would be by now."""

from typing import NamedTuple

from msgspec.structs import replace

from reberth.landing.viewing import View
from reberth.refusals import Refused
from rescheduler.limits import Limits
from rescheduler.planning_cycle import Cycle
from rescheduler.planning_memory import Moved, PlanMemory
from rescheduler.plans import NotPlanned, PlannedMove
from rescheduler.policies.proposals import Proposal


class Accepted(NamedTuple):
    """A move, and what is left after it."""

    move: PlannedMove
    seen: View
    limits: Limits
    remembered: Moved
    mended: int  # so many fewer pods break a rule


class Draft:
    """Grows move by move."""

    def __init__(self, seen: View, limits: Limits, memory: PlanMemory) -> None:
        self.seen = seen
        self.limits = limits
        self.memory = memory
        self.moves: list[PlannedMove] = []
        self.moved: set[int] = set()
        self.mended = 0
        self.forecast: list[str] = []  # the uids of the pods that were forecast, once for each time
        self._refused: dict[tuple[int, str], NotPlanned] = {}

    def begin_round(self) -> None:
        """What was refused is asked anew, now that others have moved."""
        self._refused.clear()

    def is_full(self, cycle: Cycle) -> bool:
        most = cycle.settings.limits.per_cycle
        return most is not None and len(self.moves) >= most

    def has_looked_enough(self, cycle: Cycle) -> bool:
        most = cycle.settings.forecasts
        return most is not None and len(self.forecast) >= most

    def enter(self, proposal: Proposal, verdict: Accepted | Refused, cycle: Cycle) -> None:
        """Enter what became of a proposal; the newest word on a pod counts."""
        if isinstance(verdict, Accepted):
            self._accept(proposal.pod, verdict)
        else:
            row = cycle.context.row(proposal.pod)
            name = f"{row.namespace}/{row.name}"
            self._refused[proposal.pod, proposal.policy] = NotPlanned(
                name, proposal.policy, verdict.rule, verdict.reason
            )

    def remember(self, cycle: Cycle) -> PlanMemory:
        """Give what the next plan should know."""
        return replace(self.memory, looked_at=self._list_looked_at(cycle))

    def _list_looked_at(self, cycle: Cycle) -> frozenset[str]:
        """List whom the next plan looks at last; who was looked at a second time begins a new turn."""
        if not self.has_looked_enough(cycle):
            return frozenset()
        forecast = frozenset(self.forecast)
        return forecast if forecast & cycle.looked_at else forecast | cycle.looked_at

    def list_refused(self) -> tuple[NotPlanned, ...]:
        """Give the refused proposals by pod and policy; nothing more is said of a pod that is moved."""
        return tuple(refused for (pod, _), refused in sorted(self._refused.items()) if pod not in self.moved)

    def _accept(self, pod: int, accepted: Accepted) -> None:
        self.moved.add(pod)
        self.moves.append(accepted.move)
        self.mended += accepted.mended
        self.seen, self.limits = accepted.seen, accepted.limits
        self.memory = self.memory.remember([accepted.remembered])
