"""Pods that get nodes without a call show that the scheduler does not ask the extender."""

from typing import Any

from extender.answers.call_tracker import CallTracker
from extender.answers.settings import CallTrackerSettings
from reberth.cluster.rows import PodRow, make_pod_row
from reberth.cluster.templates import Templates
from reberth.records import Pod
from tests.support import builders

PARTS = ("avoid", "scores")
SETTINGS = CallTrackerSettings(pods=3)
TEMPLATES = Templates(version=(1, 36))


def placed(number: int, scheduler: str = "default-scheduler") -> PodRow:
    made: Any = builders.pod(f"web-{number}", node="n1", uid=f"u{number}", schedulerName=scheduler)
    made["metadata"] |= {"resourceVersion": "1", "creationTimestamp": "2026-11-18T11:00:00Z"}
    return make_pod_row(builders.as_record(Pod, made), TEMPLATES)


def test_pods_placed_without_a_call_raise_a_warning_that_a_call_ends() -> None:
    call_tracker = CallTracker(PARTS)
    call_tracker.hear("scores", 5.0)
    for number in range(3):
        assert call_tracker.warnings(SETTINGS, parts=PARTS) == []
        call_tracker.place(placed(number), SETTINGS)
    assert call_tracker.warnings(SETTINGS, parts=["avoid"]) == [
        "3 pods were placed since the last call of /avoid; one of several replicas is enough"
    ]
    assert len(call_tracker.warnings(SETTINGS, parts=PARTS)) == 2
    call_tracker.hear("avoid", 7.0)
    assert call_tracker.warnings(SETTINGS, parts=["avoid"]) == []
    assert call_tracker.last_asked == {"avoid": 7.0, "scores": 5.0}


def test_pods_with_a_call_are_not_counted_even_if_placed_late() -> None:
    call_tracker = CallTracker(PARTS)
    for number in range(9):
        call_tracker.hear("avoid", 1.0)
        call_tracker.expect("avoid", f"u{number}")
    for number in range(9):
        call_tracker.place(placed(number), SETTINGS)
    assert call_tracker.placed_since == {"avoid": 0, "scores": 9}


def test_pods_of_other_schedulers_do_not_count() -> None:
    call_tracker = CallTracker(PARTS)
    call_tracker.place(placed(1, "other"), SETTINGS)
    assert call_tracker.placed_since == {"avoid": 0, "scores": 0}


def test_pods_that_are_never_placed_are_not_remembered_for_ever() -> None:
    call_tracker = CallTracker(PARTS)
    for number in range(10_001):
        call_tracker.expect("avoid", f"u{number}")
    for number in (0, 1, 10_000):
        call_tracker.place(placed(number), SETTINGS)
    assert call_tracker.placed_since["avoid"] == 1
