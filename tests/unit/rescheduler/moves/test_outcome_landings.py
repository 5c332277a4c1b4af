"""Where replacements landed, and what explains it."""

from collections.abc import Callable

import pytest

from reberth.memory.history import Ending
from reberth.records import Node, Outcome
from rescheduler.moves.outcome import CAUSES, Landing, judge_landing
from tests.support import builders
from tests.support.memory.objects import move

MOVE = move(destinations=("n2", "n3"))
NODES = {name: builders.as_record(Node, builders.node(name)) for name in ("n1", "n2", "n3", "n4")}
LEAVING = {"n2": builders.as_record(Node, builders.node("n2", unschedulable=True))}


@pytest.mark.parametrize(
    ("ending", "extender", "find", "landing"),
    [
        (Ending(Outcome.BETTER, "n3"), "required", NODES.get, Landing(as_forecast=True)),
        (Ending(Outcome.BETTER, "n3"), "none", NODES.get, Landing(as_forecast=True)),
        (Ending(Outcome.SAME, "n4"), "required", NODES.get, Landing(as_forecast=False, cause="unexplained")),
        (Ending(Outcome.RETURNED, "n1"), "optional", NODES.get, Landing(as_forecast=False, cause="returned")),
        (Ending(Outcome.RETURNED, "n1"), "none", NODES.get, Landing(as_forecast=False, cause="undrawn")),
        (Ending(Outcome.WORSE, "n4"), "required", LEAVING.get, Landing(as_forecast=False, cause="leaving")),
        (Ending(Outcome.PENDING), "required", NODES.get, None),
        (Ending(Outcome.REFUSED), "required", NODES.get, None),
    ],
)
def test_a_landing_is_compared_with_the_destinations(
    ending: Ending, extender: str, find: Callable[[str], Node | None], landing: Landing | None
) -> None:
    found = judge_landing(MOVE, ending, extender=extender, find=find)
    assert found == landing
    assert found is None or found.cause in CAUSES | {None}
