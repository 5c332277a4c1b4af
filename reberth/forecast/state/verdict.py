"""The verdict of a filter plugin.

It refuses some nodes, each with a reason; or rejects the pod; or cannot be forecast.

kube-scheduler's status codes: `k8s.io/kube-scheduler/framework/interface.go`: `Unschedulable`,
`UnschedulableAndUnresolvable`
"""

from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Bools


class Refusal(NamedTuple):
    """Nodes that are refused for one reason, in kube-scheduler's words.

    A node may be refused for several reasons of one plugin, in this order. `final` is
    UnschedulableAndUnresolvable: preemption cannot help there.
    """

    reason: str
    nodes: Bools
    final: bool = False


class Rejected(NamedTuple):
    """The pod is rejected before any node is filtered."""

    reason: str


class Unforeseeable(NamedTuple):
    """Only kube-scheduler itself can tell."""

    reason: str


class Irreplaceable(NamedTuple):
    """The API server would refuse to create the pod."""

    reason: str


FilterVerdict = tuple[Refusal, ...] | Rejected | Unforeseeable

# Nothing is refused.
FITS: tuple[Refusal, ...] = ()


def refuse(reason: str, nodes: Bools, *, final: bool = False) -> tuple[Refusal, ...]:
    """Refuse these nodes, if there are any."""
    return (Refusal(reason, nodes, final),) if np.any(nodes) else FITS
