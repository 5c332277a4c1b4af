"""What a move is worth: gain x the part of it that will last - cost - risk, all in kube-scheduler's points.

How long a gain lasts is guessed from how long the pod has lived: what is young may be gone tomorrow. The cost
is what the workload has shown to need until it is Ready, and the size and the importance of the pod. The risk
is what may go wrong: few replicas, a budget that is nearly used up, a landing elsewhere.
"""

from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.cluster.templates import RESOURCES
from reberth.config.settings import Section
from reberth.forecast.state.view import View
from reberth.memory.history import learn_cost
from reberth.values.duration import Duration, Percentage
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections import read_prices

# What verification will call the same: a gain that is not above it would not be seen.
SAME = 20
DEMANDED_LEVEL = 1

Points = Annotated[float, msgspec.Meta(ge=0, le=10_000)]
LevelNumber = Annotated[int, msgspec.Meta(ge=1, le=5)]

_DELETION_COSTS, _PRIORITIES = 2.0**27, 2.0**25
_MOST_IMPORTANT = 10.0
# Of a pod that others would rather not see evicted: as dear as moves get.
_UNWELCOME = 2**31 - 1


class Level(NamedTuple):
    """How much a move must be worth, and what part of every budget and rate is left for others."""

    worth: float | None  # none: nothing but what a rule demands
    buffer: float


LEVELS = {
    1: Level(None, 0.5),
    2: Level(30, 0.5),
    3: Level(20, 0.25),
    4: Level(10, 0.1),
    5: Level(2, 0.0),
}


class PriceSettings(Section, frozen=True):
    """What moves cost and risk, in points of kube-scheduler's total (a plugin of weight 1 gives 0 to 100)."""

    lasting: Duration = Duration(3600)
    """A gain counts in full for a pod much older than this, and half for a new pod."""
    move: Points = 5
    """The cost of moving a pod without priority or deletion cost; these raise it up to tenfold."""
    minute: Points = 2
    """The cost of each minute until the replacement is Ready."""
    ready: Duration = Duration(60)
    """The time to Ready that is assumed for a workload without a measured move."""
    size: Points = 10
    """The cost of moving a pod that fills a whole node; a smaller pod costs its share."""
    replicas: Points = 20
    """The risk of evicting the only replica; with more replicas it is shared."""
    budget: Points = 10
    """The risk of using up what a PodDisruptionBudget allows."""
    landing: Points = 20
    """The risk of a landing outside the destinations, if it were certain."""


class MoveFacts(NamedTuple):
    """What is known of a pod that the price of its move depends on."""

    age: float
    priority: int
    deletion_cost: int
    share: float  # of its node
    time_to_ready: float | None
    replicas: int
    allowed: int | None  # disruptions that its tightest budget allows
    chance: float  # that it lands where it should


class Worth(NamedTuple):
    gain: float
    lasting: float
    cost: float
    risk: float

    @property
    def total(self) -> float:
        return self.gain * self.lasting - self.cost - self.risk


def appraise(gain: float, facts: MoveFacts, prices: PriceSettings, *, demanded: bool) -> Worth:
    """Tell what a move is worth; what a rule demands lasts as long as the rule."""
    lasting = 1.0 if demanded else 1 - 0.5 * 2.0 ** (-max(facts.age, 0.0) / max(prices.lasting, 1e-9))
    return Worth(gain, lasting, _find_cost(facts, prices), _find_risk(facts, prices))


def grade(worth: Worth, *, demanded: bool) -> int | None:
    """Give the most cautious level that makes the move; none if no level does."""
    if demanded:
        return DEMANDED_LEVEL if worth.total >= 0 else None
    reached = [
        number for number, level in LEVELS.items() if level.worth is not None and worth.total >= level.worth
    ]
    return min(reached, default=None)


def _find_cost(facts: MoveFacts, prices: PriceSettings) -> float:
    importance = 1 + facts.deletion_cost / _DELETION_COSTS + facts.priority / _PRIORITIES
    seconds = prices.ready if facts.time_to_ready is None else facts.time_to_ready
    return (
        prices.move * min(max(importance, 0.0), _MOST_IMPORTANT)
        + prices.minute * seconds / 60
        + prices.size * facts.share
    )


def _find_risk(facts: MoveFacts, prices: PriceSettings) -> float:
    budget = 0.0 if facts.allowed is None else prices.budget / max(facts.allowed, 1)
    return prices.replicas / max(facts.replicas, 1) + budget + prices.landing * (1 - facts.chance)


def find_buffer(level: int, given: Percentage | None) -> float:
    """Give the part of every budget and rate that is left for others."""
    return LEVELS[level].buffer if given is None else given


def find_threshold(level: int, given: float | None) -> float | None:
    """Give what a move that no rule demands must be worth; none if no such move is made."""
    return LEVELS[level].worth if given is None else given


def collect_move_facts(place: int, view: View, context: RuleContext, *, chance: float) -> MoveFacts:
    """Look up what is known of a pod; `chance` is that of a good landing."""
    row, template = context.row(place), context.template_of(place)
    history, prices = context.history(template), read_prices(place, context)
    budgets = [each.record.status.disruptions_allowed for each in context.budgets_of(row)]
    return MoveFacts(
        age=context.now - row.created,
        priority=row.template.priority,
        deletion_cost=_UNWELCOME if prices.is_unwelcome else prices.deletion_cost + prices.eviction_cost,
        share=_find_share(place, view),
        time_to_ready=learn_cost(history) if history else None,
        replicas=int(context.replicas[context.workload_of[template]]),
        allowed=min(budgets, default=None),
        chance=chance,
    )


def _find_share(place: int, view: View) -> float:
    """Give the part of its node that the pod takes, of cpu or of memory, whichever is larger."""
    template = view.facts.snapshot.pods.template[place]
    rows = [RESOURCES.index(CPU), RESOURCES.index(MEMORY)]
    asked = view.facts.snapshot.templates.requests.main[rows, template]
    offered = view.nodes.allocatable.main[rows, view.node[place]]
    return float(np.divide(asked, offered, out=np.zeros(2), where=offered > 0).max())
