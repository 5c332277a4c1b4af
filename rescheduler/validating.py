"""What forbids a move, asked of the newest state: at the plan, and again right before the eviction.

The rules that exist so far: who owns the pod (told by its signature), whether it is on its way out, what its
disruption budgets allow, and whether there is a node to go to.
"""

from collections.abc import Callable, Iterable

from reberth.avoiding import ANNOTATION, matches, read_notes
from reberth.records import Node, Pod, PodDisruptionBudget
from reberth.refusals import Refused
from reberth.selectors import compile_selector
from reberth.signature import Signature
from reberth.standing import judge_node
from reberth.times import write_time

TERMINATING = Refused("Terminating", "the pod is on its way out already")
FINISHED = Refused("Finished", "the pod has ended")
NOT_BOUND = Refused("NotBound", "the pod is on no node yet")
POD_MOVED = Refused("PodMoved", "the pod is not on the node of the plan")

# Evictions of pods in these phases ask no budget.
_UNBUDGETED = ("Pending", "Succeeded", "Failed")


def refuse_pod(pod: Pod) -> Refused | None:
    """Tell why a pod in this state is not moved."""
    if pod.metadata.deletion_timestamp:
        return TERMINATING
    if pod.status.phase in ("Succeeded", "Failed"):
        return FINISHED
    return None if pod.spec.node_name else NOT_BOUND


def refuse_by_budgets(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> Refused | None:
    """Tell which budget forbids the eviction; `budgets` are those of the pod's namespace."""
    if pod.status.phase in _UNBUDGETED:
        return None
    labels = pod.metadata.labels
    asked = [budget for budget in budgets if compile_selector(budget.spec.selector).matches(labels)]
    if len(asked) > 1:
        names = ", ".join(sorted(budget.metadata.name for budget in asked))
        return Refused("SeveralBudgets", f"more than one PodDisruptionBudget selects the pod: {names}")
    return _ask(pod, asked[0]) if asked else None


def choose_usable(
    names: Iterable[str],
    *,
    source: str,
    who: Signature,
    find: Callable[[str], Node | None],
    now: float,
) -> tuple[str, ...] | Refused:
    """Keep, in their order, the nodes that a pod may be moved to; refused if there is none.

    The extender draws nobody to a node that is leaving or young, or that the workload should avoid.
    """
    verdicts = {
        name: "the pod is there" if name == source else _judge(find(name), who, now) for name in names
    }
    usable = tuple(name for name, verdict in verdicts.items() if verdict is None)
    if usable:
        return usable
    said = "; ".join(f"{name}: {verdict}" for name, verdict in verdicts.items())
    return Refused("NoFeasibleDestination", said or "no node to go to")


def _ask(pod: Pod, budget: PodDisruptionBudget) -> Refused | None:
    name, status = budget.metadata.name, budget.status
    if not _is_ready(pod) and _spares_unready(budget):
        return None
    if status.observed_generation < budget.metadata.generation:
        return Refused("BudgetUnobserved", f"PodDisruptionBudget {name} has not been looked at yet")
    if status.disruptions_allowed > 0:
        return None
    return Refused("BudgetExhausted", f"PodDisruptionBudget {name} allows {status.disruptions_allowed}")


def _spares_unready(budget: PodDisruptionBudget) -> bool:
    """Tell whether a pod that is not Ready goes without using the budget up."""
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


def _is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())


def _judge(node: Node | None, who: Signature, now: float) -> str | None:
    if node is None:
        return "no such node"
    standing = judge_node(node)
    if standing:
        return f"{type(standing).__name__.lower()} ({standing.sign})"
    until = _find_end_of_notes(node, who, now)
    return f"a note keeps the workload away until {write_time(until)}" if until else None


def _find_end_of_notes(node: Node, who: Signature, now: float) -> float | None:
    """Tell until when the node's notes hold for the pod; what cannot be read keeps nobody away."""
    notes = read_notes((node.metadata.annotations or {}).get(ANNOTATION))
    if isinstance(notes, Refused):
        return None
    ends = (note.expires_at for note in notes if note.holds(now) and matches(note, who))
    return max(ends, default=None)
