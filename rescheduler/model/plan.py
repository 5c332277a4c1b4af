"""A plan: which pods move where and why, which do not and why not, and what that makes of the cluster."""

from typing import Final, Literal, NamedTuple

import msgspec

from rescheduler.model.refusing import Refusals

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
