"""What a policy proposes, and what the planner asks of every policy.

A policy looks at columns and templates and names pods that it would rather see elsewhere, the most promising
first to be looked at. Only then is a pod forecast: the policy says which of the nodes that kube-scheduler
would allow serve its purpose.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from reberth.columns import Bools
from reberth.landing.viewing import View
from reberth.refusals import Refused
from rescheduler.prospects import Prospect


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A pod that a policy would rather see elsewhere.

    `promise` is what the columns let hope for, in points: it orders the proposals and decides nothing else. A
    `demand` is the gain that is stated, where a rule wants the pod away and no points can say it.
    """

    pod: int
    policy: str
    cause: str
    reason: str
    promise: float
    demand: int | None = None


class Policy(Protocol):
    """One way to look for better places."""

    @property
    def name(self) -> str: ...

    def propose(self, seen: View) -> Iterable[Proposal]:
        """Name the pods that would do better elsewhere, in any order."""

    def is_due(self, proposal: Proposal, seen: View) -> bool:
        """Tell whether the pod is still to be moved: an earlier move may have seen to it."""

    def refuse(self, proposal: Proposal, seen: View) -> Refused | None:
        """Tell from the columns why the pod has nowhere to go."""

    def choose(self, proposal: Proposal, prospect: Prospect) -> Bools:
        """Tell which of the prospect's nodes serve the purpose."""
