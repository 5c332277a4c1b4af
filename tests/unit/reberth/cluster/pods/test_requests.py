"""Requests of incoming pods: a table for each rule of kube-scheduler."""

from typing import Any

import pytest

from reberth.cluster.pods.requests import Version, node_amounts, read_version, write_amount
from reberth.values.quantity import QuantityError
from tests.support.cluster.requests import (
    MI,
    VERSIONS,
    Object,
    asking,
    bound,
    container,
    incoming,
    load,
    spec,
)

ASSUMED_CPU, ASSUMED_MEMORY = 100, 200 * MI

every_version = pytest.mark.parametrize("version", VERSIONS)


def both_ways(asked: Object, version: Version) -> dict[str, int]:
    """Count a pod that is not being resized: as bound it counts like incoming."""
    amounts = dict(incoming(asked).amounts)
    assert bound(asked, version).amounts == amounts
    return amounts


# The containers


@every_version
def test_containers_add_up(version: Version) -> None:
    asked = spec(container("a", cpu="100m", memory="1Gi"), container("b", cpu="1"), container("c"))
    assert both_ways(asked, version) == {"cpu": 1100, "memory": 2**30}


@every_version
def test_a_pod_without_requests_has_no_amounts(version: Version) -> None:
    assert both_ways(spec(container("a"), {"name": "b"}), version) == {}
    assert both_ways({}, version) == {}


@every_version
def test_init_containers_count_alone_and_with_the_sidecars_before_them(version: Version) -> None:
    init = (
        container("i1", cpu="3"),
        container("s1", stays=True, cpu="1"),
        container("i2", cpu="4", memory="10Mi"),
        container("s2", stays=True, memory="1Mi"),
        container("i3", memory="11Mi"),
    )
    # cpu: i2 beside s1; memory: i3 beside s2
    assert both_ways(spec(container("c", cpu="2"), init=init), version) == {"cpu": 5000, "memory": 12 * MI}


@every_version
def test_sidecars_stay_beside_the_containers(version: Version) -> None:
    init = (
        container("s1", stays=True, cpu="1"),
        container("i1", cpu="1"),
        container("s2", stays=True, cpu="2"),
    )
    assert both_ways(spec(container("c", cpu="500m"), init=init), version) == {"cpu": 3500}


@every_version
def test_another_restart_policy_makes_no_sidecar(version: Version) -> None:
    init = (container("i", cpu="1") | {"restartPolicy": "OnFailure"},)
    assert both_ways(spec(container("c", cpu="1"), init=init), version) == {"cpu": 1000}


@every_version
def test_each_resource_has_its_own_peak(version: Version) -> None:
    asked = spec(container("c", cpu="1", memory="1Mi"), init=(container("i", cpu="500m", memory="2Mi"),))
    assert both_ways(asked, version) == {"cpu": 1000, "memory": 2 * MI}


@every_version
def test_overhead_comes_on_top(version: Version) -> None:
    asked = spec(
        container("c", cpu="1"), init=(container("i", cpu="2"),), overhead={"cpu": "1", "memory": "1Mi"}
    )
    assert both_ways(asked, version) == {"cpu": 3000, "memory": MI}


@every_version
def test_amounts_are_added_exactly_and_rounded_once(version: Version) -> None:
    asked = spec(
        *(container(name, cpu="100u", memory="100m") for name in "abcdefghij"), overhead={"cpu": "1n"}
    )
    assert both_ways(asked, version) == {"cpu": 2, "memory": 1}


# Which resources count


@every_version
def test_scalars_are_extended_huge_volume_and_native_resources(version: Version) -> None:
    counted = [
        "example.com/gpu",
        "hugepages-2Mi",
        "attachable-volumes-csi",
        "x.kubernetes.io/a",
        "kubernetes.io/b",
    ]
    dropped = ["gpu", "requests.example.com/gpu", "a/b/c", "UPPER/x", "example.com/", "pods.x"]
    every = dict.fromkeys(counted + dropped, "1500m")
    asked = spec({"name": "c", "resources": {"requests": every | {"ephemeral-storage": "1k"}}})
    assert both_ways(asked, version) == dict.fromkeys(counted, 2) | {"ephemeral-storage": 1000}


def test_a_native_name_counts_even_with_the_prefix_of_quotas() -> None:
    asked = {"name": "c", "resources": {"requests": {"requests.kubernetes.io/a": "1"}}}
    assert incoming(spec(asked)).amounts == {"requests.kubernetes.io/a": 1}


def test_a_node_offers_its_allocatable_and_a_number_of_pods() -> None:
    offered: dict[str, str | int | float] = {
        "cpu": "4",
        "memory": "8Gi",
        "pods": 110,
        "example.com/gpu": "2",
        "unknown": "1",
    }
    assert node_amounts(offered) == {"cpu": 4000, "memory": 2**33, "pods": 110, "example.com/gpu": 2}
    assert node_amounts(None) == {}


# Requests of the pod as a whole


@every_version
def test_requests_of_the_whole_replace_those_of_the_containers(version: Version) -> None:
    asked = spec(
        container("a", cpu="2", memory="1Gi", hugepages_2Mi="4Mi", ephemeral_storage="1k"),
        resources=asking(cpu="1", hugepages_2Mi="2Mi", ephemeral_storage="9k"),
        overhead={"cpu": "1"},
    )
    assert both_ways(asked, version) == {
        "cpu": 2000,
        "memory": 2**30,
        "hugepages-2Mi": 2 * MI,
        "ephemeral-storage": 1000,
    }


# What LeastAllocated assumes


@every_version
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (spec(container("a")), (ASSUMED_CPU, ASSUMED_MEMORY)),
        (spec(container("a"), container("b")), (2 * ASSUMED_CPU, 2 * ASSUMED_MEMORY)),
        (spec(container("a", cpu="1"), container("b", memory="1Mi")), (1100, 201 * MI)),
        (spec(container("a", cpu="0", memory="0")), (0, 0)),
        (
            spec(container("a", cpu="1", memory="1Mi"), init=(container("i", cpu="0"),)),
            (1000, ASSUMED_MEMORY),
        ),
        (spec(container("a", cpu="0"), init=(container("s", stays=True),)), (100, 2 * ASSUMED_MEMORY)),
        (spec(container("a"), overhead={"cpu": "1"}), (1100, ASSUMED_MEMORY)),
        (spec(), (0, 0)),
    ],
)
def test_a_container_without_a_request_is_assumed_to_need_some(
    asked: Object, expected: tuple[int, int], version: Version
) -> None:
    assert load(bound(asked, version)) == load(incoming(asked)) == expected


@every_version
@pytest.mark.parametrize(
    ("asked", "as_bound", "as_incoming"),
    [
        (
            spec(container("a"), container("b"), resources=asking(cpu="1", memory="1Mi")),
            (1000, MI),
            (2 * ASSUMED_CPU, 2 * ASSUMED_MEMORY),
        ),
        (
            spec(container("a"), container("b"), resources=asking(cpu="1")),
            (1000, 2 * ASSUMED_MEMORY),
            (2 * ASSUMED_CPU, 2 * ASSUMED_MEMORY),
        ),
        (
            spec(container("a", memory="1Mi"), container("b"), resources=asking(cpu="1")),
            (1000, MI),
            (2 * ASSUMED_CPU, 201 * MI),
        ),
        (
            spec(container("a"), resources=asking(hugepages_2Mi="2Mi"), overhead={"cpu": "1"}),
            (1000, ASSUMED_MEMORY),
            (1100, ASSUMED_MEMORY),
        ),
        (
            spec(container("a"), resources=asking(ephemeral_storage="1k")),
            (ASSUMED_CPU, ASSUMED_MEMORY),
            (ASSUMED_CPU, ASSUMED_MEMORY),
        ),
    ],
)
def test_pod_level_limits_cap_the_assumed_load_of_bound_but_not_incoming_pods(
    asked: Object, as_bound: tuple[int, int], as_incoming: tuple[int, int], version: Version
) -> None:
    assert (load(bound(asked, version)), load(incoming(asked))) == (as_bound, as_incoming)


@every_version
def test_amounts_cannot_be_changed(version: Version) -> None:
    amounts: Any = bound(spec(container("c", cpu="1")), version).amounts
    with pytest.raises(TypeError):
        amounts["cpu"] = 0


# Bad input and people


@pytest.mark.parametrize(
    "asked", [spec(container("c", cpu="1", memory="1GB")), spec(overhead={"memory": "1GB"})]
)
def test_a_bad_quantity_is_refused_with_its_resource_and_text(asked: Object) -> None:
    for count in (bound, incoming):
        with pytest.raises(QuantityError, match="memory: invalid quantity '1GB'"):
            count(asked)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**31, "2Gi"),
        ("memory", 10**9, "1000000000"),
        ("memory", 1000, "1k"),
        ("ephemeral-storage", 3 * MI, "3Mi"),
        ("hugepages-2Mi", 2 * MI, "2Mi"),
        ("example.com/gpu", 1024, "1024"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_written_for_people(resource: str, amount: int, text: str) -> None:
    assert write_amount(resource, amount) == text


@pytest.mark.parametrize(
    ("text", "version"), [("1.36", (1, 36)), ("v1.35.4", (1, 35)), ("1.37.0-rc.1", (1, 37))]
)
def test_versions_of_kubernetes_are_read_without_their_patch(text: str, version: Version) -> None:
    assert read_version(text) == version


@pytest.mark.parametrize("text", ["", "1", "1.x", "newest", "v.36"])
def test_an_invalid_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid version"):
        read_version(text)
