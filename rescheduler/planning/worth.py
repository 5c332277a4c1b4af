"""What a move is worth: gain x lasting - cost - risk, all in points of kube-scheduler's score.

`lasting` is the share of the gain that is expected to last. It grows with the age of the pod, since a young
pod may soon be deleted anyway. The cost consists of the time that the workload needs until it is Ready, of
the size and the importance of the pod, and of a node that would otherwise be removed. The risk is that few
replicas are left, that a disruption budget is nearly used up, or that the replacement lands elsewhere.
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

# Verification reports a landing that differs by up to this many points as `Same`.
SAME = 20
DEMANDED_LEVEL = 1

Points = Annotated[float, msgspec.Meta(ge=0, le=10_000)]
LevelNumber = Annotated[int, msgspec.Meta(ge=1, le=5)]

# A deletion cost or a priority of this size raises the cost of a move by its basic amount, up to tenfold.
_DELETION_COSTS, _PRIORITIES = 2.0**27, 2.0**25
_MOST_IMPORTANT = 10.0
# The deletion cost of a pod that asks not to be evicted: the largest one, so its move is the most expensive.
_UNWELCOME = 2**31 - 1


class Level(NamedTuple):
    """How many points a move must be worth, and which share of every budget and rate is left to others."""

    worth: float | None  # None: only pods that break a rule are moved
    buffer: float


LEVELS = {
    1: Level(None, 0.5),
    2: Level(30, 0.5),
    3: Level(20, 0.25),
    4: Level(10, 0.1),
    5: Level(2, 0.0),
}


class PriceSettings(Section, frozen=True):
    """Cost and risk of moves, in points of kube-scheduler's score (a plugin of weight 1 gives 0 to 100)."""

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
    """Risk of using the last disruption that a PodDisruptionBudget allows; divided by what it allows."""
    landing: Points = 20
    """The risk of a landing outside the destinations, if it were certain."""
    node: Points = 50
    """The cost of landing on a node that Karpenter would otherwise remove."""


class MoveFacts(NamedTuple):
    """The facts about a pod from which the cost and the risk of its move are calculated."""

    age: float
    priority: int
    deletion_cost: int
    share: float  # of its node
    time_to_ready: float | None
    replicas: int
    allowed: int | None  # disruptions that its strictest budget allows
    chance: float  # that it lands on a destination
    keeps_node: float  # the chance that it lands on a node that would otherwise be removed


class Worth(NamedTuple):
    gain: float
    lasting: float
    cost: float
    risk: float

    @property
    def total(self) -> float:
        return self.gain * self.lasting - self.cost - self.risk


def appraise(gain: float, facts: MoveFacts, prices: PriceSettings, *, demanded: bool) -> Worth:
    """Calculate what a move is worth; the gain of a broken rule lasts as long as the rule."""
    lasting = 1.0 if demanded else 1 - 0.5 * 2.0 ** (-max(facts.age, 0.0) / max(prices.lasting, 1e-9))
    return Worth(gain, lasting, _find_cost(facts, prices), _find_risk(facts, prices))


def grade(worth: Worth, *, demanded: bool) -> int | None:
    """Give the lowest level that makes the move; None if no level does."""
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
        + prices.node * facts.keeps_node
    )


def _find_risk(facts: MoveFacts, prices: PriceSettings) -> float:
    budget = 0.0 if facts.allowed is None else prices.budget / max(facts.allowed, 1)
    return prices.replicas / max(facts.replicas, 1) + budget + prices.landing * (1 - facts.chance)


def find_buffer(level: int, given: Percentage | None) -> float:
    """Give the share of every budget and rate that is left to others."""
    return LEVELS[level].buffer if given is None else given


def find_threshold(level: int, given: float | None) -> float | None:
    """Give what a move that no rule demands must be worth; none if no such move is made."""
    return LEVELS[level].worth if given is None else given


def collect_move_facts(
    place: int, view: View, context: RuleContext, *, chance: float, keeps_node: float
) -> MoveFacts:
    """Collect the facts about a pod, and the chances of its landing."""
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
        keeps_node=keeps_node,
    )


def _find_share(place: int, view: View) -> float:
    """Give the share of its node that the pod requests, of cpu or of memory, whichever is larger."""
    template = view.facts.snapshot.pods.template[place]
    rows = [RESOURCES.index(CPU), RESOURCES.index(MEMORY)]
    asked = view.facts.snapshot.templates.requests.main[rows, template]
    offered = view.nodes.allocatable.main[rows, view.node[place]]
    return float(np.divide(asked, offered, out=np.zeros(2), where=offered > 0).max())
