"""The fleet of the benchmark of moves, the counts of its witness, and its report."""

from collections import Counter
from typing import Any

from bench.moving.__main__ import describe
from bench.moving.fleet import Fleet
from bench.moving.racing import OURS, Raced, State
from bench.moving.witnessing import Witness
from reberth.cluster.cache import ADDED, DELETED, MODIFIED
from reberth.cluster.kinds import NODE, POD
from reberth.records import Node, Pod
from tests.support import builders

FLEET = Fleet(nodes=60, pods=1500, seed=1)


def test_a_fleet_is_drawn_again_alike_a_tenth_hot_and_a_fifth_cold() -> None:
    assert FLEET.places == Fleet(nodes=60, pods=1500, seed=1).places
    assert FLEET.places != Fleet(nodes=60, pods=1500, seed=2).places
    counts = Counter(FLEET.places)
    owners = list(FLEET.list_owners())
    uids = {each["metadata"]["name"]: f"uid of {each['metadata']['name']}" for each in owners}
    assert counts.total() == len(list(FLEET.list_pods(uids))) == 1500
    assert sum(count > 50 for count in counts.values()) == 6
    assert sum(count < 10 for count in counts.values()) == 12
    assert len(owners) == 150


def a_pod(name: str, node: str | None, version: int) -> Pod:
    built: Any = builders.pod(name, namespace="default", node=node, labels={"app": "web"}, cpu="4", uid=name)
    built["metadata"]["resourceVersion"] = str(version)
    return builders.as_record(Pod, built)


def test_evicted_pods_and_those_that_return_are_counted() -> None:
    witness = Witness()
    nodes = [builders.node(name, cpu="8") for name in ("n1", "n2")]
    for each in nodes:
        each["metadata"] |= {"resourceVersion": "1", "uid": each["metadata"]["name"]}
    witness.replace(NODE, [builders.as_record(Node, each) for each in nodes], "1")
    witness.replace(POD, [a_pod("old", "n1", 1), a_pod("other", "n1", 1)], "1")
    assert witness.count_above(0.75) == 1
    witness.begin()
    witness.apply(POD, MODIFIED, a_pod("other", "n1", 2))
    witness.apply(POD, DELETED, a_pod("old", "n1", 3))
    witness.apply(POD, ADDED, a_pod("new", None, 4))
    assert (witness.evicted, witness.returned, witness.count_above(0.75)) == (1, 0, 0)
    witness.apply(POD, MODIFIED, a_pod("new", "n1", 5))
    witness.apply(POD, MODIFIED, a_pod("new", "n1", 6))
    witness.apply(POD, ADDED, a_pod("newer", "n2", 7))
    assert (witness.evicted, witness.returned) == (1, 1)
    assert witness.measure_spread() == 25


def test_an_arm_is_described_in_a_row() -> None:
    raced = Raced(
        before=State(6, 21.4),
        after=State(0, 16.0),
        evicted=61,
        returned=0,
        seconds=42.4,
        is_quiet=True,
        calls=1234,
        as_forecast=1.0,
    )
    assert describe({OURS: raced}).splitlines()[-1] == (
        "| Reberth | 61 | 0 | 42 s | yes | 6 to 0 | 21.4 to 16.0 | 100.0% | 1,234 | 20.2 |"
    )
