import pytest

from federation.objects.names import Key
from federation.propagation.reservations import Reservations
from reberth.values import errors
from reberth.values.quantity import UNIT
from tests.support.federation.objects import NOW, claimed_binding, given

KEY = Key("work.karmada.io/v1alpha2", "ResourceBinding", "default", "web-deployment")
NEEDS = {"replicaRequirements": {"resourceRequest": {"cpu": "500m"}}}


def held(reservations: Reservations, now: float = NOW) -> dict[str, float]:
    """Give what is held of the member, in whole units."""
    taken = reservations.taken(now=now).get("m1", {})
    return {name: amount / UNIT for name, amount in taken.items() if amount}


def reserved() -> Reservations:
    reservations = Reservations(lasting=100, reported_within=10)
    reservations.reserve(KEY, claimed_binding(**NEEDS), {"m1": 2}, now=NOW)
    return reservations


def test_a_reservation_holds_capacity_until_it_expires() -> None:
    reservations = reserved()
    assert held(reservations, NOW + 99) == {"cpu": 1, "pods": 2}
    assert held(reservations, NOW + 100) == {}


def test_only_added_replicas_are_reserved() -> None:
    reservations = Reservations(lasting=100, reported_within=10)
    reservations.reserve(KEY, claimed_binding(clusters=given(m1=2), **NEEDS), {"m1": 3}, now=NOW)
    assert held(reservations) == {"cpu": 0.5, "pods": 1}
    reservations.reserve(KEY, claimed_binding(clusters=given(m1=3), **NEEDS), {"m1": 1}, now=NOW)
    assert held(reservations) == {}


def test_a_copy_that_was_applied_is_held_no_longer_than_its_report_takes() -> None:
    reservations = reserved()
    there = claimed_binding(status={"aggregatedStatus": [{"clusterName": "m1", "applied": True}]})
    reservations.observe(KEY, claimed_binding(), now=NOW + 1)
    reservations.observe(KEY, there, now=NOW + 5)
    reservations.observe(KEY, there, now=NOW + 14)
    assert held(reservations, NOW + 14) == {"cpu": 1, "pods": 2}
    assert held(reservations, NOW + 15) == {}


def test_a_binding_that_is_gone_holds_nothing() -> None:
    reservations = reserved()
    reservations.observe(KEY, None, now=NOW)
    reservations.observe(KEY, None, now=NOW)
    assert held(reservations) == {}


def test_reservations_of_another_process_are_restored_until_applied() -> None:
    left = claimed_binding(clusters=given(m1=3), **NEEDS)
    reservations = Reservations(lasting=100, reported_within=10)
    reservations.restore(KEY, left, now=NOW)
    assert held(reservations, NOW + 99) == {"cpu": 1.5, "pods": 3}
    assert held(reservations, NOW + 100) == {}
    there = claimed_binding(
        clusters=given(m1=3), status={"aggregatedStatus": [{"clusterName": "m1", "applied": True}]}, **NEEDS
    )
    reservations.restore(KEY, there, now=NOW + 200)
    assert held(reservations, NOW + 200) == {}


@pytest.mark.parametrize("amount", ["much", "1" * 1_000, "1e1.5"])
def test_an_amount_that_cannot_be_read_is_not_reserved(amount: str) -> None:
    odd = claimed_binding(clusters=given(m1=3), replicaRequirements={"resourceRequest": {"cpu": amount}})
    reservations = Reservations(lasting=100, reported_within=10)
    reservations.restore(KEY, odd, now=NOW)
    assert held(reservations) == {"pods": 3}
    reservations.reserve(KEY, odd, {"m1": 5}, now=NOW)
    assert held(reservations) == {"pods": 5}


def test_what_a_binding_holds_beyond_its_replicas_does_not_stand_against_it() -> None:
    reservations = Reservations(lasting=100, reported_within=10)
    two = claimed_binding(clusters=given(m1=2), **NEEDS)
    reservations.reserve(KEY, claimed_binding(**NEEDS), {"m1": 2}, now=NOW)
    reservations.reserve(KEY, two, {"m1": 5}, now=NOW)
    assert held(reservations) == {"cpu": 2.5, "pods": 5}
    against = reservations.taken_by_others(KEY, two, now=NOW)["m1"]
    assert against == {"cpu": UNIT, "pods": 2 * UNIT}, "its replicas count there as its own"
    other = reservations.taken_by_others(KEY._replace(name="other"), two, now=NOW)["m1"]
    assert other["pods"] == 5 * UNIT
    reservations.reserve(KEY, two, {"m1": 5}, now=NOW)
    assert held(reservations) == {"cpu": 2.5, "pods": 5}, "it is set, not added"


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (errors.Conflict, {}),
        (errors.Unreachable, {}),
        (errors.Unanswered, {"cpu": 1, "pods": 2}),
        (errors.ServerFault, {"cpu": 1, "pods": 2}),
    ],
)
def test_a_write_that_failed_gives_its_reservation_back(
    error: type[errors.ApiError], left: dict[str, float]
) -> None:
    reservations = Reservations(lasting=100, reported_within=10)
    with pytest.raises(error), reservations.reserving(KEY, claimed_binding(**NEEDS), {"m1": 2}, now=NOW):
        raise error("patch", "no")
    assert held(reservations) == left


def test_a_write_that_failed_leaves_what_was_held_before() -> None:
    reservations = reserved()
    two = claimed_binding(clusters=given(m1=2), **NEEDS)
    with pytest.raises(errors.Conflict), reservations.reserving(KEY, two, {"m1": 0, "m2": 9}, now=NOW):
        raise errors.Conflict("patch", "no")
    assert held(reservations) == {"cpu": 1, "pods": 2}
    assert not any(reservations.taken(now=NOW).get("m2", {}).values())


def test_a_copy_knows_the_same_and_is_changed_apart() -> None:
    reservations = reserved()
    other = reservations.copy()
    assert held(other) == held(reservations) == {"cpu": 1, "pods": 2}
    other.reserve(KEY._replace(name="other"), claimed_binding(**NEEDS), {"m1": 4}, now=NOW)
    assert held(reservations) == {"cpu": 1, "pods": 2}
    assert held(other) == {"cpu": 3, "pods": 6}
    assert held(other, NOW + 100) == {}
