"""What is known of whether a workload's moves are refused."""

import pytest

from reberth.records import (
    EvictionHistory,
    HistoryStatus,
    ObjectMeta,
    Outcome,
    PastMove,
    RememberedRefusal,
)
from reberth.values.timestamp import write_micro_time
from rescheduler.model.standing import Standing, judge_standing

NOW = 1_000_000.0
HOUR = 3600.0


def refusal(ago: float, rule: str = "PodMoved", *, lasts: float = 60.0) -> RememberedRefusal:
    at = NOW - ago
    return RememberedRefusal(rule, write_micro_time(at), write_micro_time(at + lasts), "uid-gone")


def evicted(ago: float) -> PastMove:
    at = write_micro_time(NOW - ago)
    return PastMove("m", "web-1", "uid-1", "n1", Outcome.BETTER, evicted_at=at, closed_at=at)


def history(*refused: RememberedRefusal, past: tuple[PastMove, ...] = ()) -> EvictionHistory:
    return EvictionHistory(ObjectMeta(), status=HistoryStatus(refused=refused, past=past))


@pytest.mark.parametrize(
    ("found", "known", "standing"),
    [
        (None, [], Standing.UNKNOWN),
        (history(), [], Standing.UNKNOWN),
        (history(past=(evicted(HOUR),)), [], Standing.PROVEN),
        (history(refusal(2 * HOUR)), [], Standing.REFUSED),
        (history(refusal(26 * HOUR)), [], Standing.UNKNOWN),
        (history(refusal(2 * HOUR), past=(evicted(3 * HOUR),)), [], Standing.REFUSED),
        (history(past=(evicted(HOUR),)), [refusal(60)], Standing.REFUSED),
        (history(past=(evicted(HOUR),)), [refusal(2 * HOUR)], Standing.PROVEN),
    ],
)
def test_the_last_answer_counts(
    found: EvictionHistory | None, known: list[RememberedRefusal], standing: Standing
) -> None:
    assert judge_standing(found, known, NOW) is standing


@pytest.mark.parametrize("rule", ["PodMoved", "NodeMarked", "EvictionRefused"])
def test_what_refused_another_pod_before_a_granted_eviction_counts_no_more(rule: str) -> None:
    """It is still remembered: that pod or node may be refused again."""
    assert judge_standing(history(refusal(2 * HOUR, rule), past=(evicted(HOUR),)), [], NOW) is Standing.PROVEN


def test_a_grant_that_no_history_names_yet_proves_a_workload_and_disproves_earlier_refusals() -> None:
    refused = history(refusal(HOUR, "EvictionRefused"))
    assert judge_standing(None, [], NOW, granted=NOW - 1) is Standing.PROVEN
    assert judge_standing(refused, [], NOW, granted=NOW - HOUR / 2) is Standing.PROVEN
    assert judge_standing(refused, [], NOW, granted=NOW - 2 * HOUR) is Standing.REFUSED
