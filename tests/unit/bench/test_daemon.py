"""The figures of both programs are read the same way and described in a row."""

from bench.daemon.__main__ import describe, describe_starts
from bench.daemon.standing import NULL, OURS, Cost, Spent, Start, _read_ours, _read_theirs
from bench.planning.fleet import Fleet

PROCESS = "process_cpu_seconds_total 12.5\nprocess_resident_memory_bytes 3e+08\n"


def test_our_metrics_are_read() -> None:
    look = _read_ours(
        f'{PROCESS}reberth_rescheduler_cycles_total{{trigger="interval",result="planned"}} 3\n'
        "reberth_rescheduler_cycle_duration_seconds_sum 1.5\n"
        'reberth_rescheduler_plan_moves{mode="recommend"} 100\n'
    )
    assert look == (3, 1.5, 12.5, 3e8, 100)


def test_theirs_are_read_and_evictions_are_those_of_a_cycle() -> None:
    assert _read_theirs({}) is None
    assert _read_theirs(
        {
            "process_cpu_seconds_total": 12.5,
            "process_resident_memory_bytes": 3e8,
            "descheduler_descheduler_loop_duration_seconds_count": 4,
            "descheduler_descheduler_loop_duration_seconds_sum": 2.0,
            "descheduler_pods_evicted_total": 400,
        }
    ) == (4, 2.0, 12.5, 3e8, 100)


def test_a_cost_is_described_in_a_row() -> None:
    cost = Cost(Spent(10, 8, 120), Spent(1.25, 1.5, 2.4, 100), 3e8, 4e8, 0.31)
    assert describe({OURS: cost}).splitlines()[-1] == (
        "| Reberth | 10.0 s | 8.0 s | 1.25 s | 1.50 s | 100 | 300 MB | 400 MB | 120 | 2.4 | 0.31 s |"
    )


def test_a_start_is_divided_by_the_null_client_of_its_round() -> None:
    nulls = [Start(10, 2, 5e7), Start(20, 3, 5e7), Start(40, 4, 5e7)]
    ours = [Start(11, 8, 2e8), Start(24, 9, 2.5e8), Start(80, 20, 3e8)]
    assert describe_starts({NULL: nulls, OURS: ours}).splitlines()[2:] == [
        "| null client | 20 s (10 to 40) | 3 s (2 to 4) | 50 MB (50 to 50) |",
        "| Reberth | 24 s (11 to 80) | 9 s (8 to 20) | 250 MB (200 to 300) |",
        "| Reberth / null client | 1.2 times (1.1 to 2) | 4 times (3 to 5) | 5 times (4 to 6) |",
    ]


def test_a_fleet_with_a_share_of_the_pods_is_as_uneven() -> None:
    whole, half = Fleet(200), Fleet(200, share=0.5)
    assert len(half.places) == 200 // 10 * (22 + 5 + 8 * 14)
    assert len(whole.places) == 200 * 27.5
