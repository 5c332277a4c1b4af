"""Which of several refusals of a pod counts, and their order."""

import numpy as np

from reberth.cluster.object_files import load_objects
from reberth.values.refusal import Refused
from rescheduler.model.plan import Refusals, RefusedPods
from tests.support.rescheduler.plans import NOW, VERSION, replica

FULL, LATE = Refused("Full", "it is full"), Refused("Late", "it is late")
ROWS = load_objects(
    [replica(f"p-{number}", "p", "n") for number in range(4)], now=NOW, version=VERSION
).snapshot.pods.rows
ALL_STAY = np.ones(4, np.bool_)


def word(policy: str, refused: Refused, *pods: int) -> RefusedPods:
    return RefusedPods(np.array(pods, np.int32), policy, refused)


def told(*words: RefusedPods, stays: np.typing.NDArray[np.bool_] = ALL_STAY) -> list[tuple[str, str, str]]:
    return [(each.pod, each.policy, each.rule) for each in Refusals(words, ROWS, stays=stays)]


def test_refusals_are_sorted_by_pod_and_policy() -> None:
    found = told(word("b", FULL, 2, 0), word("a", FULL, 2))
    assert found == [("default/p-0", "b", "Full"), ("default/p-2", "a", "Full"), ("default/p-2", "b", "Full")]


def test_the_latest_refusal_of_a_policy_for_a_pod_counts() -> None:
    assert told(word("a", FULL, 1), word("a", LATE, 3, 1)) == [
        ("default/p-1", "a", "Late"),
        ("default/p-3", "a", "Late"),
    ]


def test_pods_that_move_have_no_refusal() -> None:
    assert told(word("a", FULL, 0, 1), stays=np.arange(4) != 1) == [("default/p-0", "a", "Full")]


def test_pods_without_a_refusal_are_not_listed() -> None:
    assert told() == []


def test_refusals_are_counted_without_spelling_out_each_one() -> None:
    words = [word("a", FULL, 0, 1), word("b", FULL, 1), word("a", LATE, 1)]
    counts = Refusals(words, ROWS, stays=np.arange(4) != 0).count()
    assert counts == {("Full", "b"): 1, ("Late", "a"): 1}
