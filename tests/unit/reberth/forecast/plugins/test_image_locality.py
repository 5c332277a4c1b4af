"""ImageLocality: images that nodes already have."""

from typing import Any

import pytest

from reberth.forecast.plugins.image_locality import score_image_locality
from tests.support.builders import container, node, pod
from tests.support.forecast.worlds import asking, everywhere, world

MEBI = 1024**2


def having(name: str, *images: tuple[str, int], created: str | None = None) -> dict[str, Any]:
    made = node(name)
    made["status"]["images"] = [{"names": [image], "sizeBytes": size} for image, size in images]
    if created:
        made["metadata"]["creationTimestamp"] = created
    return made


def fleet(count: int, *images: tuple[str, int]) -> list[dict[str, Any]]:
    """Ten nodes, the first of which have the images."""
    return [having(f"n{place}", *images) if place < count else node(f"n{place}") for place in range(10)]


@pytest.mark.parametrize(
    ("holders", "containers", "expected"), [(3, 1, 9), (3, 2, 4), (10, 1, 38), (0, 1, 0), (1, 1, 1)]
)
def test_an_image_counts_by_its_size_and_spread(holders: int, containers: int, expected: int) -> None:
    others = [container(f"c{number}", image="other:1") for number in range(1, containers)]
    view = world(
        *fleet(holders, ("app:1", 400 * MEBI)), pod("asking", containers=[container(image="app:1"), *others])
    )
    scores = score_image_locality(asking(view), view, everywhere(view)).tolist()
    assert scores == [expected] * holders + [0] * (10 - holders)


def test_a_name_without_a_tag_means_the_latest() -> None:
    named = [container(image="host:5000/app")]
    view = world(having("a", ("host:5000/app:latest", 1023 * MEBI)), pod("asking", containers=named))
    assert score_image_locality(asking(view), view, everywhere(view)).tolist() == [100]


@pytest.mark.parametrize(("version", "expected"), [((1, 37), 8), ((1, 36), 18), ((1, 35), 0)])
def test_image_volumes_count_since_their_version(version: tuple[int, int], expected: int) -> None:
    volume = {"name": "model", "image": {"reference": "model:1"}}
    view = world(having("a", ("model:1", 200 * MEBI)), pod("asking", volumes=[volume]), version=version)
    assert score_image_locality(asking(view), view, everywhere(view)).tolist() == [expected]


def test_where_nodes_differ_over_a_size_the_oldest_report_counts() -> None:
    view = world(
        having("a", ("app:1", 900 * MEBI), created="2026-01-02T00:00:00Z"),
        having("b", ("app:1", 200 * MEBI), created="2026-01-01T00:00:00Z"),
        pod("asking", containers=[container(image="app:1")]),
    )
    assert score_image_locality(asking(view), view, everywhere(view)).tolist() == [18, 18]


def test_nodes_that_share_a_record_count_together_with_those_that_have_their_own() -> None:
    """Of three nodes two say the same of an image; the third one, and the oldest, gives another size."""
    view = world(
        having("a", ("app:1", 400 * MEBI), ("other:1", MEBI), created="2026-01-02T00:00:00Z"),
        having("b", ("app:1", 400 * MEBI), created="2026-01-03T00:00:00Z"),
        having("c", ("other:1", MEBI), ("app:1", 800 * MEBI), created="2026-01-01T00:00:00Z"),
        node("d"),
        pod("asking", containers=[container(image="app:1")]),
    )
    assert score_image_locality(asking(view), view, everywhere(view)).tolist() == [59, 59, 59, 0]
