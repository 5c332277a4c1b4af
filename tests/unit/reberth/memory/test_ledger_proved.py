"""No window holds more disruptions than its rate, for any leaders and clocks."""

import random
from collections.abc import Iterable
from itertools import product

import pytest

from reberth.memory.ledger import (
    Disruption,
    add_debit,
    mark_spent,
    prune_debits,
    refuse_disruption,
    return_debit,
    start_ledger,
)
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import Debit, DebitState, MoveLedger
from reberth.values.refusal import Refused
from tests.support.memory.objects import NOW
from tests.support.resumable_rounds import Proof


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
    spent = accepted(mark_spent(entered, "m1", limits=one_a_period, now=marked_at + first))

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


RATES = (Rate((1, PERIOD)), Rate((2, PERIOD)), Rate((10, 600.0)))
SKEW = 5.0
STEPS, SAMPLE, HISTORIES = 60, 200, 10_000
GROUPS = {
    "cluster": lambda _: "",
    "namespace": lambda one: one.namespace,
    "workload": lambda one: one.workload_uid,
}


class History:
    """Leaders come, go and come again, their clocks up to 5 s apart; each may crash after any step.

    Everything is drawn from one number. What a window really holds is counted by a clock that all share.
    """

    def __init__(self, number: int) -> None:
        self.dice = random.Random(number)
        self.rate = self.dice.choice(RATES)
        scope = self.dice.choice(sorted(GROUPS))
        self.group = GROUPS[scope]
        self.limits = DisruptionLimits(**{"cluster": (), scope: (self.rate,)})
        self.ledger = start_ledger()
        self.time = NOW
        self.clocks = [0.0, self.dice.uniform(0, SKEW), SKEW]
        self.leader = self.dice.randrange(len(self.clocks))
        self.made = 0
        self.evicted: dict[str, Disruption] = {}
        self.times: dict[str, list[float]] = {}
        """When disruptions really began, in each group that the rate counts."""

    def play(self) -> None:
        steps = (self.wait, self.move, self.move_as_many_as_it_may, self.plan_and_crash)
        rarer = (self.lose_an_answer, self.change_leaders, self.restart)
        for _ in range(STEPS):
            self.dice.choice((*steps, *steps, *rarer))()
            assert len({one.move for one in debits(self.ledger)}) == len(debits(self.ledger))

    @property
    def now(self) -> float:
        """What the leader's clock says."""
        return self.time + self.clocks[self.leader]

    def wait(self) -> None:
        """Most faults show where a period is nearly over."""
        since = self.dice.choice([self.time, *(times[-1] for times in self.times.values())])
        around = self.dice.choice([-SKEW, -0.25, 0.0, 0.25, SKEW, 2 * SKEW])
        self.time = max(self.time + 0.25, since + self.rate.period + around)

    def plan_and_crash(self) -> str | None:
        """The first answer may be lost: entered again, nothing changes."""
        self.made += 1
        namespace = self.dice.choice("ab")
        new = Disruption(f"m{self.made}", namespace, namespace + self.dice.choice("xy"))
        entered = add_debit(self.ledger, self.limits, new, now=self.now)
        if isinstance(entered, Refused):
            return None
        self.ledger = entered
        assert add_debit(entered, self.limits, new, now=self.now + 1) == entered
        return new.move

    def move(self) -> None:
        move = self.plan_and_crash()
        if move:
            self.time += self.dice.choice([0.0, 0.1, 1.0])
            self.evict(move)
            self.time += self.dice.choice([0.0, 0.1, self.rate.period])
            self.look(move)

    def move_as_many_as_it_may(self) -> None:
        for _ in range(self.rate.limit + 1):
            self.move()

    def lose_an_answer(self) -> None:
        """Of one that is planned; it stays unknown until somebody looks."""
        waiting = [move for move in self.tentative() if move not in self.evicted]
        if waiting:
            self.evict(self.dice.choice(waiting))

    def change_leaders(self) -> None:
        self.leader = self.dice.randrange(len(self.clocks))
        self.restart()

    def restart(self) -> None:
        """Whoever begins to lead first looks what has become of all that is open."""
        for move in self.tentative():
            self.look(move)
        self.ledger = prune_debits(self.ledger, self.limits, now=self.now)

    def tentative(self) -> list[str]:
        return [one.move for one in debits(self.ledger) if one.state == DebitState.TENTATIVE]

    def evict(self, move: str) -> None:
        (debit,) = (one for one in debits(self.ledger) if one.move == move)
        self.evicted[move] = Disruption(move, debit.namespace, debit.workload_uid)
        times = self.times.setdefault(self.group(self.evicted[move]), [])
        times.append(self.time)
        held = [time for time in times if time > self.time - self.rate.period]
        assert len(held) <= self.rate.limit, f"{len(held)} in a window of {self.rate}: {held}"

    def look(self, move: str) -> None:
        if move in self.evicted:
            self.ledger = accepted(mark_spent(self.ledger, move, limits=self.limits, now=self.now))
        else:
            self.ledger = accepted(return_debit(self.ledger, move))


def play(numbers: Iterable[int]) -> tuple[int, int]:
    """Give how many disruptions there were, and how many of them filled a window."""
    made = full = 0
    for number in numbers:
        history = History(number)
        history.play()
        for times in history.times.values():
            made += len(times)
            apart = zip(times, times[history.rate.limit - 1 :], strict=False)
            full += sum(last - first <= history.rate.period for first, last in apart)
    return made, full


def test_no_window_exceeds_its_rate_across_leader_changes_and_crashes() -> None:
    made, full = play(range(SAMPLE))
    assert made > 10 * SAMPLE
    assert full > SAMPLE  # the rates are what held them back


@pytest.mark.soak
def test_no_window_holds_more_than_its_rate_in_ten_thousand_histories() -> None:
    proof = Proof("windows")
    numbers = proof.remaining(range(HISTORIES))
    made, full = play(numbers)
    proof.note(numbers)
    print(f"\n{len(proof.passed())} histories; in this run {made} disruptions and {full} full windows")
