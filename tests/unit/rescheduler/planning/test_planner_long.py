"""No pod moves to and fro while the load drifts; planners with thresholds only never rest."""

from collections.abc import Callable
from random import Random

import pytest

from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support.rescheduler.drifting_cluster import (
    Fleet,
    Member,
    nodes,
    our_planner,
    run_cycles,
    threshold_planner,
)
from tests.support.rescheduler.plans import policy
from tests.support.resumable_rounds import Proof

SHORT, LONG = 60, 500
FIVE = dict.fromkeys(("cpu", "memory"), "5%")


def around_mean(level: int = 3) -> ReschedulerPolicy:
    return policy(
        level=level,
        limits={"perWorkload": None},
        protections={"lastReady": False, "minAge": "0s"},
        policies={"underUtilisedNodes": {"low": FIVE, "high": FIVE, "aroundMean": True}},
    )


def mixed_sizes() -> Fleet:
    """One pod of 64 Gi, which fills most of its node, and 144 of 1 Gi."""
    dice = Random(1)
    made = nodes(8, cpu="96", memory="96Gi", pods=200)
    small = [
        Member(f"small{number}", "small", f"n{dice.randrange(8):03}", cpu=1000, memory=1024)
        for number in range(144)
    ]
    return Fleet(made, [Member("large", "large", "n000", cpu=64000, memory=65536), *small])


def balanced_fleet() -> Fleet:
    """A fleet of 300 nodes that is in balance, of workloads with ten replicas each."""
    made = nodes(300, cpu="16", memory="64Gi")
    members = [
        Member(f"w{number // 10}r{number % 10}", f"w{number // 10}", f"n{number % 300:03}", 1000, 4096)
        for number in range(300 * 8)
    ]
    return Fleet(made, members)


def compare(make: Callable[[], Fleet], *, cycles: int, share: float, most: float) -> tuple[Fleet, Fleet]:
    """Run both planners over the same drift."""
    ours, theirs = make(), make()
    run_cycles(ours, our_planner(around_mean()), cycles=cycles, seed=7, share=share, most=most)
    run_cycles(theirs, threshold_planner(0.05, 0.05), cycles=cycles, seed=7, share=share, most=most)
    print(
        f"\n{make.__name__}, {cycles} cycles, drift up to {most:.0%}: "
        f"{ours.count_moves()} moves, {ours.count_returns()} returns; "
        f"thresholds alone: {theirs.count_moves()} moves, {theirs.count_returns()} returns"
    )
    return ours, theirs


LONG_CASES = ((mixed_sizes, 0.3, 0.5), (balanced_fleet, 0.05, 0.5), (balanced_fleet, 0.05, 0.9))


@pytest.mark.parametrize(
    ("make", "share", "most", "cycles"),
    [(mixed_sizes, 0.3, 0.5, SHORT), (balanced_fleet, 0.05, 0.9, SHORT // 4)],
)
def test_no_pod_goes_to_and_fro(make: Callable[[], Fleet], share: float, most: float, cycles: int) -> None:
    ours, theirs = compare(make, cycles=cycles, share=share, most=most)
    assert ours.count_returns() == 0
    assert ours.count_moves() < theirs.count_moves() / 2


@pytest.mark.soak
def test_no_pod_goes_to_and_fro_over_five_hundred_cycles() -> None:
    proof = Proof("planning-long")
    for number in proof.remaining(range(len(LONG_CASES))):
        make, share, most = LONG_CASES[number]
        ours, theirs = compare(make, cycles=LONG, share=share, most=most)
        assert ours.count_returns() == 0
        assert ours.count_moves() < theirs.count_moves() / 2
        assert theirs.count_returns() > 0
        proof.note([number])
