"""Days of disruptions in virtual time: what the move ledger holds of them, and what its writes cost."""

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from time import process_time

import msgspec

from reberth.memory.ledger import Disruption, add_debit, list_windows, mark_spent, start_ledger
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import MoveLedger
from reberth.values.refusal import Refused
from tests.support.memory.objects import DAY, HOUR, NOW

BATCH = 0.1  # seconds between two writes, at least
SPENT_WITHIN = 5.0  # a spent debit waits so long for another write
TERMINATES = 3.0  # seconds from the reservation to the termination
RATES = DisruptionLimits(
    cluster=(Rate((400, 600.0)), Rate((60_000, DAY))),
    namespace=(Rate((200, HOUR)), Rate((2_000, DAY))),
    workload=(Rate((3, DAY)),),
)


@dataclass
class Days:
    """What the days have cost."""

    rates: DisruptionLimits
    ledger: MoveLedger = field(default_factory=start_ledger)
    disruptions: int = 0
    refused: int = 0
    full: int = 0
    writes: int = 0
    largest: int = 0
    """The most bytes of JSON that were sent."""
    estimated: int = 0
    """The most bytes that the ledger expected etcd to store."""
    slots: int = 0
    seconds: float = 0.0
    """CPU time of the changes."""
    stored: int = 0
    storing_seconds: float = 0.0
    """CPU time to encode, decode and index the ledger so many times."""
    open: deque[tuple[float, str]] = field(default_factory=deque)

    dates: deque[float] = field(default_factory=deque)
    """When debits were reserved."""

    def write(self, now: float, asking: Iterable[Disruption]) -> None:
        """One batch: what is asked for, and what has been spent meanwhile."""
        changed = self.ledger
        while self.open and self.open[0][0] <= now:
            at, move = self.open.popleft()
            changed = self._keep(mark_spent(changed, move, limits=self.rates, now=now, at=at), changed)
        for disruption in asking:
            answer = add_debit(changed, self.rates, disruption, now=now)
            if not isinstance(answer, Refused):
                self.disruptions += 1
                self.dates.append(now)
                self.open.append((now + TERMINATES, disruption.move))
            changed = self._keep(answer, changed)
        self.writes += changed is not self.ledger
        self.ledger = changed

    def _keep(self, answer: MoveLedger | Refused, before: MoveLedger) -> MoveLedger:
        if isinstance(answer, Refused):
            self.refused += 1
            self.full += answer.rule == "LedgerFull"
            return before
        return answer

    def count_lately(self) -> tuple[int, int]:
        """Count the disruptions of the longest period, and of what slots may hold longer besides."""
        summary = self.ledger.status.summary
        longest = max(rate.period for rate in (*self.rates.cluster, *self.rates.workload))
        now = self.dates[-1]
        within = sum(time > now - longest for time in self.dates)
        return within, summary.tentative + summary.spent if summary else 0

    def store(self) -> None:
        """Send the ledger, and read it back: what another leader would go on with."""
        begun = process_time()
        sent = msgspec.json.encode(self.ledger)
        self.ledger = msgspec.json.decode(sent, type=MoveLedger)
        list_windows(self.ledger, self.rates, Disruption("", "ns-0", "uid-0"), now=NOW)
        self.storing_seconds += process_time() - begun
        self.stored += 1
        summary = self.ledger.status.summary
        self.largest = max(self.largest, len(sent))
        self.estimated = max(self.estimated, summary.bytes if summary else 0)
        self.slots = max(self.slots, len(self.ledger.status.slots or ()))


def play_days(
    days: float,
    *,
    a_day: int = 50_000,
    workloads: int = 150_000,
    namespaces: int = 500,
    rates: DisruptionLimits = RATES,
    stored_every: float = 600.0,
) -> Days:
    """Disrupt at random times; a workload that its rate refuses stays as it is."""
    dice, made = random.Random(0), Days(rates)
    now = stored = NOW
    begun = process_time()
    for number in count():
        now += max(BATCH, dice.expovariate(a_day / DAY))
        if now > NOW + days * DAY:
            break
        while made.open and made.open[0][0] + SPENT_WITHIN < now:
            made.write(made.open[0][0] + SPENT_WITHIN, [])
        made.write(now, [_draw(number, dice, workloads, namespaces)])
        if now > stored + stored_every:
            made.store()
            stored = now
    made.seconds = process_time() - begun - made.storing_seconds
    made.store()
    return made


def _draw(number: int, dice: random.Random, workloads: int, namespaces: int) -> Disruption:
    workload = dice.randrange(workloads)
    name = f"workload-{workload}"
    return Disruption(
        f"m-{number:012x}",
        f"namespace-{workload % namespaces}",
        f"00000000-0000-4000-8000-{workload:012x}",
        f"{name}-6d5f9c7b9-{dice.randrange(10**5):05}",
        f"11111111-0000-4000-8000-{number:012x}",
        "underUtilisedNodes",
        "karpenter.sh/nodepool=default",
    )
