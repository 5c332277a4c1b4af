from ipaddress import ip_network
from typing import Any

import pytest

from federation.propagation.status_rules import Copies, forget_readiness, sum_status, tells_generations
from federation.settings import FederationSettings
from reberth.config.settings import parse
from reberth.values.errors import SettingsError

DONE = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z", "succeeded": 2}
LATER = DONE | {"startTime": "2026-01-01T00:30:00Z", "completionTime": "2026-01-01T02:00:00Z", "succeeded": 1}


def ended(status: Any, how: str) -> Any:
    return status | {"conditions": [{"type": how, "status": "True"}]}


def summed(group: str, kind: str, *copies: Any, had: Any = None, is_whole: bool = True) -> Any:
    by_cluster = {f"m{number}": each for number, each in enumerate(copies, 1)}
    return sum_status(group, kind, had or {}, Copies(by_cluster, is_whole), generation=3)


def observed(generation: int, *, behind: int = 0) -> Any:
    return {
        "replicas": 1,
        "generation": 8,
        "observedGeneration": 8 - behind,
        "resourceTemplateGeneration": generation,
    }


@pytest.mark.parametrize(
    ("copies", "is_whole", "wanted"),
    [
        ([observed(3), observed(3)], True, 3),
        ([observed(3), observed(3)], False, None),
        ([observed(3), observed(2)], True, None),
        ([observed(3), observed(3, behind=1)], True, None),
        ([], True, 3),
    ],
)
def test_a_generation_is_observed_when_all_copies_have(copies: Any, *, is_whole: bool, wanted: Any) -> None:
    found = summed("apps", "Deployment", *copies, is_whole=is_whole)
    assert found.get("observedGeneration") == wanted


def test_counts_are_added_up_and_written_once() -> None:
    first = summed("apps", "StatefulSet", {"replicas": 2, "readyReplicas": 1}, {"replicas": 1})
    assert first == {"replicas": 3, "availableReplicas": 0, "readyReplicas": 1}
    assert (
        summed("apps", "StatefulSet", {"replicas": 2, "readyReplicas": 1}, {"replicas": 1}, had=first) is None
    )
    assert summed("apps", "DaemonSet")["desiredNumberScheduled"] == 0
    assert summed("policy", "PodDisruptionBudget", {"expectedPods": 2})["expectedPods"] == 2


@pytest.mark.parametrize(
    ("group", "kind", "copies", "wanted"),
    [
        ("", "ConfigMap", [{"a": 1}], None),
        ("apps.example.com", "Deployment", [{"replicas": 1}], None),
        ("", "Pod", [], None),
        ("", "Pod", [{"phase": "Running"}, {"phase": "Succeeded"}], {"phase": "Running"}),
        ("", "Pod", [{"phase": "Running"}, {"phase": "Failed"}], {"phase": "Failed"}),
        ("", "Pod", [{}], {"phase": "Pending"}),
        ("", "PersistentVolumeClaim", [{"phase": "Bound"}, {"phase": "Pending"}], {"phase": "Pending"}),
        ("", "Service", [{"loadBalancer": {}}], None),
        (
            "",
            "Service",
            [
                {"loadBalancer": {"ingress": [{"ip": "a"}]}},
                {"loadBalancer": {"ingress": [{"hostname": "b"}]}},
            ],
            {"loadBalancer": {"ingress": [{"hostname": "m1"}, {"hostname": "b"}]}},
        ),
        ("batch", "Job", [{}], None),
        (
            "batch",
            "CronJob",
            [{"lastScheduleTime": "2026-01-01T00:00:00Z"}, {"lastScheduleTime": "2026-01-02T00:00:00Z"}, {}],
            {"lastScheduleTime": "2026-01-02T00:00:00Z"},
        ),
    ],
)
def test_each_kind_has_its_own_rule(group: str, kind: str, copies: Any, wanted: Any) -> None:
    assert summed(group, kind, *copies) == wanted


def test_a_job_is_complete_when_all_of_its_parts_are() -> None:
    running = summed("batch", "Job", ended(DONE, "Complete"), {"startTime": DONE["startTime"], "active": 1})
    assert running == {"succeeded": 2, "startTime": DONE["startTime"], "active": 1}
    done = summed("batch", "Job", ended(DONE, "Complete"), ended(LATER, "Complete"))
    assert done["completionTime"] == LATER["completionTime"]
    assert [each["type"] for each in done["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert summed("batch", "Job", ended(DONE, "Complete"), ended(LATER, "Complete"), had=done) is None
    missing = summed("batch", "Job", ended(DONE, "Complete"), is_whole=False)
    assert "conditions" not in missing


def test_a_job_has_failed_when_one_of_its_parts_has() -> None:
    failed = summed("batch", "Job", ended(DONE, "Complete"), ended(LATER, "Failed"))
    assert [each["type"] for each in failed["conditions"]] == ["FailureTarget", "Failed"]
    assert failed["conditions"][1]["message"] == "Job executed failed in member clusters: m2"


ODD: tuple[Any, ...] = (
    None,
    True,
    5,
    10**40,
    1.5,
    "x",
    [5],
    [None],
    {"a": 1},
    {"ingress": 5},
    {"ingress": ["x"]},
)


@pytest.mark.parametrize(
    ("group", "kind", "good", "wanted"),
    [
        ("apps", "Deployment", {"readyReplicas": 2}, {"readyReplicas": 2}),
        ("batch", "Job", {"startTime": DONE["startTime"], "active": 1}, {"active": 1}),
        (
            "batch",
            "CronJob",
            {"lastScheduleTime": DONE["startTime"]},
            {"lastScheduleTime": DONE["startTime"]},
        ),
        ("", "Pod", {"phase": "Running"}, {"phase": "Running"}),
        ("", "PersistentVolumeClaim", {"phase": "Lost"}, {"phase": "Lost"}),
    ],
)
def test_whatever_one_member_says_the_others_are_summed(
    group: str, kind: str, good: Any, wanted: Any
) -> None:
    names = ("conditions", "startTime", "active", "lastScheduleTime", "readyReplicas")
    for odd in ODD:
        said = {**dict.fromkeys(names, odd), "phase": "Running"}
        found = summed(group, kind, good, said)
        counted = 5 if odd == 5 else 0
        assert {name: found[name] for name in wanted} == {
            name: value + counted if isinstance(value, int) else value for name, value in wanted.items()
        }


def test_a_count_is_one_that_the_api_server_takes() -> None:
    assert summed("apps", "Deployment", *[{"replicas": 2**31 - 1}] * 2) == {"replicas": 2**31 - 1}
    assert summed("batch", "Job", DONE | {"succeeded": 2**62})["succeeded"] == 2**31 - 1


@pytest.mark.parametrize("odd", ["", "A B", "x" * 300, "x." * 150 + "x", "a..b", 5, ["x"]])
def test_a_host_name_is_one_that_the_api_server_takes(odd: Any) -> None:
    copies = [
        {"loadBalancer": {"ingress": [{"hostname": odd}]}},
        {"loadBalancer": {"ingress": [{"hostname": "b"}]}},
    ]
    assert summed("", "Service", *copies) == {
        "loadBalancer": {"ingress": [{"hostname": "m1"}, {"hostname": "b"}]}
    }


def test_addresses_of_one_member_are_limited() -> None:
    many = {"loadBalancer": {"ingress": [{"hostname": f"a{number}"} for number in range(5_000)]}}
    found = summed("", "Service", many, {"loadBalancer": {"ingress": [{"hostname": "b"}]}})
    assert len(found["loadBalancer"]["ingress"]) == 65


def test_kinds_with_generations_are_distinguished_by_group() -> None:
    assert tells_generations("apps", "Deployment")
    assert not tells_generations("apps.example.com", "Deployment")


@pytest.mark.parametrize(("group", "kind"), [("", "Service"), ("networking.k8s.io", "Ingress")])
def test_an_address_is_shown_only_if_it_is_of_the_networks_of_its_cluster(group: str, kind: str) -> None:
    """kube-proxy of the hub would take the traffic of any other."""
    ranges = {"m1": (ip_network("192.0.2.0/24"), ip_network("2001:db8::/32"))}
    odd = [{"ip": "8.8.8.8"}, {"ip": "nonsense"}, {"ip": 5}, {"ip": "10.0.0.1", "hostname": "db"}]
    own = [{"ip": "192.0.2.7"}, {"ip": "2001:db8::1", "hostname": "web"}]
    copies = {"m1": {"loadBalancer": {"ingress": [*odd, *own]}}, "m2": {"loadBalancer": {"ingress": own}}}
    found = sum_status(group, kind, {}, Copies(copies, True, ranges), generation=1)
    assert found == {
        "loadBalancer": {
            "ingress": [
                *({"hostname": name} for name in ("m1", "m1", "m1", "db")),
                *({"hostname": "m1", "ip": "192.0.2.7"}, {"ip": "2001:db8::1", "hostname": "web"}),
                *({"hostname": name} for name in ("m2", "web")),
            ]
        }
    }


def test_networks_that_are_none_are_refused_with_their_field() -> None:
    text = b"apiVersion: reberth.dev/v1alpha1\nkind: FederationSettings\n"
    text += b"statuses: {addresses: {m1: [10.0.0.1/8]}}"
    with pytest.raises(SettingsError, match="statuses.*10.0.0.1/8 has host bits set"):
        parse(text, FederationSettings)


@pytest.mark.parametrize(
    ("kind", "said", "wanted"),
    [
        (
            "Deployment",
            {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 2},
            {"readyReplicas": 0, "availableReplicas": 0, "unavailableReplicas": 3},
        ),
        (
            "DaemonSet",
            {"desiredNumberScheduled": 4, "numberReady": 4, "numberAvailable": 4},
            {"numberReady": 0, "numberAvailable": 0, "numberUnavailable": 4},
        ),
        ("PodDisruptionBudget", {"currentHealthy": 2, "expectedPods": 2}, {"currentHealthy": 0}),
        ("Job", {"active": 1, "ready": 1, "succeeded": 2}, {"ready": 0}),
        ("Pod", {"phase": "Running"}, {"phase": "Unknown"}),
        ("Pod", {"phase": "Succeeded"}, {}),
        ("Pod", {"phase": ["Running"]}, {}),
        ("Service", {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}, {}),
    ],
)
def test_nothing_is_ready_in_a_member_that_is_silent(kind: str, said: Any, wanted: Any) -> None:
    assert forget_readiness(kind, said) == said | wanted
