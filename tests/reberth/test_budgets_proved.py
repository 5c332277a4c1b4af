"""No window ever holds more disruptions than its rate, whichever leaders made them with whichever clocks."""

from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reberth.budgets import (
    Disruption,
    DisruptionLimits,
    Rate,
    add_debit,
    mark_spent,
    prune_debits,
    refuse_disruption,
    return_debit,
    start_ledger,
)
from reberth.records import Debit, DebitState, MoveLedger
from reberth.refusals import Refused
from tests.reberth.remembering import NOW


def accepted(result: MoveLedger | Refused) -> MoveLedger:
    assert isinstance(result, MoveLedger), result
    return result


def debits(found: MoveLedger) -> tuple[Debit, ...]:
    return found.status.debits or ()


PERIOD = 20.0
CLOCKS = (0.0, 2.5, 5.0)


@pytest.mark.parametrize(("first", "second"), list(product(CLOCKS, CLOCKS)))
@pytest.mark.parametrize("until_evicted", [0.0, 10.0, 2 * PERIOD])
@pytest.mark.parametrize("until_marked", [0.0, 10.0, 2 * PERIOD])
def test_two_disruptions_are_a_period_apart_whichever_clocks_allow_them(
    first: float, second: float, until_evicted: float, until_marked: float
) -> None:
    """One a period, and a moment that every quarter of a second is tried for the next one."""
    one_a_period = DisruptionLimits(cluster=(Rate((1, PERIOD)),))
    evicted_at = NOW + until_evicted
    marked_at = evicted_at + until_marked
    entered = accepted(
        add_debit(start_ledger(), one_a_period, Disruption("m1", "shop", "uid-web"), now=NOW + first)
    )
    spent = accepted(mark_spent(entered, "m1", now=marked_at + first))

    allowed = []
    for quarter in range(4 * 120):
        time = NOW + quarter / 4
        pruned = prune_debits(entered if time < marked_at else spent, one_a_period, now=time + second)
        if not refuse_disruption(
            pruned, one_a_period, Disruption("m2", "shop", "uid-web"), now=time + second
        ):
            allowed.append(time)

    assert min(allowed) >= evicted_at + PERIOD
    assert min(allowed) <= marked_at + PERIOD + 10


AHEAD = st.sampled_from([0.0, 5.0])
# Most faults show where a period is nearly over.
WAITS = st.sampled_from([0.25, PERIOD - 5, PERIOD - 0.25, PERIOD, PERIOD + 5])
GROUPS = {
    "cluster": lambda _: "",
    "namespace": lambda one: one.namespace,
    "workload": lambda one: one.workload_uid,
}


class Leaders(RuleBasedStateMachine):
    """Leaders come and go, their clocks up to 5 s apart; any of them may do any step, and crash after it."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = start_ledger()
        self.time = NOW
        self.disruptions: dict[str, tuple[float, Disruption]] = {}
        self.planned: dict[str, Disruption] = {}

    @initialize(scope=st.sampled_from(sorted(GROUPS)), count=st.integers(1, 2))
    def somebody_sets_a_rate(self, scope: str, count: int) -> None:
        self.group, self.count = GROUPS[scope], count
        self.limits = DisruptionLimits(**{"cluster": (), scope: (Rate((count, PERIOD)),)})

    @rule(seconds=WAITS)
    def time_passes(self, seconds: float) -> None:
        self.time += seconds

    @rule(ahead=AHEAD, namespace=st.sampled_from("ab"), workload=st.sampled_from("xy"))
    def plan(self, ahead: float, namespace: str, workload: str) -> None:
        self.enter(ahead, namespace, workload)

    @rule(
        ahead=AHEAD,
        namespace=st.sampled_from("ab"),
        workload=st.sampled_from("xy"),
        wait=st.sampled_from([0.0, PERIOD]),
    )
    def move(self, ahead: float, namespace: str, workload: str, wait: float) -> None:
        new = self.enter(ahead, namespace, workload)
        if new.move in self.tentative():
            self.time += wait
            self.disruptions[new.move] = (self.time, new)
            self.settle(new.move, ahead)

    @precondition(lambda self: self.tentative())
    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        """The answer is lost until somebody looks."""
        move = data.draw(st.sampled_from(self.tentative()))
        self.disruptions.setdefault(move, (self.time, self.planned[move]))

    @precondition(lambda self: self.tentative())
    @rule(ahead=AHEAD, data=st.data())
    def look(self, ahead: float, data: st.DataObject) -> None:
        self.settle(data.draw(st.sampled_from(self.tentative())), ahead)

    @rule(ahead=AHEAD)
    def take_over(self, ahead: float) -> None:
        for move in self.tentative():
            self.settle(move, ahead)
        self.ledger = prune_debits(self.ledger, self.limits, now=self.time + ahead)

    def enter(self, ahead: float, namespace: str, workload: str) -> Disruption:
        """The first answer may be lost: entered again, nothing changes."""
        new = Disruption(f"m{len(self.planned)}", namespace, namespace + workload)
        self.planned[new.move] = new
        entered = add_debit(self.ledger, self.limits, new, now=self.time + ahead)
        if isinstance(entered, MoveLedger):
            self.ledger = entered
            assert add_debit(entered, self.limits, new, now=self.time + ahead + 1) == entered
        return new

    def tentative(self) -> list[str]:
        return [one.move for one in debits(self.ledger) if one.state == DebitState.TENTATIVE]

    def settle(self, move: str, ahead: float) -> None:
        happened = move in self.disruptions
        settled = (
            mark_spent(self.ledger, move, now=self.time + ahead)
            if happened
            else return_debit(self.ledger, move)
        )
        self.ledger = accepted(settled)

    @invariant()
    def no_window_holds_more_than_its_rate(self) -> None:
        found = list(self.disruptions.values())
        for group in {self.group(one) for _, one in found}:
            times = sorted(time for time, one in found if self.group(one) == group)
            assert all(
                last - first >= PERIOD for first, last in zip(times, times[self.count :], strict=False)
            )

    @invariant()
    def every_debit_stands_once(self) -> None:
        assert len({one.move for one in debits(self.ledger)}) == len(debits(self.ledger))


class TestLeaders(Leaders.TestCase):
    settings = settings(max_examples=100, stateful_step_count=20)
