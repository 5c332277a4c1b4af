"""Which pods leave over-utilised nodes, and their destinations."""

from typing import Any

import pytest

from tests.support import builders
from tests.support.rescheduler.plans import Object, make_plan, moves_of, policy, refusals_of, replica

GPU = "example.com/gpu"


def ask(objects: list[Object], **fields: Any) -> tuple[dict[str, str], dict[str, str]]:
    made, _ = make_plan(
        objects,
        policy(
            level=5,
            limits={"perWorkload": None, "perNode": None},
            policies={"brokenRules": {"enabled": False}, "underUtilisedNodes": fields},
        ),
    )
    return moves_of(made), refusals_of(made)


def loaded(*sizes: str, **fields: Any) -> list[Object]:
    """Pods of these sizes on one node of 8 CPUs, and an empty one."""
    pods = [
        replica(f"p-{number}", "p", "a", cpu=size, memory="1Gi", **fields)
        for number, size in enumerate(sizes)
    ]
    return [builders.node("a"), builders.node("b"), *pods]


@pytest.mark.parametrize(
    ("sizes", "moved"),
    [
        (("1",) * 6, 0),
        (("1",) * 7, 1),
        (("1",) * 8, 2),
        (("500m",) * 16, 4),
    ],
)
def test_pods_leave_until_the_node_is_over_utilised_no_longer(sizes: tuple[str, ...], moved: int) -> None:
    moves, _ = ask(loaded(*sizes))
    assert len(moves) == moved


def test_the_pod_that_evens_out_most_goes_first() -> None:
    moves, _ = ask(loaded("1", "3", "3500m"))
    assert moves == {"default/p-2": "b"}


def test_of_equal_pods_the_one_with_lower_priority_moves() -> None:
    objects = loaded("2", "2", "2", "1")
    for number, priority in enumerate((100, 50, 70)):
        objects[2 + number]["spec"]["priority"] = priority
    moves, _ = ask(objects)
    assert moves == {"default/p-1": "b"}


def large(name: str) -> Object:
    return builders.node(name, cpu="32", memory="128Gi")


def test_a_pod_goes_where_it_evens_out_most() -> None:
    """A large node would hardly notice it, and stay as far from the mean as it is."""
    moves, _ = ask([*loaded("2", "2", "2", "1"), large("c")])
    assert moves == {"default/p-0": "b"}


def test_pod_preferences_count_besides_utilisation() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "p"}}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    objects = [*loaded("2", "2", "2", "1", affinity=affinity), large("c")]
    moves, _ = ask([*objects, replica("p-9", "p", "b", cpu="1m")])
    assert moves["default/p-0"] == "c"


def test_each_move_is_weighed_with_the_load_left_by_the_one_before() -> None:
    """Two nodes are as full: the second move relieves the other one, not the same again."""
    full = [replica(f"{node}-{n}", node, node, cpu="1") for node in "ac" for n in range(8)]
    made, _ = make_plan(
        [*map(builders.node, "abcd"), *full],
        policy(
            level=5,
            limits={"perWorkload": None, "perNode": None, "perCycle": 2},
            policies={"brokenRules": {"enabled": False}},
        ),
    )
    assert sorted(move.from_ for move in made.moves) == ["a", "c"]


def test_a_node_that_takes_no_more_moves_is_passed_over_for_the_next_best() -> None:
    """One node is emptier, and as many moves go there as may at once."""
    full = [replica(f"{node}-{n}", node, node, cpu="1") for node in "ab" for n in range(8)]
    objects = [*map(builders.node, "abcd"), *full, replica("q-1", "q", "c", cpu="1")]
    made, _ = make_plan(
        objects,
        policy(
            level=5,
            limits={"perWorkload": None, "perNode": 1},
            policies={"brokenRules": {"enabled": False}},
        ),
    )
    assert sorted(moves_of(made).values()) == ["c", "d"]


def test_a_node_in_the_middle_is_no_destination() -> None:
    objects = [*loaded(*("1",) * 7), replica("q-1", "q", "b", cpu="4")]
    assert ask(objects) == ({}, dict.fromkeys((f"default/p-{n}" for n in range(7)), "NoBetterNode"))


def test_no_destination_becomes_over_utilised() -> None:
    assert ask(loaded("7"))[0] == {}


def test_a_node_that_is_leaving_is_neither_emptied_nor_filled() -> None:
    objects = loaded(*("1",) * 7)
    objects[0]["spec"]["unschedulable"] = True
    assert ask(objects) == ({}, {})
    objects = loaded(*("1",) * 7)
    objects[1]["spec"]["unschedulable"] = True
    assert set(ask(objects)[1].values()) == {"DestinationLeaving"}


def test_a_staying_destination_takes_precedence_over_a_leaving_one() -> None:
    leaving = builders.node("c", unschedulable=True)
    assert ask([*loaded(*("1",) * 7), leaving])[0] == {"default/p-0": "b"}
    full = [replica(f"q-{number}", "q", "b", cpu="4") for number in range(1)]
    assert set(ask([*loaded(*("1",) * 7), leaving, *full])[1].values()) == {"DestinationLeaving"}


def test_only_pods_that_request_the_scarce_resource_move() -> None:
    objects = [*loaded(*("1",) * 7), replica("idle-1", "idle", "a", memory="2Gi")]
    found = ask(objects, low={"cpu": "20%"}, high={"cpu": "75%"})
    assert not any("idle" in pod for said in found for pod in said)


def test_an_extended_resource_may_have_thresholds() -> None:
    container = {"name": "m", "resources": {"requests": {"cpu": "3", "memory": "10Gi", GPU: "1"}}}
    objects = [
        builders.node("a", extended={GPU: "2"}),
        builders.node("b", extended={GPU: "2"}),
        *(replica(f"gpu-{number}", "gpu", "a", containers=[container]) for number in range(2)),
    ]
    assert ask(objects, low={GPU: "10%"}, high={GPU: "50%"})[0] == {"default/gpu-0": "b"}


def test_the_gain_must_be_seen_by_kube_scheduler() -> None:
    """Devices alone give no points: the next pod might land anywhere."""
    container = {"name": "m", "resources": {"requests": {GPU: "1"}}}
    objects = [
        builders.node("a", extended={GPU: "2"}),
        builders.node("b", extended={GPU: "2"}),
        *(replica(f"gpu-{number}", f"gpu{number}", "a", containers=[container]) for number in range(2)),
        replica("gpu0-2", "gpu0", "b"),
        replica("gpu1-2", "gpu1", "b"),
    ]
    assert ask(objects, low={GPU: "10%"}, high={GPU: "50%"})[0] == {}


def test_around_the_mean() -> None:
    """The mean of 50 %, 25 % and 0 is 25 %: only c is 5 % below it."""
    sizes = {"p-0": "3", "p-1": "1"}
    pods = [replica(name, "p", "a", cpu=cpu, memory="8Gi") for name, cpu in sizes.items()]
    objects = [*map(builders.node, "abc"), *pods, replica("q-1", "q", "b", cpu="2")]
    moves, _ = ask(objects, aroundMean=True, low={"cpu": "5%"}, high={"cpu": "5%"})
    assert moves == {"default/p-1": "c"}
