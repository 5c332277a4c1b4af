"""When an answer must be neutral."""

import pytest

from extender.answers.freshness import Standing, find_doubt

TRUE = Standing(is_complete=True, trouble=None, age=59.0)


@pytest.mark.parametrize(
    ("standings", "spent", "cause"),
    [
        ([], 0.0, None),
        ([TRUE], 0.1, None),
        ([TRUE], 0.101, "deadline"),
        ([TRUE, Standing(False, "not listed yet", float("inf"))], 0.0, "cold"),
        ([Standing(True, None, 1e6)], 0.0, None),
        ([Standing(True, "the server was silent", 120.0)], 0.0, None),
        ([Standing(True, "the server was silent", 120.1)], 0.0, "stale"),
        ([Standing(True, "refused", 500.0), Standing(False, None, 0.0)], 9.0, "cold"),
        ([Standing(True, "refused", 500.0)], 9.0, "stale"),
    ],
)
def test_doubt_has_one_cause(standings: list[Standing], spent: float, cause: str | None) -> None:
    assert find_doubt(standings, stale_after=120, spent=spent, deadline=0.1) == cause
