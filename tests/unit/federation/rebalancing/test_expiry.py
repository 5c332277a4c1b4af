"""When a rebalancer is done, and when it is deleted."""

import pytest
from msgspec.structs import replace

from federation.api import RebalancerStatus
from federation.rebalancing.expiry import find_finish, seconds_left
from tests.support.federation.rebalancers import HOUR, T, at, entry, rebalancer

DONE, FAILED = entry("a", result="Successful"), entry("b", result="Failed")


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        pytest.param((DONE, FAILED), at(-HOUR), id="nothing is new"),
        pytest.param((DONE, entry("b", result="Failed", message="later")), at(-HOUR), id="a text is new"),
        pytest.param((DONE,), at(5), id="one was dropped"),
        pytest.param((DONE, FAILED, entry("c")), None, id="one has come, case 1"),
        pytest.param((DONE, entry("b", result="Successful")), at(5), id="a result has changed"),
    ],
)
def test_the_finish_time_is_renewed_when_results_change(
    entries: tuple[object, ...], wanted: str | None
) -> None:
    before = RebalancerStatus((DONE, FAILED), finish_time=at(-HOUR))
    assert find_finish(before, entries, now=T + 5) == wanted  # type: ignore[arg-type] # they are entries


@pytest.mark.parametrize(
    ("lifetime", "finished", "generation", "wanted"),
    [
        pytest.param(5, -HOUR, 1, 0, id="R-09, an hour ago"),
        pytest.param(0, 0, 1, 0, id="R-10, at once"),
        pytest.param(100, 0, 1, 90, id="not yet"),
        pytest.param(None, -HOUR, 1, None, id="never"),
        pytest.param(0, None, 1, None, id="it is not finished"),
        pytest.param(0, -HOUR, 2, None, id="somebody has changed it, and nobody has looked"),
    ],
)
def test_a_rebalancer_is_deleted_when_its_ttl_is_over(
    lifetime: int | None, finished: float | None, generation: int, wanted: float | None
) -> None:
    one = rebalancer("a", ttlSecondsAfterFinished=lifetime)
    status = RebalancerStatus((DONE,), 1, None if finished is None else at(finished))
    one = replace(one, status=status, metadata=replace(one.metadata, generation=generation))
    assert seconds_left(one, now=T + 10) == wanted


def test_another_lifetime_counts_from_the_same_end() -> None:
    """Case 2: the proposal's second corner."""
    one = replace(rebalancer("a", ttlSecondsAfterFinished=10), status=RebalancerStatus((DONE,), 1, at(0)))
    assert seconds_left(one, now=T + 4) == 6
    longer = replace(one, spec=replace(one.spec, ttl_seconds_after_finished=60))
    assert seconds_left(longer, now=T + 4) == 56
