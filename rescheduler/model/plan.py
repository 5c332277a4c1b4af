"""A plan: which pods move where, which rule refuses the others, and the score before and after."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Bools, Indices
from reberth.cluster.rows import PodRow
from reberth.values.refusal import Refused

Mode = Literal["apply", "recommend"]
"""What happens to a planned move."""
WantedMode = Literal["apply", "recommend", "off"]
"""The modes that an operator can set."""
APPLY: Final = "apply"
RECOMMEND: Final = "recommend"
OFF: Final = "off"


PolicyName = Literal["brokenRules", "betterPreferences", "underUtilisedNodes"]
"""The names of the policies in the policy file, in plans and in metrics."""
BROKEN_RULES: Final = "brokenRules"
BETTER_PREFERENCES: Final = "betterPreferences"
UNDER_UTILISED_NODES: Final = "underUtilisedNodes"


class Destination(msgspec.Struct, frozen=True, gc=False):
    node: str
    chance: float


class PlannedMove(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """One move; its figures are points of kube-scheduler's score. Its first destination is reserved."""

    pod: str
    uid: str
    workload: str
    from_: str
    destinations: tuple[Destination, ...]
    policy: str
    mode: Mode
    level: int
    gain: float
    cost: float
    risk: float
    worth: float
    reason: str


class BeforeAndAfter(msgspec.Struct, frozen=True):
    """The requests on a node in percent of its allocatable amount, by resource."""

    before: dict[str, float]
    after: dict[str, float]


class ClusterScore(NamedTuple):
    """The score of a cluster, the most important part first; less is better in each."""

    broken_rules: int
    on_leaving_nodes: int
    excess: float
    spread: float


class Scores(msgspec.Struct, frozen=True):
    before: ClusterScore
    after: ClusterScore


class RefusedPods(NamedTuple):
    """Pods that one policy proposed to move and one rule refused; they may be tens of thousands."""

    pods: Indices
    policy: str
    refused: Refused


class RefusedProposal(msgspec.Struct, frozen=True, gc=False):
    """A proposal that was refused, with the first rule that refused it."""

    pod: str
    policy: str
    rule: str
    reason: str


class Refusals:
    """The latest refusal of each pod that stays, one for each policy that proposed it.

    They are kept in columns and written out one by one only when they are read.
    """

    def __init__(self, refused: Sequence[RefusedPods], rows: Sequence[PodRow], *, stays: Bools) -> None:
        self._refused, self._rows = refused, rows
        pods, number = _find_latest(refused)
        self._pods, self._number = pods[stays[pods]], number[stays[pods]]

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[RefusedProposal]:
        for pod, place in zip(self._pods.tolist(), self._number.tolist(), strict=True):
            row, (_, policy, refused) = self._rows[pod], self._refused[place]
            yield RefusedProposal(f"{row.namespace}/{row.name}", policy, refused.rule, refused.reason)

    def count(self) -> Counter[tuple[str, str]]:
        """Count them by rule and policy."""
        found: Counter[tuple[str, str]] = Counter()
        for place, count in enumerate(np.bincount(self._number).tolist()):
            found[self._refused[place].refused.rule, self._refused[place].policy] += count
        return +found


class Plan(msgspec.Struct, frozen=True):
    """The moves are in the order in which they are made; recommended ones come last."""

    kind: Literal["Plan"]
    now: str
    moves: tuple[PlannedMove, ...]
    refused: Refusals
    nodes: dict[str, BeforeAndAfter]
    score: Scores
    warnings: tuple[str, ...]


class LandingScores(NamedTuple):
    """kube-scheduler's points for the source node and for the node where the replacement landed.

    The source node has none if the move ended a broken rule, and the replacement may no longer go there.
    """

    before: int | None
    after: int


def _find_latest(refused: Sequence[RefusedPods]) -> tuple[Indices, Indices]:
    """Give the pods in order, once for each policy, and the number of the latest refusal of each."""
    pods = np.concatenate([np.zeros(0, np.int32), *(each.pods for each in refused)])
    number = np.repeat(np.arange(len(refused), dtype=np.int32), [len(each.pods) for each in refused])
    policy = _rank(each.policy for each in refused)[number]
    order = np.lexsort((number, policy, pods))
    pods, policy, number = pods[order], policy[order], number[order]
    is_latest = np.ones(len(pods), np.bool_)
    is_latest[:-1] = (pods[:-1] != pods[1:]) | (policy[:-1] != policy[1:])
    return pods[is_latest], number[is_latest]


def _rank(names: Iterable[str]) -> Indices:
    """Give each name its rank in alphabetical order."""
    found = list(names)
    ranks = {name: rank for rank, name in enumerate(sorted(set(found)))}
    return np.array([ranks[name] for name in found], np.int32)
