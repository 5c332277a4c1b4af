"""Which of several Clusters stands for a member."""

import pytest
from msgspec.structs import replace

from federation.api import Cluster
from federation.membership.cluster_identity import find_owner
from tests.support.federation.objects import bare_cluster


def named(name: str, *, said: str = "", created: int = 1) -> Cluster:
    made = bare_cluster(name, spec={"id": said})
    stamp = f"2026-11-18T12:00:0{created}Z"
    return replace(made, metadata=replace(made.metadata, creation_timestamp=stamp))


@pytest.mark.parametrize(
    ("clusters", "known", "owner"),
    [
        pytest.param([named("a"), named("b")], {}, None, id="nobody"),
        pytest.param([named("a"), named("b")], {"a": "x", "b": "x"}, "a", id="of one age: by name"),
        pytest.param([named("a", created=2), named("b")], {"a": "x", "b": "x"}, "b", id="the oldest"),
        pytest.param(
            [named("a"), named("b", said="x", created=2)], {"a": "x"}, "b", id="whoever says so first of all"
        ),
        pytest.param([named("b", said="x")], {}, "b", id="not asked yet"),
        pytest.param([named("a", said="x"), named("b")], {"a": "y", "b": "x"}, "b", id="said by mistake"),
    ],
)
def test_one_cluster_stands_for_a_member(
    clusters: list[Cluster], known: dict[str, str], owner: str | None
) -> None:
    assert find_owner("x", clusters, known) == owner
    assert find_owner("x", reversed(clusters), known) == owner
