"""What is known of a pod that the price of its move depends on."""

import numpy as np

from reberth.cluster.pods.requests import CPU, MEMORY
from reberth.cluster.templates import RESOURCES
from reberth.forecast.state.view import View
from reberth.memory.history import learn_cost
from rescheduler.observe.rule_context import RuleContext
from rescheduler.planning.worth import Facts
from rescheduler.protections import read_prices

# Of a pod that others would rather not see evicted: as dear as moves get.
_UNWELCOME = 2**31 - 1


def gather_facts(place: int, seen: View, context: RuleContext, *, chance: float) -> Facts:
    """Look up what is known of a pod; `chance` is that of a good landing."""
    row, template = context.row(place), context.template_of(place)
    history, prices = context.history(template), read_prices(place, context)
    budgets = [each.record.status.disruptions_allowed for each in context.budgets_of(row)]
    return Facts(
        age=context.now - row.created,
        priority=row.template.priority,
        deletion_cost=_UNWELCOME if prices.is_unwelcome else prices.deletion_cost + prices.eviction_cost,
        share=_find_share(place, seen),
        time_to_ready=learn_cost(history) if history else None,
        replicas=int(context.replicas[context.workload_of[template]]),
        allowed=min(budgets, default=None),
        chance=chance,
    )


def _find_share(place: int, seen: View) -> float:
    """Give the part of its node that the pod takes, of cpu or of memory, whichever is larger."""
    template = seen.facts.snapshot.pods.template[place]
    rows = [RESOURCES.index(CPU), RESOURCES.index(MEMORY)]
    asked = seen.facts.snapshot.templates.requests.main[rows, template]
    offered = seen.nodes.allocatable.main[rows, seen.node[place]]
    return float(np.divide(asked, offered, out=np.zeros(2), where=offered > 0).max())
