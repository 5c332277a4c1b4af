"""Random histories of the move ledger: leaders with clocks that differ, and what really happened."""

import inspect
import math
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType, ModuleType
from typing import NamedTuple
from unittest.mock import patch

import msgspec

from reberth.memory import ledger, ledger_index, ledger_slots
from reberth.memory.ledger import KEPT_SPENT, SPENT_BYTES, Disruption
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import Debit, DebitState, MoveLedger
from reberth.values.refusal import Refused
from tests.support.memory.objects import NOW

PERIODS = (20.0, 600.0, 3600.0, 6 * 3600.0)
SKEW = 5.0
STEPS = 60
HELD_LONGER = 1 / 60
"""A rate may hold a disruption for so much of its period more."""
GROUPS: dict[str, Callable[[Disruption], str]] = {
    "cluster": lambda _: "",
    "namespace": lambda one: one.namespace,
    "workload": lambda one: one.workload_uid,
}
RULES = {"ClusterRate": "cluster", "NamespaceRate": "namespace", "WorkloadRate": "workload"}


class Happened(NamedTuple):
    """A disruption, by a clock that all share; it is dated a second later, or when it was marked."""

    disruption: Disruption
    at: float
    dated: float


def accepted(result: MoveLedger | Refused) -> MoveLedger:
    assert isinstance(result, MoveLedger), result
    return result


class History:
    """Leaders come, go and come again, their clocks up to 5 s apart; each may crash after any step.

    Everything is drawn from one number, in a third of the histories other rates for each leader. No window of
    a leader's rate may hold more disruptions than the rate allows, and none may be refused that would be
    allowed even if those before had been held a little longer. A leader that has added nothing for a whole
    period begins anew: what that period counts was not kept for it.
    """

    def __init__(self, number: int) -> None:
        self.dice = random.Random(number)
        self.limits_of = [self._draw_limits()] * 3
        if self.dice.random() < 1 / 3:
            self.limits_of = [self._draw_limits() for _ in range(3)]
        self.kept_since: dict[
            tuple[int, str, Rate], tuple[float, float]
        ] = {}  # and when it added the last one
        self.spent_bytes = self.dice.choice([0, 1000, SPENT_BYTES])
        self.ledger = ledger.start_ledger()
        self.time = NOW + self.dice.uniform(0, 100_000)
        self.clocks = [0.0, self.dice.uniform(0, SKEW), SKEW]
        self.servers_clock = self.dice.choice(self.clocks)
        self.leader = self.dice.randrange(len(self.clocks))
        self.made = 0
        self.full = 0
        self.evicted: dict[str, tuple[Disruption, float]] = {}  # of which the ledger does not know yet
        self.happened: list[Happened] = []
        self.marked: dict[str, tuple[Disruption, float]] = {}

    def play(self) -> None:
        steps = (self.wait, self.move, self.move_as_many_as_it_may, self.plan_and_crash, self.look_backwards)
        rarer = (self.lose_an_answer, self.change_leaders, self.restart, self.ask_again, self.wait_for_long)
        with patch.object(ledger, "SPENT_BYTES", self.spent_bytes):
            for _ in range(STEPS):
                self.dice.choice((*steps, *steps, *rarer))()
                assert len({one.move for one in self.debits()}) == len(self.debits())

    @property
    def limits(self) -> DisruptionLimits:
        """The rates of the leader."""
        return self.limits_of[self.leader]

    @property
    def is_shared(self) -> bool:
        return self.limits_of[0] is self.limits_of[1]

    @property
    def now(self) -> float:
        """What the leader's clock says."""
        return self.time + self.clocks[self.leader]

    def debits(self) -> tuple[Debit, ...]:
        return self.ledger.status.debits or ()

    def wait(self) -> None:
        """Most faults show where a period is nearly over, or where a slot may be held longer."""
        period = self.dice.choice([rate.period for _, rate in self._list_rates()])
        since = self.dice.choice([self.time, *(one.at for one in self.happened[-20:])])
        longer = self.dice.choice([0.0, 0.0, period * HELD_LONGER + 2 * SKEW])
        around = self.dice.choice([-SKEW, -0.25, 0.0, 0.25, SKEW, 2 * SKEW])
        self.time = max(self.time + 0.25, since + period + longer + around)

    def wait_for_long(self) -> None:
        self.time += self.dice.choice([KEPT_SPENT, *PERIODS])

    def plan_and_crash(self) -> str | None:
        """The first answer may be lost: entered again, nothing changes."""
        self.made += 1
        namespace = self.dice.choice("ab")
        new = Disruption(f"m{self.made}", namespace, namespace + self.dice.choice("xy"))
        entered = ledger.add_debit(self.ledger, self.limits, new, now=self.now)
        if isinstance(entered, Refused):
            self._check_refused(entered, new)
            return None
        self.ledger = entered
        self._keep_rates()
        assert ledger.add_debit(entered, self.limits, new, now=self.now + 1) == entered
        if not self.is_shared:
            open_ = [one for one in self.debits() if one.state is DebitState.TENTATIVE]
            self._check_windows(new, [(_disrupted(one), self.time) for one in open_])
        return new.move

    def move(self) -> None:
        move = self.plan_and_crash()
        if move:
            self.time += self.dice.choice([0.0, 0.1, 1.0])
            self.evict(move)
            self.time += self.dice.choice([0.0, 0.1, 4.0, 30.0, self.dice.choice(PERIODS)])
            self.look(move)

    def move_as_many_as_it_may(self) -> None:
        for _ in range(max(rate.limit for _, rate in self._list_rates()) + 1):
            self.move()

    def look_backwards(self) -> None:
        """What is evicted last is marked and folded first; others follow as soon as the first one is over."""
        period = self.dice.choice([rate.period for _, rate in self._list_rates()])
        self.time = math.ceil(self.time / 64) * 64 + self.dice.choice([0.25, 0.75])  # where a slot may begin
        planned = [move for move in (self.plan_and_crash(), self.plan_and_crash()) if move]
        first = self.time
        for move in planned:
            self.evict(move)
            self.time += self.dice.uniform(0, period * HELD_LONGER)
        for move in reversed(planned):
            self.look(move)
            self.time += self.dice.choice([0.0, KEPT_SPENT])
            self.ledger = ledger.prune_debits(self.ledger, self.limits, now=self.now)
        over = first + period + SKEW - self.clocks[self.leader]
        self.time = max(self.time, over + self.dice.choice([-0.25, 0.25, 1.25]))
        self.move_as_many_as_it_may()

    def lose_an_answer(self) -> None:
        """Of one that is planned; it stays unknown until somebody looks."""
        waiting = [move for move in self.tentative() if move not in self.evicted]
        if waiting:
            self.evict(self.dice.choice(waiting))

    def change_leaders(self) -> None:
        """The next one reads the ledger as it is stored."""
        self.leader = self.dice.randrange(len(self.clocks))
        self.ledger = msgspec.json.decode(msgspec.json.encode(self.ledger), type=MoveLedger)
        self.restart()

    def restart(self) -> None:
        """Whoever begins to lead first looks what has become of all that is open."""
        for move in self.tentative():
            self.look(move)
        self.ledger = ledger.prune_debits(self.ledger, self.limits, now=self.now)

    def ask_again(self) -> None:
        """An answer of the last ten minutes was lost: the disruption is reserved and marked once more."""
        known = [move for move, (_, at) in self.marked.items() if at > self.time - KEPT_SPENT + SKEW]
        for move in known:
            again = ledger.add_debit(self.ledger, self.limits, self.marked[move][0], now=self.now)
            assert again == self.ledger, f"{move} was reserved again"
            assert ledger.mark_spent(again, move, limits=self.limits, now=self.now) == self.ledger
            assert ledger.return_debit(again, move) == ledger.ALREADY_SPENT

    def tentative(self) -> list[str]:
        return [one.move for one in self.debits() if one.state is DebitState.TENTATIVE]

    def evict(self, move: str) -> None:
        (debit,) = (one for one in self.debits() if one.move == move)
        self.evicted[move] = _disrupted(debit), self.time
        if self.is_shared:
            self._check_windows(_disrupted(debit), self.evicted.values())

    def look(self, move: str) -> None:
        if move not in self.evicted:
            self.ledger = accepted(ledger.return_debit(self.ledger, move))
            return
        disruption, at = self.evicted.pop(move)
        is_known = self.dice.random() < 0.6  # when the termination began
        exact = at + self.servers_clock
        told = self.dice.choice([exact, float(math.floor(exact))]) if is_known else None
        self.ledger = accepted(
            ledger.mark_spent(self.ledger, move, limits=self.limits, now=self.now, at=told)
        )
        self._keep_rates()
        self.happened.append(Happened(disruption, at, at + 1 if is_known else self.time))
        self.marked[move] = disruption, self.time

    def _draw_limits(self) -> DisruptionLimits:
        scopes = self.dice.sample(sorted(GROUPS), self.dice.choice([1, 1, 2, 3]))
        cluster, namespace, workload = (
            self._draw_rates() if scope in scopes else () for scope in ("cluster", "namespace", "workload")
        )
        return DisruptionLimits(cluster, namespace, workload)

    def _draw_rates(self) -> tuple[Rate, ...]:
        periods = self.dice.sample(PERIODS, self.dice.choice([1, 1, 2]))
        return tuple(Rate((self.dice.choice([1, 2, 3, 10]), period)) for period in periods)

    def _list_rates(self) -> Iterator[tuple[str, Rate]]:
        for scope in GROUPS:
            yield from ((scope, rate) for rate in getattr(self.limits, scope))

    def _keep_rates(self) -> None:
        for scope, rate in self._list_rates():
            key = self.leader, scope, rate
            since, last = self.kept_since.get(key, (self.time, -math.inf))
            self.kept_since[key] = (since if self.time <= last + rate.period else self.time), self.time

    def _since(self, scope: str, rate: Rate) -> float:
        """Give from when on disruptions were kept for a rate."""
        since, last = self.kept_since.get((self.leader, scope, rate), (self.time, self.time))
        return -math.inf if self.is_shared else since if self.time <= last + rate.period else self.time

    def _check_windows(self, new: Disruption, others: Iterable[tuple[Disruption, float]]) -> None:
        """Others may have happened meanwhile, if they were reserved by a leader with other rates."""
        every = [*((one.disruption, one.at) for one in self.happened), *others]
        for scope, rate in self._list_rates():
            group = GROUPS[scope]
            after = max(self.time - rate.period, self._since(scope, rate))
            held = [at for one, at in every if group(one) == group(new) and at > after]
            assert len(held) <= rate.limit, f"{len(held)} in a window of {rate} of a {scope}: {held}"
            self.full += len(held) == rate.limit

    def _check_refused(self, refused: Refused, new: Disruption) -> None:
        """One of the rates of the scope must be used up, if each disruption is held as long as it may be."""
        scope = RULES[refused.rule]
        group, open_ = GROUPS[scope], set(self.tentative())
        waiting = [one for one in self.debits() if one.move in open_]
        used = sum(group(_disrupted(one)) == group(new) for one in waiting)
        for rate in getattr(self.limits, scope):
            if self._since(scope, rate) > self.time - rate.period:
                return  # it is refused by what was folded for others
            longest = (rate.period + SKEW) * (1 + HELD_LONGER) + SKEW
            held = [
                one
                for one in self.happened
                if group(one.disruption) == group(new) and one.dated > self.time - longest - 0.001
            ]
            if used + len(held) >= rate.limit:
                return
        raise AssertionError(f"refused at {self.time}, though no rate is used up: {refused}")


def _disrupted(debit: Debit) -> Disruption:
    return Disruption(debit.move, debit.namespace, debit.workload_uid)


def play(numbers: Iterable[int]) -> tuple[int, int]:
    """Give how many disruptions there were, and how often one of them filled a window."""
    made = full = 0
    for number in numbers:
        history = History(number)
        history.play()
        made += len(history.happened) + len(history.evicted)
        full += history.full
    return made, full


@contextmanager
def planted(module: ModuleType, sound: str, faulty: str) -> Iterator[None]:
    """Change a line of a module of the ledger, for all modules that use its functions."""
    source = inspect.getsource(module)
    assert source.count(sound) == 1, f"{source.count(sound)} times in {module.__name__}: {sound}"
    changed = ModuleType(module.__name__)
    exec(source.replace(sound, faulty), changed.__dict__)
    with ExitStack() as stack:
        for name, made in vars(changed).items():
            if isinstance(made, FunctionType) and made.__module__ == module.__name__:
                for user in (ledger, ledger_index, ledger_slots):
                    if hasattr(user, name):
                        stack.enter_context(patch.object(user, name, made))
        yield


__all__ = ["History", "accepted", "ledger", "ledger_index", "ledger_slots", "planted", "play"]
