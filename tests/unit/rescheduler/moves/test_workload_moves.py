"""What a history says of the moves of its workload."""

import pytest

from reberth.records import EvictionHistory, ObjectMeta, OpenMove, Phase, RememberedRefusal
from reberth.records.reberth_dev import HistoryStatus
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.moves.workload_moves import (
    MOVE_UNDER_WAY,
    find_open,
    list_disproved,
    list_remarks,
    open_another,
)
from tests.support.memory.objects import NOW, move


def history(*moves: OpenMove, refused: tuple[RememberedRefusal, ...] = ()) -> EvictionHistory:
    return EvictionHistory(ObjectMeta(), status=HistoryStatus(open=moves, refused=refused))


def refusal(rule: str, key: str = "", *, until: float = NOW + 60) -> RememberedRefusal:
    return RememberedRefusal(rule, write_time(NOW), write_time(until), key, reason="so it was")


@pytest.mark.parametrize(
    ("there", "most", "settled", "is_opened"),
    [
        ((), 1, (), True),
        ((move("a"),), None, (), False),
        ((move("a"),), 2, {"a"}, True),
        ((move("a"),), 1, {"a"}, False),
        ((move("a", phase=Phase.EVICTED),), 2, (), True),
        ((move("a", phase=Phase.EVICTED),), 0, (), False),
        ((move("new"),), 1, (), True),
    ],
)
def test_another_move_opens_while_there_are_few_and_none_is_left_of_an_earlier_leader(
    there: tuple[OpenMove, ...], most: int | None, settled: set[str], *, is_opened: bool
) -> None:
    found = open_another(
        history(*there), entry=move("new"), most=most, settled=settled, give_time=lambda one, _: one
    )
    if isinstance(found, Refused):
        assert found == MOVE_UNDER_WAY
    assert isinstance(found, EvictionHistory) is is_opened
    if isinstance(found, EvictionHistory):
        assert find_open(found, "new")
        assert find_open(found, "other") is None


def test_what_refused_moves_before_is_told_until_its_time_is_over() -> None:
    said = history(refused=(refusal("NodeGone"), refusal("MinAge", until=NOW - 1)))
    (remark,) = list_remarks(said, NOW)
    assert remark.startswith("refused before: NodeGone, for plans until ")
    assert remark.endswith(": so it was")


def test_a_granted_eviction_disproves_what_concerned_its_pod_its_node_and_everything() -> None:
    of_pod, of_node, of_all = refusal("MinAge", "uid-victim"), refusal("NodeGone", "n1"), refusal("Unknown")
    others = refusal("MinAge", "another"), refusal("NodeGone", "n2")
    said = history(refused=(of_pod, *others, of_node, of_all))
    assert list_disproved(said, move()) == (of_pod, of_node, of_all)
    assert list_disproved(None, move()) == ()
