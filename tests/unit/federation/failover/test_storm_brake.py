import random

import pytest

from federation.failover.storm_brake import StormBrake, StormRules
from federation.objects.names import Key


def key(number: int) -> Key:
    return Key("work.karmada.io/v1alpha2", "ResourceBinding", "default", f"w{number}")


def brake(*clusters: str | None, well: int = 0) -> StormBrake:
    """Workloads that each fail in a cluster, and some that are well."""
    made = StormBrake(StormRules())
    for number, cluster in enumerate((*clusters, *([None] * well))):
        made.observe(key(number), {cluster} if cluster else ())
    return made


@pytest.mark.parametrize(
    ("failing", "well", "is_on"), [(9, 0, False), (10, 0, True), (11, 9, False), (12, 9, True), (2, 0, False)]
)
def test_a_storm_is_most_of_all_workloads_and_at_least_ten(failing: int, well: int, *, is_on: bool) -> None:
    assert brake(*("m1", "m2") * 50, well=0).is_on
    clusters = [f"m{number % 3}" for number in range(failing)]
    found = brake(*clusters, well=well)
    assert found.is_on is is_on
    assert found.holds({"m0"}) is is_on


def test_the_failure_of_one_cluster_is_no_storm_for_what_is_there() -> None:
    found = brake(*["m1"] * 9, "m2", "m2")
    assert found.is_on
    assert not found.holds({"m1"})
    assert found.holds({"m2"})
    assert not found.holds({"m1", "m2"})
    assert brake(*["m1"] * 8, "m2", "m2").holds({"m1"}), "80 % are not more than 80 %"


def test_it_ends_when_workloads_are_well_again_or_gone() -> None:
    found = brake(*["m1", "m2"] * 6)
    found.observe(key(0), ())
    assert found.is_on
    for number in range(1, 4):
        found.observe(key(number), None)
    assert not found.is_on


@pytest.mark.parametrize("seed", range(20))
def test_its_counts_are_those_of_what_it_was_told_last(seed: int) -> None:
    dice, told, found = random.Random(seed), dict[int, tuple[str, ...] | None](), StormBrake(StormRules())
    for _ in range(300):
        number = dice.randrange(20)
        told[number] = dice.choice([None, (), ("m1",), ("m2",), ("m1", "m2")])
        found.observe(key(number), told[number])
    known = [each for each in told.values() if each is not None]
    assert (found.known, found.failing) == (len(known), sum(bool(each) for each in known))
    fresh = StormBrake(StormRules())
    for number, clusters in told.items():
        fresh.observe(key(number), clusters)
    assert [fresh.holds({name}) for name in ("m1", "m2", "m3")] == [
        found.holds({name}) for name in ("m1", "m2", "m3")
    ]
