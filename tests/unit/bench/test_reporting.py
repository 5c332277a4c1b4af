"""Figures become medians, ratios and verdicts."""

from bench.reading import reporting
from bench.reading.arms import BYTES, DEFAULT, OURS, STEPPED_OVER, Figures


def figures(*, cpu: float, after: float, **more: float) -> Figures:
    return {
        "pods": 10,
        "nodes": 1,
        "cpu": cpu,
        "wall": 1.0,
        "before": 1e6,
        "after": after,
        "peak": after,
        **more,
    }


MEASURED = {
    OURS: [figures(cpu=cpu, after=10e6) for cpu in (0.0003, 0.0001, 0.0002)],
    DEFAULT: [figures(cpu=0.0004, after=50e6, collected=20e6)],
}
DECODED = [figures(cpu=0.0002, after=301e6, snapshot=0.1, snapshot_cpu=0.09)]


def test_a_reader_is_described_by_medians_with_their_range() -> None:
    line = reporting.describe_readers(MEASURED).splitlines()[2]
    assert line.startswith(
        "| Reberth | 20 µs (10 to 30) | 1 s (1 to 1) | 1 MB (1 to 1) | 10 MB (10 to 10) |  |"
    )


def test_the_floor_is_the_cost_of_receiving_and_parsing() -> None:
    arms = {BYTES: [figures(cpu=0.00005, after=1e6)], STEPPED_OVER: [figures(cpu=0.00012, after=1e6)]}
    said = reporting.describe_floor({**MEASURED, **arms})
    assert said.startswith("Of Reberth's 20 µs a pod 5 are for receiving the bytes")
    assert "7 more are for msgspec" in said
    assert "These 12 µs are the floor" in said
    assert "The 8 above it" in said


def test_only_other_readers_have_ratios() -> None:
    arms = {BYTES: MEASURED[OURS], STEPPED_OVER: MEASURED[OURS]}
    assert reporting.describe_ratios({**MEASURED, **arms}) == reporting.describe_ratios(MEASURED)


def test_ratios_are_ours_divided_by_theirs() -> None:
    assert reporting.describe_ratios(MEASURED).splitlines()[2].endswith("| 0.50 | 0.20 | 0.50 | 0.20 |")


def test_a_missed_goal_is_reported() -> None:
    lines = reporting.describe_goals(MEASURED, DECODED, kept=1000).splitlines()[2:]
    verdicts = [line.removesuffix(" |").rpartition("| ")[2] for line in lines]
    assert verdicts == ["yes", "yes", "yes", "yes", "**no**", "yes", "**no**", "yes"]
