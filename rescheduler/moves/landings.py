"""Where replacements landed, against where the forecast saw them, and what explains the difference."""

from collections.abc import Callable
from typing import NamedTuple

from reberth.cluster.node_lifecycle import judge_node
from reberth.memory.history import Ending
from reberth.records import Node, OpenMove, Outcome

UNDRAWN = "undrawn"
CAUSES = frozenset({UNDRAWN, "leaving", "returned", "unexplained"})


class Landing(NamedTuple):
    """Whether a replacement landed on a destination of its move; else the cause, as far as it is known."""

    as_forecast: bool
    cause: str | None = None


def judge_landing(
    move: OpenMove, ending: Ending, *, extender: str, find: Callable[[str], Node | None]
) -> Landing | None:
    """Compare a landing with the destinations of its move; None: nothing has landed.

    `find` gives a node as it is now.
    """
    if ending.landed_on is None or ending.outcome is Outcome.REFUSED:
        return None
    if ending.landed_on in (move.destinations or ()):
        return Landing(as_forecast=True)
    if extender == "none":
        return Landing(as_forecast=False, cause=UNDRAWN)
    if not any(_is_open(find(name)) for name in move.destinations or ()):
        return Landing(as_forecast=False, cause="leaving")
    return Landing(as_forecast=False, cause="returned" if ending.landed_on == move.from_ else "unexplained")


def _is_open(node: Node | None) -> bool:
    return node is not None and judge_node(node) is None
