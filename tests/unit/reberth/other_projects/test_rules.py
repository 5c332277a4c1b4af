"""Checks as data, on objects of any form."""

from typing import Any

import msgspec
import pytest

from reberth.other_projects.rules import Check, holds, read_each

FOUND = {
    "metadata": {"generation": 2},
    "spec": {"replicas": 3, "groups": [{"name": "a"}, {"name": "b"}, "odd"], "tasks": {"x": {"name": "c"}}},
    "status": {
        "phase": "Running",
        "ready": True,
        "count": 3,
        "observedGeneration": "2",
        "conditions": [
            {"type": "Ready", "status": "True", "observedGeneration": 1},
            {"type": "Synced", "status": "True", "observedGeneration": 2},
            {"type": "Old", "status": "False"},
            {"type": "Odd", "status": 7},
            "odd",
        ],
    },
}


def check(**fields: Any) -> Check:
    return msgspec.convert(fields, Check)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"at": "status.phase", "in": ["Running"]}, True),
        ({"at": "status.phase", "in": ["Failed"]}, False),
        ({"at": "status.phase", "notIn": ["Failed"]}, True),
        ({"at": "status.phase", "notIn": ["Running"]}, False),
        ({"at": "status.ready", "in": [True]}, True),
        ({"at": "status.none", "in": [None]}, True),
        ({"at": "status.phase.deeper", "in": [None]}, True),
        ({"at": "spec", "in": [None]}, False),
        ({"at": "status.count", "atLeast": "spec.replicas"}, True),
        ({"at": "status.count", "atLeast": "4"}, False),
        ({"at": "status.count", "atLeast": "spec.none", "default": 4}, False),
        ({"at": "status.ready", "atLeast": "1"}, False),
        ({"at": "status.phase", "differsFrom": "status.other"}, True),
        ({"at": "status.none", "differsFrom": "status.other"}, False),
        ({"current": "status.observedGeneration"}, True),
        ({"current": "status.count"}, False),
        ({"current": "status.none"}, False),
        ({"condition": "Synced", "in": ["True"]}, True),
        ({"condition": "Old", "in": ["True"]}, False),
        ({"condition": "Ready", "in": ["True"]}, False),
        ({"condition": "Ready", "in": [None]}, True),
        ({"condition": "Odd", "in": [None]}, True),
        ({"condition": "None", "in": [None]}, True),
        ({"not": [{"at": "status.phase", "in": ["Running"]}]}, False),
        ({"any": [{"at": "status.phase", "in": ["No"]}, {"at": "status.count", "atLeast": "1"}]}, True),
        ({"any": [{"at": "status.phase", "in": ["No"]}]}, False),
        ({"all": [{"at": "status.phase", "in": ["Running"]}, {"at": "status.count", "atLeast": "9"}]}, False),
    ],
)
def test_a_check_says_whether_it_holds(fields: Any, wanted: bool) -> None:  # noqa: FBT001 - a case
    assert holds([check(**fields)], FOUND) is wanted


@pytest.mark.parametrize("found", [None, [], "text", {}, {"status": None}, {"status": {"conditions": {}}}])
def test_an_object_of_any_form_is_read(found: Any) -> None:
    assert not holds([check(condition="Ready", **{"in": ["True"]})], found)
    assert holds([check(at="status.phase", **{"in": [None]})], found)


def test_a_path_leads_to_each_element_of_a_list_or_value_of_an_object() -> None:
    assert list(read_each(FOUND, "spec.groups.*.name")) == ["a", "b"]
    assert list(read_each(FOUND, "spec.tasks.*.name")) == ["c"]
    assert list(read_each(FOUND, "spec.replicas.*.name")) == []
    assert list(read_each(FOUND, "spec.replicas")) == [3]
