"""Which workloads fail back, and when."""

from typing import Any

import pytest

from federation.api import FailbackStatus, ResourceBinding
from federation.rebalancing.failback import (
    NoAction,
    RecordGroup,
    TriggerFailback,
    decide_failback,
    find_home,
    is_returning,
    wants_failback,
)
from federation.scheduling import Fleet
from tests.support.federation.clusters import AGGREGATED, DYNAMIC, cluster, groups, rooms
from tests.support.federation.rebalancers import T, at, bound

THREE = groups(first=["m1"], second=["m2"], third=["m3"])
WANTS = {"failover": {"failback": {"stabilizationSeconds": 60}}}


def away(
    group: str = "second", *, noted: tuple[str, float] | None = None, placement: Any = THREE, **more: Any
) -> ResourceBinding:
    """In another group than the first, and asking to come home."""
    status = {"schedulerObservingAffinityName": group}
    if noted:
        status |= {"failback": {"affinityName": noted[0], "since": at(noted[1])}}  # type: ignore[dict-item] # any JSON
    where = {"first": "m1", "second": "m2", "third": "m3"}[group]
    return bound({where: 3}, last=-900, placement=placement, status=status, **{**WANTS, **more})


ALL = rooms(9, 9, 9)


@pytest.mark.parametrize(
    ("one", "fleet", "home"),
    [
        pytest.param(away(), ALL, "first", id="home has recovered"),
        pytest.param(
            away("third", placement={**THREE, **DYNAMIC}),
            [cluster("m1", 1), *ALL[1:]],
            "second",
            id="half of the way",
        ),
        pytest.param(away(), [cluster("m1", 2), *ALL[1:]], None, id="home has too little room"),
        pytest.param(
            away(), [cluster("m1", taints=["a=b:NoSchedule"]), *ALL[1:]], None, id="home is tainted"
        ),
        pytest.param(away(), ALL[1:], None, id="home is not there"),
        pytest.param(away("first"), ALL, None, id="it is at home"),
        pytest.param(away(placement={**THREE, **AGGREGATED}), ALL, "first", id="divided by room"),
        pytest.param(away(), [], None, id="there is nothing"),
    ],
)
def test_failback_needs_an_earlier_group_with_room_for_all(
    one: ResourceBinding, fleet: list[Any], home: str | None
) -> None:
    assert find_home(one, Fleet(fleet), now=T) == home


@pytest.mark.parametrize(
    ("one", "fleet", "step"),
    [
        (away(), ALL, RecordGroup(FailbackStatus("first", at(0)))),
        (away(noted=("first", -59)), ALL, NoAction(1)),
        (away(noted=("first", -60)), ALL, TriggerFailback("first")),
        (away("third", noted=("second", -900)), ALL, RecordGroup(FailbackStatus("first", at(0)))),
        (away(noted=("first", -900)), ALL[1:], RecordGroup(None)),
        (away("first", noted=("first", -900)), ALL, RecordGroup(None)),
        (away(), ALL[1:], NoAction()),
        (away(failover={}), ALL, NoAction()),
        (away(noted=("first", -900), trigger=-1), ALL, NoAction()),
        (away(noted=("first", -900), handover={"returns": 1, "returnedAt": at(-119)}), ALL, NoAction(1)),
        (
            away(noted=("first", -900), handover={"returns": 2, "returnedAt": at(-240)}),
            ALL,
            TriggerFailback("first"),
        ),
        (
            away(noted=("first", -900), handover={"clusters": [{"name": "m1", "replicas": 3}]}),
            ALL,
            NoAction(),
        ),
    ],
)
def test_a_workload_fails_back_when_its_group_had_capacity_for_a_while(
    one: ResourceBinding, fleet: list[Any], step: object
) -> None:
    assert decide_failback(one, Fleet(fleet), now=T) == step


def test_a_workload_that_was_never_scheduled_does_not_fail_back() -> None:
    new = bound({"m2": 3}, placement=THREE, status={"schedulerObservingAffinityName": "second"}, **WANTS)
    assert find_home(new, Fleet(ALL), now=T) is None


def test_failback_needs_the_setting_and_several_groups() -> None:
    assert wants_failback(away())
    assert not wants_failback(away(failover={}))
    assert not wants_failback(bound({"m2": 3}, placement=groups(only=["m2"]), **WANTS))
    assert not wants_failback(bound({"m2": 3}, **WANTS))
    assert not is_returning(away())
    assert is_returning(away(trigger=-1))
