"""Rates of disruptions: numbers, refusals, and random leaders who never exceed them."""

import json
from itertools import combinations
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from reberth.memory.ledger import (
    ALREADY_SPENT,
    MOST_BYTES,
    MOST_DEBITS,
    NO_DEBIT,
    Disruption,
    add_debit,
    correct_debits,
    count_disruption,
    find_room,
    list_gaps,
    list_windows,
    mark_spent,
    prune_debits,
    refuse_disruption,
    return_debit,
    start_ledger,
)
from reberth.memory.ledger_slots import MOST_PERIODS
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import (
    Debit,
    DebitState,
    ForgottenTimes,
    KeptPeriod,
    LedgerSlot,
    LedgerStatus,
    LedgerSummary,
    MoveLedger,
    SpentMoves,
)
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time
from tests.support.memory.objects import HOUR, MINUTE, NOW

DEFAULT = DisruptionLimits()
TEN_MINUTES_AND_SKEW = 605.0


def disruption(move: str = "m1", namespace: str = "shop", workload_uid: str = "uid-web") -> Disruption:
    return Disruption(move, namespace, workload_uid)


def ledger(*debits: Debit) -> MoveLedger:
    return msgspec.structs.replace(start_ledger(), status=LedgerStatus(debits))


def debit(move: str, *, ago: float = 0.0, state: DebitState = DebitState.SPENT, **fields: Any) -> Debit:
    given = {"namespace": "shop", "workload_uid": "uid-web", "time": write_micro_time(NOW - ago)}
    return Debit(**given | {"move": move, "state": state} | fields)


def accepted(result: MoveLedger | Refused) -> MoveLedger:
    assert isinstance(result, MoveLedger), result
    return result


def debits(found: MoveLedger) -> tuple[Debit, ...]:
    return found.status.debits or ()


def limits(
    cluster: str = "1000 per 1h", namespace: str | None = None, workload: str | None = None
) -> DisruptionLimits:
    rates = [tuple(map(Rate.from_text, [text] if text else [])) for text in (cluster, namespace, workload)]
    return msgspec.convert(
        dict(zip(("cluster", "namespace", "workload"), rates, strict=True)), DisruptionLimits
    )


def test_a_ledger_is_called_default() -> None:
    assert json.loads(msgspec.json.encode(start_ledger())) == {
        "apiVersion": "reberth.dev/v1alpha2",
        "kind": "MoveLedger",
        "metadata": {"name": "default"},
    }


def test_a_debit_records_move_workload_and_time_of_the_disruption() -> None:
    entered = accepted(add_debit(start_ledger(), DEFAULT, disruption(), now=NOW + 0.5))

    assert json.loads(msgspec.json.encode(entered.status)) == {
        "debits": [
            {
                "move": "m1",
                "namespace": "shop",
                "workloadUID": "uid-web",
                "time": "2026-11-18T12:00:00.500000Z",
                "state": "Tentative",
            }
        ],
        "periods": [{"scope": "cluster", "seconds": 605, "until": "2026-11-18T12:11:06.000000Z"}],
        "summary": {"tentative": 1, "spent": 0, "bytes": 5535},
    }


def test_a_debit_says_which_pod_it_is_of_by_which_policy_and_off_which_pool() -> None:
    web = Disruption("m1", "shop", "uid-web", "web-1", "uid-web-1", "age", "agentpool=small")
    (entered,) = debits(accepted(add_debit(start_ledger(), DEFAULT, web, now=NOW)))

    assert (entered.pod, entered.pod_uid) == ("web-1", "uid-web-1")
    assert (entered.policy, entered.pool) == ("age", "agentpool=small")


def test_ten_in_ten_minutes_are_allowed_and_the_eleventh_waits_for_the_first() -> None:
    found = start_ledger()
    for number in range(10):
        found = accepted(add_debit(found, DEFAULT, disruption(f"m{number}"), now=NOW + number))
        found = accepted(mark_spent(found, f"m{number}", limits=DEFAULT, now=NOW + number))

    assert add_debit(found, DEFAULT, disruption("m10"), now=NOW + 10) == Refused(
        "ClusterRate", "no more than 10 per 600s", NOW + TEN_MINUTES_AND_SKEW
    )
    assert add_debit(found, DEFAULT, disruption("m10"), now=NOW + TEN_MINUTES_AND_SKEW - 0.25) != found
    assert refuse_disruption(found, DEFAULT, disruption("m10"), now=NOW + TEN_MINUTES_AND_SKEW - 0.25)
    assert refuse_disruption(found, DEFAULT, disruption("m10"), now=NOW + TEN_MINUTES_AND_SKEW) is None


@pytest.mark.parametrize(
    ("other", "refused"),
    [
        (disruption("new"), "WorkloadRate"),
        (disruption("new", workload_uid="uid-new"), "NamespaceRate"),
        (disruption("new", namespace="bank", workload_uid="uid-bank"), None),
    ],
)
def test_each_scope_counts_its_own(other: Disruption, refused: str | None) -> None:
    found = ledger(debit("m1"), debit("m2", workload_uid="uid-api"))
    rates = limits(cluster="3 per 1m", namespace="2 per 5m", workload="1 per 1h")

    answer = refuse_disruption(found, rates, other, now=NOW)

    assert (answer.rule if answer else None) == refused


def test_the_rule_that_forbids_for_longest_is_named() -> None:
    found = ledger(debit("m1"), debit("m2", ago=30))
    rates = limits(cluster="2 per 1m", namespace="1 per 10m", workload="1 per 5m")

    assert refuse_disruption(found, rates, disruption("m3"), now=NOW) == Refused(
        "NamespaceRate", "no more than 1 per 600s", NOW + 605
    )


@pytest.mark.parametrize(
    ("found", "used", "left", "opens_at"),
    [
        (ledger(), 0, 3, 0.0),
        (ledger(debit("m1", ago=604)), 1, 2, 0.0),
        (ledger(debit("m1", ago=605)), 0, 3, 0.0),
        (ledger(debit("m1", ago=9), debit("m2", ago=99), debit("m3")), 3, 0, 506.0),
        (ledger(debit("m1", ago=9), debit("m2", ago=99), debit("m3"), debit("m4", ago=50)), 4, 0, 555.0),
        (ledger(*(debit(f"m{n}", state=DebitState.TENTATIVE, ago=9 * HOUR) for n in range(3))), 3, 0, None),
        (ledger(debit("m1", time="soon"), debit("m2", time="soon"), debit("m3", ago=5)), 3, 0, 600.0),
        (ledger(debit("m1", ago=-4)), 1, 2, 4.0),
        (ledger(debit("m1", ago=-60)), 1, 2, 5.0),
    ],
)
def test_a_window_reports_what_is_used_and_left_and_when_it_opens(
    found: MoveLedger, used: int, left: int, opens_at: float | None
) -> None:
    (window,) = list_windows(found, limits(cluster="3 per 10m"), disruption("new"), now=NOW)

    assert (window.used, window.left) == (used, left)
    assert (None if window.opens_at is None else window.opens_at - NOW) == opens_at


def test_a_rate_of_nothing_never_opens() -> None:
    assert refuse_disruption(start_ledger(), limits(cluster="0 per 1h"), disruption(), now=NOW) == Refused(
        "ClusterRate", "no more than 0 per 3600s", None
    )


def test_without_rates_everything_is_allowed() -> None:
    free = DisruptionLimits(cluster=())

    assert refuse_disruption(ledger(debit("m1")), free, disruption("m2"), now=NOW) is None
    assert prune_debits(ledger(debit("m1", ago=600)), free, now=NOW).status == LedgerStatus(
        forgotten=ForgottenTimes(*[write_micro_time(NOW - 600)] * 3), summary=LedgerSummary(0, 0, 5120)
    )


def test_with_a_clock_behind_the_newest_debit_sets_the_time() -> None:
    entered = accepted(add_debit(ledger(debit("m1", ago=-4)), DEFAULT, disruption("m2"), now=NOW))
    spent = accepted(mark_spent(entered, "m2", limits=DEFAULT, now=NOW - 1))

    assert [one.time for one in debits(entered)] == [write_micro_time(NOW + 4)] * 2
    assert debits(spent)[1].time == write_micro_time(NOW + 4)


def slots(found: MoveLedger) -> tuple[LedgerSlot, ...]:
    return found.status.slots or ()


DAY = 86400


def test_a_debit_from_a_clock_that_is_a_day_ahead_holds_one_place_for_one_period() -> None:
    found = ledger(debit("wrong", ago=-DAY))

    for number in range(9):
        found = accepted(add_debit(found, DEFAULT, disruption(f"m{number}"), now=NOW))
        found = accepted(mark_spent(found, f"m{number}", limits=DEFAULT, now=NOW))

    assert {one.time for one in debits(found)} == {write_micro_time(NOW + 5)}
    refused = refuse_disruption(found, DEFAULT, disruption("m9"), now=NOW + 1)
    assert refused == Refused("ClusterRate", "no more than 10 per 600s", NOW + 5 + TEN_MINUTES_AND_SKEW)
    end = NOW + 5 + TEN_MINUTES_AND_SKEW
    assert refuse_disruption(found, DEFAULT, disruption("m9"), now=end) is None
    assert debits(prune_debits(found, DEFAULT, now=end)) == ()


def test_debits_from_a_clock_that_is_ahead_hold_a_rate_for_one_period_once_they_are_corrected() -> None:
    found = ledger(*(debit(f"m{number}", ago=-DAY + number) for number in range(10)))
    corrected = correct_debits(found, DEFAULT, now=NOW)

    assert refuse_disruption(found, DEFAULT, disruption("new"), now=NOW + 3600) is not None
    assert refuse_disruption(corrected, DEFAULT, disruption("new"), now=NOW + 300) is not None
    assert refuse_disruption(corrected, DEFAULT, disruption("new"), now=NOW + 611) is None
    assert correct_debits(corrected, DEFAULT, now=NOW) is corrected


def test_a_debit_within_the_skew_and_one_without_a_readable_time_are_left_as_they_are() -> None:
    found = ledger(debit("ahead", ago=-5), debit("now"), debit("unreadable", time="soon"))

    assert correct_debits(found, DEFAULT, now=NOW) is found


def test_a_disruption_counts_from_the_start_of_the_termination() -> None:
    entered = accepted(add_debit(start_ledger(), DEFAULT, disruption(), now=NOW))
    spent = accepted(mark_spent(entered, "m1", limits=DEFAULT, now=NOW + 100))

    assert [(one.state, one.time) for one in debits(spent)] == [
        (DebitState.SPENT, write_micro_time(NOW + 100))
    ]
    assert mark_spent(spent, "m1", limits=DEFAULT, now=NOW + 200) == spent


@pytest.mark.parametrize(
    ("at", "dated"),
    [(60.5, 60.5), (60.0, 61.0), (100.0, 100.0), (500.0, 100.0), (-60.0, 0.0)],
    ids=["then", "cut to seconds", "now", "not in the future", "not before it was reserved"],
)
def test_a_debit_that_is_marked_later_counts_from_the_termination(at: float, dated: float) -> None:
    entered = accepted(add_debit(start_ledger(), DEFAULT, disruption(), now=NOW))
    spent = accepted(mark_spent(entered, "m1", limits=DEFAULT, now=NOW + 100, at=NOW + at))

    assert [one.time for one in debits(spent)] == [write_micro_time(NOW + dated)]
    assert mark_spent(spent, "m1", limits=DEFAULT, now=NOW + 200, at=NOW + 150) == spent


def test_the_time_does_not_go_back_to_that_of_a_debit_that_is_marked_later() -> None:
    first = accepted(add_debit(start_ledger(), DEFAULT, disruption(), now=NOW))
    both = accepted(add_debit(first, DEFAULT, disruption("m2"), now=NOW + 4))
    spent = accepted(mark_spent(both, "m1", limits=DEFAULT, now=NOW + 4, at=NOW + 0.75))
    third = accepted(add_debit(spent, DEFAULT, disruption("m3"), now=NOW))

    assert [one.time for one in debits(third)] == [write_micro_time(NOW + after) for after in (0.75, 4, 4)]


def test_a_debit_entered_twice_is_entered_once_even_if_no_other_is_allowed() -> None:
    once = accepted(add_debit(start_ledger(), limits("1 per 1h"), disruption(), now=NOW))

    assert add_debit(once, limits("1 per 1h"), disruption(), now=NOW + 1) == once
    assert isinstance(add_debit(once, limits("1 per 1h"), disruption("m2"), now=NOW + 1), Refused)


def test_a_tentative_debit_can_be_returned_and_a_spent_one_cannot() -> None:
    entered = accepted(add_debit(start_ledger(), DEFAULT, disruption(), now=NOW))
    spent = accepted(mark_spent(entered, "m1", limits=DEFAULT, now=NOW))

    returned = accepted(return_debit(entered, "m1"))

    assert debits(returned) == ()
    assert return_debit(returned, "m1") == returned
    assert return_debit(spent, "m1") == ALREADY_SPENT


def test_a_debit_that_was_never_added_cannot_be_marked_spent() -> None:
    assert mark_spent(start_ledger(), "m1", limits=DEFAULT, now=NOW) == NO_DEBIT


def test_a_move_with_the_id_of_another_one_counts_nothing() -> None:
    found = ledger(debit("m1", state=DebitState.TENTATIVE, pod_uid="uid-web-1"))
    for forged in (disruption("m1", namespace="tenant"), replace(disruption("m1"), pod_uid="uid-other")):
        assert count_disruption(found, forged, DEFAULT, now=NOW) is found
    counted = count_disruption(found, replace(disruption("m1"), pod_uid="uid-web-1"), DEFAULT, now=NOW)
    assert [one.state for one in debits(counted)] == [DebitState.SPENT]


def test_other_debits_stay_as_they_are() -> None:
    found = ledger(debit("m1"), debit("m2", state=DebitState.TENTATIVE), debit("m3"))

    assert debits(accepted(mark_spent(found, "m2", limits=DEFAULT, now=NOW)))[::2] == debits(found)[::2]
    assert debits(accepted(return_debit(found, "m2"))) == debits(found)[::2]


def test_spent_debits_are_whole_for_ten_minutes_and_counts_until_no_rate_counts_them() -> None:
    found = ledger(
        debit("over", ago=3605),
        debit("counts", ago=3604.75, namespace="bank"),
        debit("open", ago=9 * HOUR, state=DebitState.TENTATIVE),
        debit("unreadable", time="soon"),
        debit("m4", ago=600),
        debit("m5", ago=599.75),
    )
    rates = limits("9 per 10m", "9 per 1h", "9 per 1h")

    pruned = prune_debits(found, rates, now=NOW)

    assert [one.move for one in debits(pruned)] == ["open", "unreadable", "m5"]
    assert [(one.time, one.count) for one in slots(pruned)] == [
        (write_micro_time(NOW - 3604.75), 1),
        (write_micro_time(NOW - 600), 1),
    ]
    assert pruned.status.forgotten.cluster_until == write_micro_time(NOW - 3605)
    for namespace, used in (("bank", 1), ("shop", 4)):
        windows = list_windows(pruned, rates, disruption("new", namespace), now=NOW)
        assert [window.used for window in windows] == [4, used, 5]
    added = accepted(add_debit(found, rates, disruption("new"), now=NOW))
    assert debits(added)[:-1] == debits(pruned)
    assert slots(added) == slots(pruned)


def test_a_ledger_in_which_nothing_is_due_stays_the_same_object() -> None:
    found = ledger(debit("m1", ago=599.75), debit("m2", ago=HOUR, state=DebitState.TENTATIVE))

    assert prune_debits(found, limits(), now=NOW) is found
    assert return_debit(found, "other") is found


@pytest.mark.parametrize("count", [2, 200])
def test_a_move_is_known_as_spent_for_ten_minutes_though_its_debit_is_folded(count: int) -> None:
    """Of many, the debits are folded at once; of few, they are kept for as long as their moves."""
    found, rates, times = start_ledger(), limits(cluster="1000 per 1h"), {}
    for number in range(count):
        move, times[f"m{number}"] = f"m{number}", NOW + number
        found = accepted(add_debit(found, rates, disruption(move), now=NOW + number))
        found = accepted(mark_spent(found, move, limits=rates, now=NOW + number, at=NOW))
    assert (len(debits(found)) < count) == (count == 200)

    for ago in (0.0, 300.0, 599.0):
        now = NOW + count + ago
        later = accepted(add_debit(found, rates, disruption("later"), now=now))
        for move in [move for move, time in times.items() if time + 600 > now]:
            assert add_debit(later, rates, disruption(move), now=now) is later
            assert mark_spent(later, move, limits=rates, now=now) is later
            assert return_debit(later, move) == ALREADY_SPENT
    now = NOW + count + 661
    later = accepted(add_debit(found, rates, disruption("later"), now=now))
    assert mark_spent(later, "m0", limits=rates, now=now) == NO_DEBIT
    forgotten = accepted(add_debit(later, rates, disruption("m0"), now=now))
    assert [one.move for one in debits(forgotten)] == ["later", "m0"]
    (window,) = list_windows(forgotten, rates, disruption("new"), now=now)
    assert window.used == count + 2


def test_moves_that_are_not_known_any_more_are_dropped_with_the_next_one() -> None:
    found = start_ledger()
    for number in range(30):
        now = NOW + number * MINUTE
        found = accepted(add_debit(found, limits(), disruption(f"m{number}"), now=now))
        found = accepted(mark_spent(found, f"m{number}", limits=limits(), now=now))
    known = found.status.spent_moves or ()
    assert [move for group in known for move in group.moves.split()] == [f"m{n}" for n in range(20, 30)]
    assert known[-1].until == write_micro_time(NOW + 29 * MINUTE + 600)


def test_a_folded_debit_whose_move_was_not_known_becomes_known() -> None:
    """An older version has marked it."""
    many = (debit(f"m{number}", ago=60) for number in range(MOST_DEBITS))
    found = prune_debits(ledger(*many), DEFAULT, now=NOW)
    assert len(debits(found)) < 100
    assert return_debit(found, "m0") == ALREADY_SPENT


def test_a_wrong_clock_holds_neither_slots_nor_known_moves_for_longer() -> None:
    ahead = write_micro_time(NOW + DAY)
    status = LedgerStatus(slots=(LedgerSlot(ahead, 3),), spent_moves=(SpentMoves(ahead, "m1 m2"),))
    found = correct_debits(replace(start_ledger(), status=status), DEFAULT, now=NOW)
    assert [one.time for one in slots(found)] == [write_micro_time(NOW + 5)]
    assert [one.until for one in found.status.spent_moves or ()] == [write_micro_time(NOW + 605)]
    assert correct_debits(found, DEFAULT, now=NOW) is found
    (window,) = list_windows(found, DEFAULT, disruption("new"), now=NOW)
    assert (window.used, window.opens_at) == (3, NOW + 5)


def test_a_longer_period_that_is_configured_later_begins_with_what_is_left() -> None:
    short, long = limits("9 per 10m", "9 per 10m"), limits("9 per 1h", "9 per 10m", "3 per 1h")
    folded = prune_debits(ledger(debit("m1", ago=2000), debit("m2", ago=601)), short, now=NOW)
    assert not list(list_gaps(folded, short, now=NOW))
    cluster, workload = list_gaps(folded, long, now=NOW)
    told = "does not count disruptions up to 2026-11-18T11"
    assert cluster.startswith(f"the rate 9 per 3600s {told}:26:40")
    assert workload.startswith(f"the rate 3 per 3600s {told}:49:59")
    assert len(list(list_gaps(folded, long, now=NOW + 1600))) == 1
    assert not list(list_gaps(folded, long, now=NOW + 3000))


HAND, DAEMON = limits("10 per 10m"), limits("10 per 10m", "9 per 1h", "3 per 24h")


def move_once(found: MoveLedger, rates: DisruptionLimits, move: str, at: float) -> MoveLedger:
    added = accepted(add_debit(found, rates, disruption(move), now=at))
    return accepted(mark_spent(added, move, limits=rates, now=at))


def test_a_leader_with_shorter_rates_forgets_nothing_that_those_of_another_count() -> None:
    found = move_once(start_ledger(), DAEMON, "m1", NOW)
    for hour in range(1, 24):
        found = move_once(found, HAND, f"by-hand-{hour}", NOW + hour * HOUR)
    refused = refuse_disruption(found, DAEMON, disruption("m2"), now=NOW + 23.5 * HOUR)
    assert refused
    assert (refused.rule, refused.until) == ("WorkloadRate", NOW + (21 + 24) * HOUR + 5)
    assert not list(list_gaps(found, DAEMON, now=NOW + 23.5 * HOUR))


def test_a_period_that_nobody_has_is_given_up_when_all_that_it_counts_is_over() -> None:
    found = move_once(start_ledger(), DAEMON, "m1", NOW)
    day = 24 * HOUR + 5
    assert [(each.scope, each.seconds, each.until) for each in found.status.periods or ()] == [
        ("cluster", 605, write_micro_time(NOW + 605 + 60.5)),
        ("namespace", 3605, write_micro_time(NOW + 3605 + 360.5)),
        ("workload", 86405, write_micro_time(NOW + day * 1.1)),
    ]
    assert move_once(found, DAEMON, "m2", NOW + 60).status.periods == found.status.periods
    later = move_once(found, HAND, "m2", NOW + 1.05 * day)
    assert [each.seconds for each in later.status.periods or ()] == [605, 86405]
    latest = move_once(found, HAND, "m2", NOW + 1.2 * day)
    assert [each.seconds for each in latest.status.periods or ()] == [605]


def test_periods_that_are_written_by_a_wrong_clock_or_are_no_periods_hold_nothing() -> None:
    far = write_micro_time(NOW + 1000 * HOUR)
    wrong = (KeptPeriod("cluster", 7205, far), KeptPeriod("node", 9005, far), KeptPeriod("cluster", 1, far))
    found = replace(ledger(debit("m0", ago=HOUR)), status=LedgerStatus(None, periods=wrong))
    later = move_once(found, HAND, "m1", NOW)
    assert [(each.scope, each.seconds) for each in later.status.periods or ()] == [
        ("cluster", 1),
        ("cluster", 605),
        ("cluster", 7205),
    ]
    assert [each.seconds for each in move_once(later, HAND, "m2", NOW + 3 * HOUR).status.periods or ()] == [
        605
    ]


def test_of_too_many_periods_the_longest_stay() -> None:
    until = write_micro_time(NOW + 100)
    many = tuple(KeptPeriod("cluster", 10_000 + number, until) for number in range(MOST_PERIODS))
    kept = move_once(replace(start_ledger(), status=LedgerStatus(periods=many)), DAEMON, "m1", NOW)
    assert len(kept.status.periods or ()) == MOST_PERIODS
    assert min(each.seconds for each in kept.status.periods or ()) == 10_001


def test_names_make_room_as_soon_as_no_rate_counts_them() -> None:
    keys = " ".join(f"{number:07}" for number in range(MOST_BYTES // 8))
    slot = LedgerSlot(write_micro_time(NOW - 2 * HOUR), MOST_BYTES // 8, "", keys)
    found = replace(ledger(), status=LedgerStatus(slots=(slot,)))
    day = limits("500000 per 24h", workload="1 per 3h")
    refused = add_debit(found, day, disruption(), now=NOW)
    assert isinstance(refused, Refused)
    assert (refused.rule, refused.until) == ("LedgerFull", NOW + HOUR + 5)
    assert add_debit(found, day, disruption(), now=NOW + HOUR + 4) == refused
    kept = accepted(add_debit(found, day, disruption(), now=NOW + HOUR + 5))
    assert [(one.count, one.workloads) for one in kept.status.slots or ()] == [(MOST_BYTES // 8, "")]


def test_what_has_happened_is_counted_though_its_debit_is_gone() -> None:
    counted = count_disruption(start_ledger(), disruption(), DEFAULT, now=NOW + 30, at=NOW)
    assert [(one.state, one.time) for one in debits(counted)] == [
        (DebitState.SPENT, write_micro_time(NOW + 1))
    ]
    assert count_disruption(counted, disruption(), DEFAULT, now=NOW + 60) == counted
    marked = count_disruption(
        accepted(add_debit(start_ledger(), DEFAULT, disruption(), now=NOW)),
        disruption(),
        DEFAULT,
        now=NOW + 1,
    )
    assert [one.state for one in debits(marked)] == [DebitState.SPENT]


def test_what_has_happened_is_counted_at_once_in_a_slot_if_there_is_no_room() -> None:
    found = ledger(*(debit(f"m{n}", state=DebitState.TENTATIVE) for n in range(MOST_DEBITS)))
    counted = count_disruption(found, disruption("new"), limits("5000 per 1h"), now=NOW)
    assert debits(counted) == debits(found)
    assert [one.count for one in counted.status.slots or ()] == [1]
    assert return_debit(counted, "new") == ALREADY_SPENT


def test_a_ledger_is_bounded_by_its_tentative_debits() -> None:
    found = ledger(*(debit(f"m{n}", state=DebitState.TENTATIVE) for n in range(MOST_DEBITS)))

    answer = add_debit(found, limits("5000 per 1h"), disruption("new"), now=NOW)

    assert isinstance(answer, Refused)
    assert (answer.rule, answer.until) == ("LedgerFull", None)
    assert find_room(found, limits("5000 per 1h"), now=NOW) == answer
    fewer = ledger(*debits(found)[1:])
    assert find_room(fewer, limits("5000 per 1h"), now=NOW) == 1
    assert isinstance(add_debit(fewer, limits("5000 per 1h"), disruption("new"), now=NOW), MoveLedger)


def test_a_ledger_is_bounded_in_bytes() -> None:
    keys = " ".join(f"{number:07}" for number in range(MOST_BYTES // 8 - 784))
    slot = LedgerSlot(write_micro_time(NOW - MINUTE), MOST_BYTES // 8, "", keys)
    found = replace(ledger(), status=LedgerStatus((debit("m1"),), (slot,)))
    rates = limits("500000 per 1h", workload="1 per 1h")

    assert find_room(found, rates, now=NOW) == 1
    new = Disruption("m2", "shop", "uid-2", pod="p" * 253, policy="p" * 253, pool="p" * 300)
    kept = accepted(add_debit(found, rates, disruption("m2", workload_uid="uid-2"), now=NOW))
    assert [one.move for one in debits(kept)] == ["m1", "m2"]
    answer = add_debit(kept, rates, disruption("m3", workload_uid="uid-3"), now=NOW)
    assert isinstance(answer, MoveLedger), "what is spent is folded where there is no other room"
    assert [one.move for one in debits(answer)] == ["m2", "m3"]
    refused = add_debit(answer, rates, replace(new, move="m4", workload_uid="uid-4"), now=NOW)
    assert isinstance(refused, Refused)
    assert (refused.rule, refused.until) == ("LedgerFull", NOW + 3605 - MINUTE)


@pytest.mark.parametrize("pair", list(combinations(("1 per 1m", "2 per 5m", "0 per 1h"), 2)))
def test_several_rates_of_one_scope_must_all_be_kept(pair: tuple[str, str]) -> None:
    rates = tuple(rate for rate in map(Rate.from_text, pair) if rate)
    both = DisruptionLimits(cluster=rates)
    found = ledger(debit("m1", ago=1), debit("m2", ago=2))

    alone = [
        refuse_disruption(found, DisruptionLimits(cluster=(rate,)), disruption("m3"), now=NOW)
        for rate in rates
    ]

    assert refuse_disruption(found, both, disruption("m3"), now=NOW) in alone
    assert len(list_windows(found, both, disruption("m3"), now=NOW)) == 2
