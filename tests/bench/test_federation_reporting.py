from collections import Counter

from bench.federation.bursting import Burst, Moment
from bench.federation.counting import count_forward
from bench.federation.reporting import count_to_schedule, describe_bursts, describe_calls, describe_goals

CALLS = Counter(
    {
        "POST resourcebindings": 10,
        "PATCH resourcebindings/status": 10,
        "PATCH deployments": 10,
        "POST works": 20,
        "PATCH works/status": 7,
        "POST events": 20,
    }
)


def made(seconds: float) -> Burst:
    moments = [Moment(seconds * part, CALLS) for part in range(4)]
    return Burst(*moments, cpu=1.5, resident=150_000_000)


def test_reports_are_told_from_what_workloads_wait_for() -> None:
    assert count_forward(CALLS) == 50
    assert count_to_schedule(made(1)) == 20


def test_each_allowance_has_its_lines_and_goals() -> None:
    bursts = {40: [made(10)], 400: [made(6)]}
    lines = describe_bursts(bursts, deployments=10).splitlines()
    assert len(lines) == 2 + 8
    assert describe_calls(bursts, deployments=10).count("2.00") == 4
    goals = describe_goals(bursts, made(1), deployments=10, bindings=3000).splitlines()[2:]
    assert [line.rsplit("|", 2)[1].strip() for line in goals] == ["yes"] * 4 + ["**no**"] * 2 + ["yes"] * 3
