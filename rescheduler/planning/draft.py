"""A draft of a plan: moves accepted so far, refusals, and the cluster as it would be after these moves."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from reberth.cluster.columns import Bools, Indices
from reberth.forecast.state.view import View
from reberth.values.refusal import FAULT, Refused
from rescheduler.budgets.limits import Limits
from rescheduler.model.plan import APPLY, RECOMMEND, Mode, PlannedMove, Refusals, RefusedPods
from rescheduler.model.plan_memory import PlanMemory, RememberedMove
from rescheduler.planning.agenda import Agenda, AgendaEntry, set_agenda
from rescheduler.planning.cycle import Cycle


class AcceptedMove(NamedTuple):
    """An accepted move, and the view and limits after it."""

    move: PlannedMove
    view: View
    limits: Limits
    remembered: RememberedMove
    mended: int  # how many fewer rules are broken


class PlanDraft:
    """Grows move by move."""

    def __init__(self, view: View, limits: Limits) -> None:
        self.view = view
        self.limits = limits
        self.planned: defaultdict[str, list[RememberedMove]] = defaultdict(list)  # by controller
        self.moves: list[PlannedMove] = []
        self.moved: set[int] = set()
        self.mended = 0
        self.forecast: list[str] = []  # the uid of the pod of each forecast
        self.faults: dict[str, str] = {}  # by policy
        self._made: list[RememberedMove] = []
        self._refused: dict[Mode, list[RefusedPods]] = {APPLY: [], RECOMMEND: []}
        self._mode: Mode = APPLY
        self._proposed: tuple[View, Agenda] | None = None

    def begin_round(self, cycle: Cycle, mode: Mode) -> Agenda:
        """Give all proposals of a mode; refused ones are proposed again, since other pods have moved.

        What a defect of ours has refused stays in the plan, also if nobody proposes it again.
        """
        self._mode = mode
        self._refused[mode] = [each for each in self._refused[mode] if each.refused.rule == FAULT]
        if self._proposed is None or self._proposed[0] is not self.view:
            self._proposed = self.view, set_agenda(cycle.policies, self.view, cycle.looked_at, self.faults)
        return self._proposed[1].only(cycle.find_those_of(mode, self._proposed[1]))

    def is_full(self, cycle: Cycle) -> bool:
        most = cycle.context.limits_of().per_cycle
        return most is not None and len(self.moves) >= most.number

    def has_looked_enough(self, cycle: Cycle) -> bool:
        most = cycle.settings.forecasts
        return most is not None and len(self.forecast) >= most

    def enter(self, entry: AgendaEntry, verdict: AcceptedMove | Refused) -> None:
        """Enter the result of a proposal."""
        if isinstance(verdict, AcceptedMove):
            self._accept(entry.pod, verdict)
        else:
            self._refuse(np.array([entry.pod], np.int32), entry.proposals.policy, verdict)

    def refuse_all(self, left: Agenda, refused: Refused) -> None:
        """Refuse all proposals that still hold."""
        staying = left.only(self._find_staying()[left.pods])
        due = staying.only(staying.find_due(self.view))
        for policy, places in due.list_by_policy():
            self._refuse(due.pods[places], policy, refused)

    def remember(self, cycle: Cycle) -> PlanMemory:
        """Give the memory for the next plan; recommended moves are not remembered, since no pod moves."""
        return replace(cycle.memory.remember(self._made), looked_at=self._list_looked_at(cycle))

    def _list_looked_at(self, cycle: Cycle) -> frozenset[str]:
        """List the pods that the next plan takes last; when one is forecast again, a new round begins."""
        if not self.has_looked_enough(cycle):
            return frozenset()
        forecast = frozenset(self.forecast)
        return forecast if forecast & cycle.looked_at else forecast | cycle.looked_at

    def list_refused(self, cycle: Cycle) -> Refusals:
        """Give the refused proposals by pod and policy, without those of moved pods."""
        refused = [*self._refused[APPLY], *self._refused[RECOMMEND]]
        return Refusals(refused, cycle.context.snapshot.pods.rows, stays=self._find_staying())

    def _refuse(self, pods: Indices, policy: str, refused: Refused) -> None:
        self._refused[self._mode].append(RefusedPods(pods, policy, refused))

    def _find_staying(self) -> Bools:
        stays = np.ones(len(self.view.node), np.bool_)
        stays[list(self.moved)] = False
        return stays

    def _accept(self, pod: int, accepted: AcceptedMove) -> None:
        self.moved.add(pod)
        self.moves.append(accepted.move)
        self.mended += accepted.mended
        self.view, self.limits = accepted.view, accepted.limits
        self.planned[accepted.remembered.controller].append(accepted.remembered)
        if accepted.move.mode == APPLY:
            self._made.append(accepted.remembered)
