"""Whether the scheduler asks is told by the pods that get nodes."""

from typing import Any

from extender.answers.call_tracker import Attention
from extender.answers.settings import AttentionSettings
from reberth.cluster.rows import PodRow, make_pod_row
from reberth.cluster.templates import Templates
from reberth.records import Pod
from tests.support import builders

PARTS = ("avoid", "scores")
SETTINGS = AttentionSettings(pods=3)
TEMPLATES = Templates(version=(1, 36))


def placed(number: int, scheduler: str = "default-scheduler") -> PodRow:
    made: Any = builders.pod(f"web-{number}", node="n1", uid=f"u{number}", schedulerName=scheduler)
    made["metadata"] |= {"resourceVersion": "1", "creationTimestamp": "2026-11-18T11:00:00Z"}
    return make_pod_row(builders.as_record(Pod, made), TEMPLATES)


def test_pods_that_nobody_asked_about_make_a_warning_and_a_call_ends_it() -> None:
    attention = Attention(PARTS)
    attention.hear("scores", 5.0)
    for number in range(3):
        assert attention.warnings(SETTINGS, parts=PARTS) == []
        attention.place(placed(number), SETTINGS)
    assert attention.warnings(SETTINGS, parts=["avoid"]) == [
        "3 pods were placed since /avoid was asked last; of several replicas one is enough"
    ]
    assert len(attention.warnings(SETTINGS, parts=PARTS)) == 2
    attention.hear("avoid", 7.0)
    assert attention.warnings(SETTINGS, parts=["avoid"]) == []
    assert attention.last_asked == {"avoid": 7.0, "scores": 5.0}


def test_pods_that_were_asked_about_do_not_count_even_if_they_are_placed_late() -> None:
    attention = Attention(PARTS)
    for number in range(9):
        attention.hear("avoid", 1.0)
        attention.expect("avoid", f"u{number}")
    for number in range(9):
        attention.place(placed(number), SETTINGS)
    assert attention.placed_since == {"avoid": 0, "scores": 9}


def test_pods_of_other_schedulers_do_not_count() -> None:
    attention = Attention(PARTS)
    attention.place(placed(1, "other"), SETTINGS)
    assert attention.placed_since == {"avoid": 0, "scores": 0}


def test_pods_that_are_never_placed_are_not_remembered_for_ever() -> None:
    attention = Attention(PARTS)
    for number in range(10_001):
        attention.expect("avoid", f"u{number}")
    for number in (0, 1, 10_000):
        attention.place(placed(number), SETTINGS)
    assert attention.placed_since["avoid"] == 1
