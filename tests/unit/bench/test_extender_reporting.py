"""Figures of bursts and calls become tables and verdicts."""

from bench.extender import reporting
from bench.extender.arms import DUTIFUL, FLOOR, NONE, OURS, PEER
from bench.extender.asking import VERBS, Seconds
from bench.extender.reporting import Growth
from bench.reading.arms import Figures


def figures(*, rate: float, algorithm: float = 0.003, **more: float) -> Figures:
    return {"rate": rate, "algorithm": algorithm, **more}


def ours(*, rate: float, algorithm: float = 0.003, resident: float = 130e6) -> Figures:
    return figures(rate=rate, algorithm=algorithm, cpu=0.0003, resident=resident)


def calls(*, slow: float) -> Seconds:
    """Those of ours, in milliseconds, where those of Go take one; three in a hundred are slow."""
    taken = {OURS: [0.001] * 97 + [slow / 1e3] * 3, PEER: [0.001] * 100}
    return {arm: dict.fromkeys(VERBS, each) for arm, each in taken.items()}


def verdicts(table: str) -> list[str]:
    return [line.removesuffix(" |").rpartition("| ")[2] for line in table.splitlines()[2:]]


def test_an_arm_is_described_by_medians_with_their_range() -> None:
    bursts = {NONE: [figures(rate=rate) for rate in (300, 100, 200)], OURS: [ours(rate=100)]}
    without, with_ours = reporting.describe_bursts(bursts).splitlines()[2:]
    assert without == "| no extender | 200 /s (100 to 300) | 3 ms (3 to 3) |  |  |"
    assert with_ours.endswith("| 0.3 ms (0.3 to 0.3) | 130 MB (130 to 130) |")


def test_calls_are_described_by_percentiles_and_ratios() -> None:
    first, *_, last = reporting.describe_calls({5_000: calls(slow=3)}).splitlines()[2:]
    assert first == "| 5,000 | `/avoid/filter` | 1 ms | 3 ms | 1 ms | 1 ms | 1.00 | 3.00 |"
    assert last == "| 5,000 | all three | 1 ms | 3 ms | 1 ms | 1 ms | 1.00 | 3.00 |"


def test_the_bursts_of_one_round_are_compared_with_each_other() -> None:
    bursts = {
        FLOOR: [figures(rate=rate) for rate in (100, 10)],
        OURS: [ours(rate=rate) for rate in (96, 9.8)],
        PEER: [figures(rate=rate) for rate in (100, 9)],
    }
    lines = reporting.describe_goals(bursts, {}, Growth(0, 900, 1)).splitlines()[2:4]
    assert lines == [
        "| pods per second, against bare asyncio | at least 0.95 times | 0.97 times | yes |",
        "| pods per second, against Go | at least 1 times | 1.024 times | yes |",
    ]


def test_a_missed_goal_is_reported() -> None:
    bursts = {
        FLOOR: [figures(rate=100, algorithm=0.0025)],
        OURS: [ours(rate=94, resident=141e6)],
        PEER: [figures(rate=94)],
    }
    table = reporting.describe_goals(bursts, {5_000: calls(slow=3)}, Growth(0, 10_010, 10))
    assert verdicts(table) == ["**no**", "yes", "**no**", "yes", "yes", "**no**", "**no**", "**no**"]


def test_the_cost_of_the_cache_is_reported_beside_the_goals() -> None:
    bursts = {
        FLOOR: [figures(rate=100, algorithm=0.01)],
        DUTIFUL: [figures(rate=90, algorithm=0.0112, cpu=0.00024)],
        OURS: [ours(rate=80, algorithm=0.0124)],
    }
    said = " ".join(reporting.describe_duties(bursts).split())
    assert "reached 0.90 times the pods per second of *bare asyncio*, and added 0.40 ms" in said
    assert "Reberth reached 0.80 times, and added 0.80 ms" in said
    assert "80% are what *asyncio with a mirror* takes" in said
