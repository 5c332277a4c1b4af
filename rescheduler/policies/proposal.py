"""What a policy proposes, and the interface between the planner and every policy.

A policy reads columns and templates and proposes pods. The planner takes the most promising ones first. Only
these are forecast, and the policy chooses among the nodes that kube-scheduler would allow. In a large
cluster tens of thousands of pods are proposed and about a hundred are moved. So proposals are kept as
columns, and the reason is written only for those that the planner looks at.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Bools, Indices
from reberth.config.settings import Section
from reberth.forecast.state.view import View
from reberth.values.refusal import Refused
from rescheduler.model.plan import OFF, WantedMode
from rescheduler.observe.prospects import Prospect

Promises = NDArray[np.float64]


Confirmation = Literal["template", "dryRun"]


class PolicySection(Section, frozen=True):
    """The settings that every policy has."""

    enabled: bool = True
    """Whether this policy proposes anything."""
    mode: WantedMode | None = None
    """off, recommend or apply for this policy; null: as set for the whole file."""

    confirm: Confirmation | None = None
    """template or dryRun for this policy; null: as set for the whole file."""

    @property
    def is_on(self) -> bool:
        return self.enabled and self.mode != OFF


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A pod that a policy wants to move.

    If the pod breaks a rule, `demand` is the gain that the policy states: kube-scheduler has no score for a
    node that it would not choose.
    """

    pod: int
    policy: str
    cause: str
    reason: str
    demand: int | None = None


@dataclass(frozen=True, eq=False)
class Proposals:
    """All pods that a policy proposes for one cause.

    The promises are estimated gains in points. They decide the order and nothing else.
    """

    policy: str
    cause: str
    pods: Indices
    promises: Promises
    describe: Callable[[int], str]
    demand: int | None = None

    def pick(self, number: int) -> Proposal:
        pod = int(self.pods[number])
        return Proposal(pod, self.policy, self.cause, self.describe(pod), self.demand)


class Policy(Protocol):
    """A reason to move pods."""

    @property
    def name(self) -> str: ...

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes of its proposals."""

    def propose(self, view: View) -> Iterable[Proposals]:
        """Propose the pods that should move, in any order."""

    def find_due(self, cause: str, pods: Indices, view: View) -> Bools:
        """Tell which of the pods should still move: an earlier move may have solved the problem."""

    def weigh(self, pods: Indices, view: View) -> Promises | None:
        """Estimate again what moves of proposed pods promise, after others have moved; None: the same."""

    def refuse(self, proposal: Proposal, view: View) -> Refused | None:
        """Refuse a pod that has no destination, before it is forecast."""

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        """Tell which of the prospect's nodes serve the purpose of the policy."""

    def prefer(self, proposal: Proposal, prospect: Prospect) -> Promises | None:
        """Rate the nodes, the highest number first; None: by kube-scheduler's points."""
