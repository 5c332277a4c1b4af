"""Back-off after moves without gain, by the numbers of the contract."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.config.settings import parse
from reberth.memory.backoff import BackOff, closing_time, find_block, instant, is_fruitless
from reberth.records import EvictionHistory, HistoryStatus, Outcome, PastMove
from reberth.values.errors import SettingsError
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_time
from tests.support.memory.objects import DAY, HOUR, MINUTE, NOW, after_move, empty_history, past

FRUITLESS = {
    Outcome.SAME,
    Outcome.WORSE,
    Outcome.RETURNED,
    Outcome.PENDING,
    Outcome.NOT_READY,
    Outcome.UNKNOWN,
}


def block(history: EvictionHistory, now: float, *, node: str | None = None) -> tuple[str, float] | None:
    found = find_block(history.status, now, node=node)
    return (found.rule, (found.until or 0) - NOW) if found else None


def impatient(*outcomes: Outcome, every: float = HOUR, node: str = "n1") -> EvictionHistory:
    history = empty_history()
    for number, outcome in enumerate(outcomes):
        history = after_move(history, f"m{number}", outcome, closed=NOW + number * every, node=node)
    return history


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_move_is_fruitless_if_a_pod_was_thrown_out_and_no_gain_was_shown(outcome: Outcome) -> None:
    assert is_fruitless(past(outcome)) == (outcome in FRUITLESS)
    assert not is_fruitless(past(outcome, evicted=False))


def test_the_first_fruitless_move_blocks_its_node_and_for_half_as_long_the_workload() -> None:
    history = impatient(Outcome.SAME)

    assert block(history, NOW, node="n1") == ("PairBackOff", 30 * MINUTE)
    assert block(history, NOW) == block(history, NOW, node="n2") == ("WorkloadBackOff", 15 * MINUTE)
    assert block(history, NOW + 15 * MINUTE) is None
    assert block(history, NOW + 30 * MINUTE, node="n1") is None


@pytest.mark.parametrize(
    ("moves", "pair", "workload"),
    [(1, 0.5, 0.25), (2, 1, 0.5), (3, 2, 1), (4, 4, 2), (5, 8, 4), (6, 16, 6), (7, 24, 6), (20, 24, 6)],
)
def test_blocks_double_up_to_their_longest(moves: int, pair: float, workload: float) -> None:
    now = NOW + (moves - 1) * MINUTE
    history = empty_history()
    for number in range(moves):
        history = after_move(history, f"m{number}", Outcome.WORSE, closed=NOW + number * MINUTE)

    patiently = HistoryStatus(past=history.status.past)
    ends = now + pair * HOUR, now + workload * HOUR
    stays = [f"the pod stays until {write_time(end)}" for end in ends]
    assert find_block(patiently, now, node="n1") == Refused(
        "PairBackOff", f"a move of the workload off this node had no benefit: {stays[0]}", ends[0]
    )
    assert find_block(patiently, now) == Refused(
        "WorkloadBackOff", f"a move of the workload had no benefit: {stays[1]}", ends[1]
    )


def test_a_pair_counts_its_own_moves_and_the_workload_all() -> None:
    history = after_move(empty_history(), "m1", Outcome.SAME, closed=NOW, node="n1")
    history = after_move(history, "m2", Outcome.SAME, closed=NOW + HOUR, node="n2")

    (_, second) = history.status.past or ()
    assert instant(second.block_until) == NOW + HOUR + 30 * MINUTE
    assert block(history, NOW + HOUR, node="n3") == ("WorkloadBackOff", HOUR + 30 * MINUTE)


def test_moves_of_longer_than_two_days_ago_do_not_count() -> None:
    history = impatient(Outcome.SAME, Outcome.SAME, every=2 * DAY)
    counted = impatient(Outcome.SAME, Outcome.SAME, every=2 * DAY - 1)

    assert block(history, NOW + 2 * DAY, node="n1") == ("PairBackOff", 2 * DAY + 30 * MINUTE)
    assert block(counted, NOW + 2 * DAY - 1, node="n1") == ("PairBackOff", 2 * DAY - 1 + HOUR)


def test_fruitful_moves_block_nothing() -> None:
    history = impatient(Outcome.BETTER, Outcome.GONE, Outcome.REFUSED, every=MINUTE)

    assert block(history, NOW, node="n1") is None


def test_the_third_fruitless_move_gives_the_workload_up_for_a_day() -> None:
    twice = impatient(Outcome.SAME, Outcome.PENDING, Outcome.BETTER)
    thrice = after_move(twice, "last", Outcome.UNKNOWN, closed=NOW + 3 * HOUR)

    assert twice.status.given_up_until is None
    assert parse_time(thrice.status.given_up_until or "") == NOW + 3 * HOUR + DAY
    assert block(thrice, NOW + 3 * HOUR, node="n9") == ("GivenUp", 3 * HOUR + DAY)
    assert block(thrice, NOW + 3 * HOUR + DAY) is None


def test_a_workload_given_up_gets_one_more_try_a_day() -> None:
    history = impatient(Outcome.SAME, Outcome.SAME, Outcome.SAME)

    again = after_move(history, "again", Outcome.SAME, closed=NOW + 27 * HOUR)

    assert parse_time(again.status.given_up_until or "") == NOW + 27 * HOUR + DAY


@pytest.mark.parametrize("time", [None, "", "soon"])
def test_a_time_that_cannot_be_read_is_long_past(time: str | None) -> None:
    assert instant(time) == float("-inf")
    status = HistoryStatus(past=(past(Outcome.SAME, closed_at=time, evicted_at="soon", block_until=time),))
    assert find_block(status, NOW, node="n1") is None


def test_a_move_without_a_closing_time_ended_with_its_eviction() -> None:
    assert closing_time(past(Outcome.SAME, ago=60, closed_at=None)) == NOW - 60


def test_an_outcome_closed_by_a_clock_ahead_counts() -> None:
    assert block(impatient(Outcome.SAME), NOW - 5, node="n1") == ("PairBackOff", 30 * MINUTE)


def test_the_back_off_is_set_by_durations() -> None:
    settings = parse(b"apiVersion: reberth.dev/v1alpha1\nkind: BackOff\npair: 1h\nmoves: 5\n", BackOff)

    assert settings == BackOff(pair=settings.pair, moves=5)
    assert settings.pair == HOUR


@pytest.mark.parametrize("line", ["moves: 0", "moves: many", "pair: 30", "pears: 1h"])
def test_bad_settings_are_refused(line: str) -> None:
    with pytest.raises(SettingsError, match=line.partition(":")[0]):
        parse(f"apiVersion: reberth.dev/v1alpha1\nkind: BackOff\n{line}\n".encode(), BackOff)


moves = st.builds(
    lambda outcome, ago, node: past(outcome, ago=ago, node=node),
    st.sampled_from(list(Outcome)),
    st.integers(0, 200_000).map(float),
    st.sampled_from(["n1", "n2"]),
)


@given(found=st.lists(moves, max_size=20), data=st.data())
def test_the_order_of_the_past_does_not_matter(found: list[PastMove], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(found))

    assert find_block(HistoryStatus(past=tuple(found)), NOW, node="n1") == find_block(
        HistoryStatus(past=tuple(shuffled)), NOW, node="n1"
    )


@given(found=st.lists(moves, max_size=20), more=moves)
def test_another_move_never_shortens_a_block(found: list[PastMove], more: PastMove) -> None:
    before = find_block(HistoryStatus(past=tuple(found)), NOW)
    after = find_block(HistoryStatus(past=(*found, more)), NOW)

    if before:
        assert after
        assert (after.until or 0) >= (before.until or 0)
