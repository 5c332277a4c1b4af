"""A plan: which pods move where and why, which do not and why not, and what that makes of the cluster."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Bools, Indices
from reberth.cluster.rows import PodRow
from reberth.values.refusal import Refused

Mode = Literal["apply", "recommend"]
"""What becomes of a planned move."""
WantedMode = Literal["apply", "recommend", "off"]
"""What an operator may ask of a policy."""
APPLY: Final = "apply"
RECOMMEND: Final = "recommend"
OFF: Final = "off"


PolicyName = Literal["brokenRules", "betterPreferences", "underUtilisedNodes"]
"""The policies, by the name that they have in the policy file, in plans and on metrics."""
BROKEN_RULES: Final = "brokenRules"
BETTER_PREFERENCES: Final = "betterPreferences"
UNDER_UTILISED_NODES: Final = "underUtilisedNodes"


class Destination(msgspec.Struct, frozen=True, gc=False):
    node: str
    chance: float


class PlannedMove(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """One move; its figures are points of kube-scheduler's total. The first destination is reserved.

    Its mode tells whether it is to be made, or only recommended.
    """

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
    """What is requested on a node, in hundredths of what it offers, by resource."""

    before: dict[str, float]
    after: dict[str, float]


class ClusterScore(NamedTuple):
    """How a cluster stands, the worst first; less is better in each."""

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
    """The moves stand in the order in which they are to be made; those only recommended come last."""

    kind: Literal["Plan"]
    now: str
    moves: tuple[PlannedMove, ...]
    refused: Refusals
    nodes: dict[str, BeforeAndAfter]
    score: Scores
    warnings: tuple[str, ...]


class LandingScores(NamedTuple):
    """kube-scheduler's points for the node that the pod left and for the one where it landed.

    There are none for a node that a rule wanted it away from, and that it may not go to any more.
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
    """Rank names as they are sorted."""
    found = list(names)
    ranks = {name: rank for rank, name in enumerate(sorted(set(found)))}
    return np.array([ranks[name] for name in found], np.int32)
