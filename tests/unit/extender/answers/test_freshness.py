"""When a response must be neutral."""

import pytest

from extender.answers.freshness import MirrorState, find_neutral_cause

TRUE = MirrorState(is_complete=True, trouble=None, age=59.0)


@pytest.mark.parametrize(
    ("mirror_states", "spent", "cause"),
    [
        ([], 0.0, None),
        ([TRUE], 0.1, None),
        ([TRUE], 0.101, "deadline"),
        ([TRUE, MirrorState(False, "not listed yet", float("inf"))], 0.0, "cold"),
        ([MirrorState(True, None, 1e6)], 0.0, None),
        ([MirrorState(True, "the server was silent", 120.0)], 0.0, None),
        ([MirrorState(True, "the server was silent", 120.1)], 0.0, "stale"),
        ([MirrorState(True, "refused", 500.0), MirrorState(False, None, 0.0)], 9.0, "cold"),
        ([MirrorState(True, "refused", 500.0)], 9.0, "stale"),
    ],
)
def test_a_neutral_answer_has_one_cause(
    mirror_states: list[MirrorState], spent: float, cause: str | None
) -> None:
    assert find_neutral_cause(mirror_states, stale_after=120, spent=spent, deadline=0.1) == cause
