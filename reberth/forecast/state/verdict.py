"""What a plugin may say of a pod.

It refuses some nodes, each with a reason; or the pod as a whole; or nobody but kube-scheduler can tell.
"""

from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools


class Refusal(NamedTuple):
    """Nodes that are refused for one reason, in kube-scheduler's words.

    A node may be refused for several reasons of one plugin: they count in the order in which they stand.
    `final` says that no preemption could help there.
    """

    reason: str
    nodes: Bools
    final: bool = False


class Rejected(NamedTuple):
    """The pod is turned away before any node is looked at."""

    reason: str


class Unforeseeable(NamedTuple):
    """Nobody but kube-scheduler itself can tell."""

    reason: str


FilterVerdict = tuple[Refusal, ...] | Rejected | Unforeseeable

# Nothing is refused.
FITS: tuple[Refusal, ...] = ()


def refuse(reason: str, nodes: Bools, *, final: bool = False) -> tuple[Refusal, ...]:
    """Refuse these nodes, if there are any."""
    return (Refusal(reason, nodes, final),) if np.any(nodes) else FITS
