"""What a policy proposes, and what the planner asks of every policy.

A policy looks at columns and templates and names pods that it would rather see elsewhere, the most promising
first to be looked at. Only then is a pod forecast: the policy says which of the nodes that kube-scheduler
would allow serve its purpose. In a large fleet tens of thousands are proposed and a hundred moved; so they
are proposed as columns, and only one that is looked at is put into words.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

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


class PolicySection(Section, frozen=True):
    """What can be set of every policy."""

    enabled: bool = True
    """Whether this policy proposes anything."""
    mode: WantedMode | None = None
    """off, recommend or apply for this policy; null: as set for the whole file."""

    @property
    def is_on(self) -> bool:
        return self.enabled and self.mode != OFF


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A pod that a policy would rather see elsewhere.

    A `demand` is the gain that is stated, where a rule wants the pod away and no points can say it.
    """

    pod: int
    policy: str
    cause: str
    reason: str
    demand: int | None = None


@dataclass(frozen=True, eq=False)
class Proposals:
    """All pods that a policy proposes for one cause.

    The promises are what the columns let hope for, in points: they give the order and decide nothing else.
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
    """One way to look for better places."""

    @property
    def name(self) -> str: ...

    def propose(self, view: View) -> Iterable[Proposals]:
        """Name the pods that would do better elsewhere, in any order."""

    def find_due(self, cause: str, pods: Indices, view: View) -> Bools:
        """Tell which of the pods are still to be moved: an earlier move may have seen to it."""

    def weigh(self, pods: Indices, view: View) -> Promises | None:
        """Tell what is promised of pods that were proposed, once others have moved; None: the same."""

    def refuse(self, proposal: Proposal, view: View) -> Refused | None:
        """Tell from the columns why the pod has nowhere to go."""

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        """Tell which of the prospect's nodes serve the purpose."""

    def prefer(self, proposal: Proposal, prospect: Prospect) -> Promises | None:
        """Tell which of the nodes serve it most, by the highest number; None: kube-scheduler's points do."""
