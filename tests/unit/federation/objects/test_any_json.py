from typing import Any

import pytest

from federation.objects.any_json import at, list_at, number, text_at, time_at
from federation.objects.health import HEALTHY, UNHEALTHY, find_health

TIME = "2026-11-18T12:00:00Z"
ODD: tuple[Any, ...] = (None, True, 5, -1, 1.5, "x", [], [5], [None], {}, {"a": 1}, {"a": {"b": 5}})
RULED = (
    *(("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "DaemonSet"), ("v1", "Pod")),
    *(("v1", "Service"), ("v1", "PersistentVolumeClaim"), ("policy/v1", "PodDisruptionBudget")),
)


def test_what_is_not_of_the_expected_type_is_missing() -> None:
    for holder in ODD:
        assert at(holder, "a", "b", "c") is None
        assert list(list_at(holder, "a", "b")) == []
        assert text_at(holder, "a", "b") == ""
        assert time_at(holder, "a", "b") == ""


def test_what_is_there_is_read() -> None:
    holder = {"a": {"list": [1], "text": "x", "time": TIME}}
    assert list(list_at(holder, "a", "list")) == [1]
    assert (text_at(holder, "a", "text"), time_at(holder, "a", "time")) == ("x", TIME)
    assert time_at(holder, "a", "text") == ""


@pytest.mark.parametrize("odd", [True, -1, 2**63, 10**40, 1.5, "5", None, [5]])
def test_a_number_is_a_count(odd: Any) -> None:
    assert number({"n": odd}, "n") == 0
    assert number(odd, "n") == 0
    assert number({"n": 2**63 - 1}, "n") == 2**63 - 1


@pytest.mark.parametrize(("version", "kind"), RULED)
def test_health_is_found_whatever_a_member_says(version: str, kind: str) -> None:
    for odd in ODD:
        parts = ("replicas", "conditions", "loadBalancer", "phase", "observedGeneration")
        for status in (odd, dict.fromkeys(parts, odd)):
            found = {"metadata": odd, "spec": odd, "status": status}
            assert find_health(version, kind, found) in {HEALTHY, UNHEALTHY}
