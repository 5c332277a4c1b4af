from typing import Any

import msgspec
import pytest

from federation.api import Placement
from federation.propagation.schedule_result import list_unknown_clusters


def names(*clusters: str) -> dict[str, Any]:
    return {"clusterNames": list(clusters)}


OVERFLOW = {"affinityName": "a", **names("m1"), "overflowAffinities": [{"affinityName": "b", **names("m7")}]}


@pytest.mark.parametrize(
    ("wire", "unknown"),
    [
        ({}, []),
        ({"clusterAffinity": {}}, []),
        ({"clusterAffinity": names("m1", "m2")}, []),
        ({"clusterAffinity": names("m9", "m1", "m8", "m9")}, ["m9", "m8"]),
        ({"clusterAffinities": [OVERFLOW, {"affinityName": "c", **names("m8")}]}, ["m7", "m8"]),
    ],
)
def test_placement_names_without_a_cluster_are_found(wire: dict[str, Any], unknown: list[str]) -> None:
    assert list_unknown_clusters(msgspec.convert(wire, Placement), {"m1", "m2"}) == unknown


def test_without_a_placement_nothing_is_named() -> None:
    assert list_unknown_clusters(None, ()) == []
