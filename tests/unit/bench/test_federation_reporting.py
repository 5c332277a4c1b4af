from collections import Counter
from pathlib import Path

import msgspec
import pytest

from bench.federation import keeping
from bench.federation.counting import count_all, count_bindings, count_forward, part_reports
from bench.federation.deciding import MEMBERS, decide_apart
from bench.federation.following import Moment, Run
from bench.federation.reporting import BURST, DECISIONS, MEMORY, REBALANCE, describe, describe_goals
from bench.reading.arms import Failed

CALLS = {
    "POST resourcebindings": 10,
    "PATCH resourcebindings/status": 10,
    "PATCH deployments": 10,
    "POST works": 20,
    "PATCH works/status": 7,
    "POST events": 20,
}
MOMENTS = {
    BURST: ("created", "scheduled", "present", "told"),
    REBALANCE: ("finished", "settled"),
    DECISIONS: ("all", "decided"),
}


def made(part: str, seconds: float, *, rate: int = 40, size: int = 10) -> Run:
    moments = {
        name: Moment(seconds * place, CALLS) for place, name in enumerate(MOMENTS.get(part, MOMENTS[BURST]))
    }
    return Run(part, size, rate, moments, cpu=1.5, resident=150_000_000)


def verdicts(*runs: Run) -> list[str]:
    return [line.rsplit("|", 2)[1].strip() for line in describe_goals(runs).splitlines()[2:]]


def test_reports_are_counted_apart_from_calls_that_workloads_wait_for() -> None:
    assert (count_all(CALLS), count_forward(CALLS), count_bindings(CALLS)) == (77, 50, 20)


def test_statuses_of_copies_are_counted_apart_from_those_of_clusters() -> None:
    parted = part_reports(Counter(CALLS), 4)
    assert (count_all(parted), count_forward(parted), count_bindings(parted)) == (77, 46, 16)
    assert part_reports(Counter(CALLS), 0) == CALLS


def test_each_part_has_its_goals() -> None:
    assert verdicts(made(BURST, 10)) == ["yes"] * 4
    assert verdicts(made(BURST, 6, rate=400)) == ["**no**"] * 2 + ["yes"] * 2
    assert verdicts(made(REBALANCE, 1), made(MEMORY, 1)) == ["yes"] * 3
    slow = msgspec.structs.replace(made(DECISIONS, 99), cpu=11)
    assert verdicts(made(DECISIONS, 99)) == ["yes"] * 2
    assert verdicts(slow) == ["**no**", "yes"]


def test_decisions_are_made_in_a_process_of_their_own() -> None:
    run = decide_apart(DECISIONS, size=70)
    assert (run.part, run.size, run.rate) == (DECISIONS, 70, MEMBERS)
    section = describe([run], conditions="Today.")
    assert "| 70 | 50 | 1 |" in section


def test_several_runs_have_one_line_for_each_moment() -> None:
    section = describe([made(BURST, 10), made(BURST, 12), made(BURST, 4, rate=400)], conditions="Today.")
    assert "| 40 | 2 | scheduled | 11 s (10 to 12) |" in section
    assert "| 400 | 1 | present | 8 s" in section
    assert section.count("Not measured.") == 3


def test_runs_are_put_down_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    assert keeping.read(file) == []
    runs = [made(BURST, 10), made(REBALANCE, 3)]
    for run in runs:
        keeping.put_down(file, run)
    assert keeping.read(file) == runs


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    file.write_text("{}\n")
    with pytest.raises(Failed, match="missing required field"):
        keeping.read(file)
