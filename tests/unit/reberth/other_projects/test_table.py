"""The table of kinds of other projects, on objects in the forms that those projects document."""

from typing import Any

import pytest
import yaml

from reberth.other_projects.rules import Check, holds
from reberth.other_projects.table import (
    find_kind,
    has_begun_rollout,
    is_rolling_out,
    list_replacing,
    read_table,
)
from tests.support.repository import ROOT

OBJECTS = yaml.safe_load((ROOT / "tests/support/other_project_objects.yaml").read_text())
CASES = [
    (kind, wanted == "healthy", found)
    for kind, cases in OBJECTS.items()
    for wanted, objects in cases.items()
    for found in objects
]


@pytest.mark.parametrize(("kind", "wanted", "found"), CASES)
def test_a_documented_object_is_healthy_or_not(kind: str, wanted: bool, found: Any) -> None:  # noqa: FBT001 - a case
    known = read_table()[tuple(kind.split("/"))]
    assert holds(known.healthy, {"metadata": {"generation": 2}, **found}) is wanted


def test_each_kind_that_has_a_rule_is_tested() -> None:
    assert set(OBJECTS) == {each.kind for each in read_table().values() if each.healthy}


def test_no_status_is_not_healthy_where_the_status_tells_it() -> None:
    """A copy whose controller has not looked yet is not ready, unless its user has stopped it."""
    bare = {"metadata": {"generation": 1}, "spec": {}}
    assert not [each.kind for each in read_table().values() if each.healthy and holds(each.healthy, bare)]


def list_checks(checks: Any) -> Any:
    for each in checks:
        yield each
        yield from list_checks((*each.all, *each.any, *each.not_))


@pytest.mark.parametrize("kind", read_table().values(), ids=lambda each: each.kind)
def test_each_check_is_about_one_thing_and_compares_it_in_one_way(kind: Any) -> None:
    for each in list_checks((*kind.healthy, *(kind.rollout.begun if kind.rollout else ()))):
        about = [name for name in ("at", "condition", "current", "all", "any", "not_") if getattr(each, name)]
        ways = [name for name in ("is_in", "not_in", "at_least", "differs_from") if getattr(each, name)]
        assert len(about) == 1, each
        assert len(ways) == (about[0] in ("at", "condition")), each


def rolled(**status: Any) -> Any:
    base = {"observedGeneration": 2, "availableReplicas": 8, "currentRevision": "a", "updateRevision": "b"}
    return {"metadata": {"generation": 2}, "spec": {"replicas": 10}, "status": {**base, **status}}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (rolled(), True),  # 20 percent may be missing
        (rolled(availableReplicas=7), False),
        (rolled(updateRevision="a"), False),
        (rolled(updateRevision="a", observedGeneration=1), True),
        (
            {
                **rolled(availableReplicas=5),
                "spec": {"replicas": 10, "updateStrategy": {"maxUnavailable": 5}},
            },
            True,
        ),
        ({**rolled(availableReplicas=0), "spec": {"replicas": 1}}, False),
    ],
)
def test_a_rollout_leaves_out_no_more_pods_than_it_may(found: Any, wanted: bool) -> None:  # noqa: FBT001 - a case
    clones = find_kind("apps.kruise.io", "CloneSet")
    assert clones is not None
    assert is_rolling_out(clones, found) is wanted


def test_a_kind_without_rollouts_has_none() -> None:
    workflows = find_kind("argoproj.io", "Workflow")
    assert workflows is not None
    assert not is_rolling_out(workflows, rolled())
    assert not has_begun_rollout(workflows, rolled())


def test_only_kinds_that_own_their_pods_replace_them() -> None:
    assert list_replacing() == (("apps.kruise.io", "CloneSet"), ("apps.kruise.io", "StatefulSet"))
    assert find_kind("example.com", "CloneSet") is None
    assert isinstance(read_table()["apps.kruise.io", "CloneSet"].healthy[0], Check)
