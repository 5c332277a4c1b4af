"""Old copies stay until new ones are ready."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from federation.api import ResourceBinding, TargetCluster
from federation.rebalancing.handover import (
    Hold,
    Ready,
    Return,
    Wait,
    kept_replicas,
    last_return,
    review_handover,
    write_handover,
    write_handover_end,
    write_return,
)
from federation.rebalancing.replicas import count_moved, is_ready, write_replicas
from federation.scheduling import Fleet
from federation.scheduling.demand import SCHEDULE_NOTE
from reberth.values.object_error import ObjectError
from tests.support.federation.clusters import DYNAMIC, binding, rooms
from tests.support.federation.rebalancers import T, at, bound, well

FLEET = Fleet(rooms(9, 9, 9))


def clusters(counts: Mapping[str, int]) -> tuple[TargetCluster, ...]:
    return tuple(TargetCluster(name, count) for name, count in counts.items())


def kept(
    had: Mapping[str, int], wanted: Mapping[str, int], holding: Mapping[str, int] | None = None, **more: Any
) -> dict[str, Any]:
    held = [{"name": name, "replicas": count} for name, count in (holding or {}).items()]
    handover = {"timeoutSeconds": 600, **({"clusters": held} if held else {})}
    one = binding(4, at=had, handover=handover, **more)
    found = write_handover(one, clusters(wanted), now=T)
    return {each["name"]: each["replicas"] for each in found["handover"]["clusters"] or ()} if found else {}


@pytest.mark.parametrize(
    ("had", "wanted", "holding", "stays"),
    [
        ({"m2": 4}, {"m1": 4}, {}, {"m2": 4}),
        ({"m2": 4}, {"m1": 2, "m2": 2}, {}, {"m2": 4}),
        ({"m1": 1, "m2": 3}, {"m1": 2, "m2": 2}, {}, {"m2": 3}),
        ({"m1": 2}, {"m1": 2, "m2": 2}, {}, {}),
        ({"m1": 4}, {"m2": 4}, {"m2": 4}, {"m1": 4}),
        ({"m1": 4}, {"m3": 4}, {"m2": 4}, {"m1": 4, "m2": 4}),
        ({"m1": 4}, {"m2": 4, "m1": 4}, {"m2": 4}, {}),
    ],
)
def test_a_cluster_that_loses_replicas_keeps_them_for_now(
    had: dict[str, int], wanted: dict[str, int], holding: dict[str, int], stays: dict[str, int]
) -> None:
    assert kept(had, wanted, holding) == stays


COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 5))


@given(had=COUNTS, wanted=COUNTS, holding=COUNTS)
def test_nowhere_are_fewer_replicas_than_before(
    had: dict[str, int], wanted: dict[str, int], holding: dict[str, int]
) -> None:
    stays = kept(had, wanted, holding)
    for name, count in (*had.items(), *holding.items()):
        assert max(stays.get(name, 0), wanted.get(name, 0)) >= count
        assert name in stays or name in wanted


def test_without_a_handover_and_for_jobs_nothing_is_kept() -> None:
    assert not write_handover(bound({"m2": 4}), clusters({"m1": 4}), now=T)
    assert not write_handover(bound({"m2": 4}, handover={}), clusters({"m1": 4}), now=T)
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "once"}
    assert not kept({"m2": 4}, {"m1": 4}, resource=job)
    assert not kept_replicas(bound({}, handover={"clusters": [{"name": "m2"}]}, resource=job))


def handing_over(
    status: Mapping[str, Any], *, until: str = at(600), origin: Mapping[str, int] | None = None, **more: Any
) -> ResourceBinding:
    handover = {
        "timeoutSeconds": 600,
        "clusters": [{"name": "m2", "replicas": 4}],
        "until": until,
        "origin": [{"name": name, "replicas": count} for name, count in (origin or {"m2": 4}).items()],
    }
    return bound({"m1": 4}, handover=handover, status=status, **{**DIVIDED, **more})


DIVIDED = {"placement": DYNAMIC, "applied": DYNAMIC}
ONLY_M1 = {"clusterAffinity": {"clusterNames": ["m1"]}}
LET_GO = {"failover": {"handover": {"onTimeout": "LetGo"}}}
OVER = at(0)


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (handing_over(well(m1=4)), Ready(in_time=True)),
        (handing_over(well(m1=3)), Wait(600)),
        (handing_over({}), Wait(600)),
        (handing_over(well(m1=3, m2=4), until=OVER), Return(clusters({"m2": 4}))),
        (handing_over(well(m1=4, m2=4), until=OVER), Ready(in_time=True)),
        (handing_over(well(m1=3, m2=4), until=OVER, **LET_GO), Ready(in_time=False)),
        (handing_over(well(m1=3, m2=2), until=OVER), Hold()),
        (handing_over(well(m1=3), until=OVER), Hold()),
        (handing_over(well(m1=3, m2=0), until=OVER), Ready(in_time=False)),
        (handing_over(well(m2=0)), Wait(600)),
        (handing_over(well(m1=3, m2=4), until=OVER, placement=ONLY_M1, applied=ONLY_M1), Hold()),
        (handing_over(well(m1=4), trigger=5, last=4), None),
        (handing_over(well(m1=3), trigger=5, last=5), Wait(600)),
        (bound({"m1": 4}, status=well(m1=4)), None),
    ],
)
def test_healthy_old_copies_go_only_when_new_ones_are_ready(one: ResourceBinding, wanted: object) -> None:
    assert review_handover(one, lambda: FLEET, now=T) == wanted


def test_clusters_that_gain_nothing_need_not_be_ready() -> None:
    status = well(m1=4)
    one = bound(
        {"m1": 4, "m3": 4},
        handover={
            "clusters": [{"name": "m2", "replicas": 4}],
            "origin": [{"name": "m2", "replicas": 4}, {"name": "m3", "replicas": 4}],
        },
        status=status,
    )
    assert review_handover(one, lambda: FLEET, now=T) == Ready(in_time=True)


def test_without_a_deadline_the_timeout_is_over_and_an_unreadable_one_is_named() -> None:
    one = bound({"m1": 4}, handover={"clusters": [{"name": "m2", "replicas": 4}]}, **LET_GO)
    assert review_handover(one, lambda: FLEET, now=T) == Ready(in_time=False)
    with pytest.raises(ObjectError, match=r"spec\.handover\.until"):
        review_handover(handing_over({}, until="soon"), lambda: FLEET, now=T)


def test_a_handover_remembers_where_the_workload_was_until_it_ends() -> None:
    status = {"schedulerObservingAffinityName": "backup"}
    one = binding(4, at={"m2": 4, "m3": 1}, handover={"timeoutSeconds": 60}, status=status)
    first = write_handover(one, clusters({"m1": 4}), now=T, without={"m3"})["handover"]
    assert first["origin"] == first["clusters"] == [{"name": "m2", "replicas": 4}]
    assert first["originAffinity"] == "backup"
    later = binding(4, at={"m1": 4}, handover={"timeoutSeconds": 60, **first})
    second = write_handover(later, clusters({"m3": 4}), now=T)["handover"]
    assert [each["name"] for each in second["clusters"]] == ["m1", "m2"]
    assert (second["origin"], second["originAffinity"]) == (first["origin"], "backup")


def test_a_policy_that_breaks_first_keeps_nothing() -> None:
    assert not kept({"m2": 4}, {"m1": 4}, failover={"handover": {"mode": "BreakFirst"}})


def test_a_return_is_noted_like_a_decision_and_counted() -> None:
    one = handing_over(well(m1=3, m2=4), until=OVER, trigger=-60, last=-60)
    patch = write_return(one, Return(clusters({"m2": 4})), now=T)
    back = patch["spec"]
    assert back["clusters"] == [{"name": "m2", "replicas": 4}]
    assert (back["handover"]["clusters"], back["handover"]["returns"]) == (None, 1)
    note = msgspec.json.decode(patch["metadata"]["annotations"][SCHEDULE_NOTE])
    assert note == {"time": at(0), "wish": at(-60)}
    returned = bound({"m2": 4}, handover={"returns": 1, "returnedAt": at(0)})
    assert last_return(returned) == T
    assert last_return(one) is None


def test_ending_a_handover_keeps_its_timeout_for_the_next() -> None:
    one = handing_over({})
    ended = write_handover_end(replace(one, metadata=replace(one.metadata, resource_version="9")))
    assert ended["metadata"] == {"resourceVersion": "9"}
    assert "timeoutSeconds" not in ended["spec"]["handover"]
    assert set(ended["spec"]["handover"].values()) == {None}


@pytest.mark.parametrize(
    ("change", "ready"),
    [
        ({}, True),
        ({"applied": False}, False),
        ({"health": "Unhealthy"}, False),
        ({"status": {"availableReplicas": 1}}, False),
        ({"status": {"availableReplicas": "all"}}, False),
        ({"clusterName": "m9"}, False),
    ],
)
def test_a_copy_is_ready_when_it_is_healthy_with_all_its_replicas(
    change: dict[str, Any], *, ready: bool
) -> None:
    (copy,) = well(m1=2)["aggregatedStatus"]
    assert is_ready(bound({"m1": 2}, status={"aggregatedStatus": [{**copy, **change}]})) is ready


def test_a_workload_without_replicas_is_ready_when_healthy() -> None:
    role = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
    status = {"aggregatedStatus": [{"clusterName": "m1", "applied": True, "health": "Healthy"}]}
    assert is_ready(bound({"m1": 0}, resource=role, status=status))
    assert not is_ready(bound({}, status=status))


def test_replicas_count_as_moved_where_they_were_not_before() -> None:
    origin, to = clusters({"m1": 1, "m2": 3}), clusters({"m1": 2, "m3": 2})
    assert count_moved(origin, to) == 3
    assert write_replicas(origin) == "{m1:1, m2:3}"
