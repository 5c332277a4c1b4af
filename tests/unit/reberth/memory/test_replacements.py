"""Which pods may be the replacement of a moved pod."""

from typing import Any

import pytest
from msgspec.structs import replace

from reberth.cluster.rows import PodRow, make_pod_row
from reberth.cluster.templates import Templates
from reberth.memory.replacements import MARGIN, MOST_KNOWN, is_since, list_known, may_replace
from tests.support import builders
from tests.support.memory.objects import NOW, move, web_pod

TEMPLATES = Templates(version=(1, 36))


def row(uid: str, *, age: float = 0.0, **fields: Any) -> PodRow:
    made = web_pod(uid, uid=uid, age=age, **fields)
    return make_pod_row(replace(made, metadata=replace(made.metadata, resource_version="1")), TEMPLATES)


@pytest.mark.parametrize(
    ("uid", "created", "expected"),
    [
        ("new", NOW + 1, True),
        ("new", NOW, True),
        ("new", NOW - MARGIN + 1, True),
        ("new", NOW - MARGIN, False),
        ("known", NOW + 1, False),
        ("moved", NOW + 1, False),
    ],
)
def test_it_was_not_known_and_is_not_much_older(uid: str, created: float, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    planned = move("m1", planned=NOW, pod_uid="moved", known_pods=("known",))
    assert may_replace(planned, uid, created) is expected


def test_a_move_that_knew_no_young_pod_decides_by_age() -> None:
    assert may_replace(move("m1", planned=NOW), "any", NOW)


def test_only_the_young_pods_of_the_controller_are_recorded() -> None:
    other = row("other", owned_by=builders.owner("ReplicaSet", "api", uid="uid-api"))
    bare = row(
        "bare", owned_by=builders.owner("ReplicaSet", "web-5d4f", uid="uid-rs") | {"controller": False}
    )
    pods = [row("b"), row("a", age=MARGIN - 1), row("old", age=MARGIN), row("ahead", age=-5), other, bare]
    assert list_known(pods, "uid-rs", now=NOW) == ("a", "ahead", "b")


def test_no_known_pod_is_taken_for_a_replacement_and_every_new_one_is() -> None:
    """However far the clocks of several API servers, which write creation times, are apart."""
    for ahead in range(-4, 5):
        known = [row(f"k{age}", age=age - ahead) for age in range(30)]
        planned = move("m1", planned=NOW, known_pods=list_known(known, "uid-rs", now=NOW))
        assert not any(may_replace(planned, pod.uid, pod.created) for pod in known)
        assert may_replace(planned, "new", NOW + ahead)


def test_the_youngest_are_recorded_if_there_are_too_many() -> None:
    pods = [row(f"{number:03}", age=5 if number < 50 else 1) for number in range(MOST_KNOWN + 20)]
    known = list_known(pods, "uid-rs", now=NOW)
    assert len(known) == MOST_KNOWN
    assert set(known) == {f"{number:03}" for number in (*range(30), *range(50, MOST_KNOWN + 20))}


def test_a_creation_within_the_margin_may_be_later() -> None:
    assert is_since(NOW - MARGIN + 1, NOW)
    assert not is_since(NOW - MARGIN, NOW)
