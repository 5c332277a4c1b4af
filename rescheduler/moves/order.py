"""The decision to move one pod, as the executor takes it: from the plan, or from a person."""

import uuid

import msgspec

from reberth.cluster.pods.identity import Signature
from reberth.records import Pod


def name_move() -> str:
    """Make a name that no other move has."""
    return f"m-{uuid.uuid4().hex[:12]}"


class MoveOrder(msgspec.Struct, frozen=True):
    """A decision: this pod is to be moved to one of these nodes, best first."""

    pod: Pod
    signature: Signature
    destinations: tuple[str, ...]
    policy: str
    reason: str
    move: str = msgspec.field(default_factory=name_move)
