from typing import Any

import msgspec
import pytest

from federation.api import ResourceBinding
from federation.objects.resources import HeldWork
from federation.objects.template import Object
from federation.propagation.aggregation import change_binding_status, change_template_status, has_ready_copy
from tests.support.federation.objects import NOW, WEB, claimed_binding, given, template, work

IDENTIFIER = {"ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web"}


def copy(ready: int, *, applied: bool = True, message: str = "") -> HeldWork:
    condition = {"type": "Applied", "status": str(applied), "message": message}
    status = {"replicas": 2, "readyReplicas": ready}
    described = {"identifier": IDENTIFIER, "status": status, "health": "Healthy"}
    wire: Object = {"metadata": {"name": "w"}}
    return work(wire, conditions=[condition], manifestStatuses=[described])


def after(one: ResourceBinding, change: Any) -> ResourceBinding:
    wire = msgspec.to_builtins(one) | {"status": change["status"]}
    return msgspec.json.decode(msgspec.json.encode(wire), type=ResourceBinding)


def test_aggregated_status_has_each_copy_and_is_written_once() -> None:
    one = claimed_binding(clusters=given(m1=1, m2=1))
    works = {"m2": copy(1, applied=False, message="refused"), "m1": copy(2)}
    change = change_binding_status(one, works, now=NOW)
    assert change is not None
    first, second = change["status"]["aggregatedStatus"]
    assert first == {
        "clusterName": "m1",
        "applied": True,
        "status": {"replicas": 2, "readyReplicas": 2},
        "health": "Healthy",
    }
    assert (second["applied"], second["appliedMessage"]) == (False, "refused")
    assert change["status"]["conditions"][0]["reason"] == "FullyAppliedFailed"
    assert change_binding_status(after(one, change), works, now=NOW + 9) is None


def test_the_clock_of_a_copy_is_told_from_its_work_alone() -> None:
    first, later = "2027-01-15T08:00:00Z", "2027-01-15T09:00:00Z"
    said = {"reason": "R", "message": "", "status": "True"}
    conditions = [
        {"type": "Reported", "lastTransitionTime": first, **said},
        {"type": "Settled", "lastTransitionTime": first, **said},
        {"type": "Failing", "lastTransitionTime": later, **said},
    ]
    wire: Object = {"metadata": {"name": "w"}}
    works = {"m1": work(wire, conditions=conditions)}
    one = claimed_binding(clusters=given(m1=1))
    change = change_binding_status(one, works, now=NOW)
    assert change is not None
    told = change["status"]["aggregatedStatus"][0]
    assert (told["settled"], told["creationTimestamp"], told["unhealthySince"]) == (True, first, later)
    assert change_binding_status(after(one, change), works, now=NOW + 9) is None


def test_large_statuses_of_many_members_leave_the_binding_writable_and_the_small_ones_told() -> None:
    def large(size: int) -> HeldWork:
        described = {
            "identifier": IDENTIFIER,
            "status": {"replicas": 2, "text": "x" * size},
            "health": "Healthy",
        }
        wire: Object = {"metadata": {"name": "w"}}
        return work(wire, manifestStatuses=[described])

    one, works = claimed_binding(clusters=given(m99=1)), {f"m{number}": large(60_000) for number in range(25)}
    change = change_binding_status(one, {**works, "m99": copy(1)}, now=NOW)
    assert change is not None
    assert len(msgspec.json.encode(change)) < 2**19 + 2**13
    told = {each["clusterName"]: each for each in change["status"]["aggregatedStatus"]}
    assert len(told) == 26
    assert "status" in told["m99"], "the largest ones are left out"
    assert sum("status" in each for each in told.values()) == 9
    assert told["m9"]["health"] == "Healthy", "its health is told in any case"
    assert change_binding_status(after(one, change), {**works, "m99": copy(1)}, now=NOW) is None


def test_all_copies_applied_is_fully_applied() -> None:
    one = claimed_binding(clusters=given(m1=1))
    change = change_binding_status(one, {"m1": copy(2), "old": copy(0, applied=False)}, now=NOW)
    assert change is not None
    assert change["status"]["conditions"][0]["status"] == "True"


def test_a_binding_is_not_fully_applied_before_its_status_covers_every_cluster() -> None:
    """Both are written at once, so that a reader never finds the one without the other."""
    one = claimed_binding(clusters=given(m1=1))
    first = change_binding_status(one, {"m1": copy(2)}, now=NOW)
    grown = msgspec.structs.replace(
        after(one, first),
        spec=msgspec.structs.replace(
            one.spec, clusters=claimed_binding(clusters=given(m1=1, m2=1)).spec.clusters
        ),
    )
    change = change_binding_status(grown, {"m1": copy(2)}, now=NOW)
    assert change is not None
    assert change["status"]["conditions"][0]["status"] == "False"
    change = change_binding_status(grown, {"m1": copy(2), "m2": copy(2)}, now=NOW)
    assert change is not None
    assert [each["clusterName"] for each in change["status"]["aggregatedStatus"]] == ["m1", "m2"]


def test_a_copy_without_a_report_is_unknown() -> None:
    change = change_binding_status(claimed_binding(), {"m1": work({"metadata": {"name": "w"}})}, now=NOW)
    assert change is not None
    assert change["status"] == {
        "aggregatedStatus": [{"clusterName": "m1", "applied": False, "health": "Unknown"}]
    }
    assert change_binding_status(claimed_binding(), {}, now=NOW) is None


def test_a_template_shows_the_sum_of_its_copies() -> None:
    one, shown = claimed_binding(clusters=given(m1=1, m2=1)), template(generation=5)
    works = {"m1": copy(2), "m2": copy(1)}
    change = change_template_status(WEB, one, shown, works)
    assert change == {"metadata": {"uid": "uid-web"}, "status": {"replicas": 4, "readyReplicas": 3}}
    again = template(generation=5, status=change["status"])
    assert change_template_status(WEB, one, again, works) is None


def test_status_is_summed_and_observed_only_when_all_clusters_reported() -> None:
    one = claimed_binding(clusters=given(m1=1, m2=1))
    told = {"replicas": 1, "observedGeneration": 3, "generation": 3, "resourceTemplateGeneration": 5}
    described = {"identifier": IDENTIFIER, "status": told}
    works = {"m1": work({"metadata": {"name": "w"}}, manifestStatuses=[described])}
    change = change_template_status(WEB, one, template(generation=5), works)
    assert change == {"metadata": {"uid": "uid-web"}, "status": {"replicas": 1}}
    works["m2"] = works["m1"]
    change = change_template_status(WEB, one, template(generation=5), works)
    assert change == {"metadata": {"uid": "uid-web"}, "status": {"replicas": 2, "observedGeneration": 5}}


def test_clusters_of_dependents_must_be_applied_as_well() -> None:
    one = claimed_binding(requiredBy=[{"name": "web", "clusters": given(m1=1)}])
    change = change_binding_status(one, {"m1": copy(2)}, now=NOW)
    assert change is not None
    assert change["status"]["conditions"][0]["reason"] == "FullyAppliedSuccess"


def test_copies_in_a_silent_member_are_kept_and_do_not_count_as_ready() -> None:
    one, works = claimed_binding(clusters=given(m1=1, m2=1)), {"m1": copy(2), "m2": copy(1)}
    change = change_template_status(WEB, one, template(), works, silent={"m1"})
    assert change == {
        "metadata": {"uid": "uid-web"},
        "status": {"replicas": 4, "readyReplicas": 1, "unavailableReplicas": 2},
    }
    told = change_binding_status(one, works, now=NOW, silent={"m1"})
    assert told is not None
    assert [
        (each["health"], each["status"]["readyReplicas"]) for each in told["status"]["aggregatedStatus"]
    ] == [
        ("Unknown", 2),
        ("Healthy", 1),
    ]


def reporting(**status: Any) -> HeldWork:
    identifier = {"ordinal": 0, "version": "v1", "kind": "Deployment", "name": "web"}
    return work({"metadata": {"name": "w"}}, manifestStatuses=[{"identifier": identifier, "status": status}])


def kind(api_version: str, name: str) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": name, "namespace": "default", "name": "web"}


@pytest.mark.parametrize(
    ("spec", "works", "silent", "is_ready"),
    [
        pytest.param({}, {"m1": reporting(readyReplicas=1)}, (), True, id="one is ready"),
        pytest.param({}, {"m1": reporting(replicas=3), "m2": reporting()}, (), False, id="none is ready"),
        pytest.param({}, {"m1": reporting(readyReplicas=3)}, ("m1",), False, id="nobody knows"),
        pytest.param(
            {}, {"m1": reporting(readyReplicas=1), "m2": reporting(readyReplicas=1)}, ("m1",), True, id="one"
        ),
        pytest.param({}, {}, (), False, id="no copy at all"),
        pytest.param({"replicas": 0}, {"m1": reporting()}, (), None, id="scaled to nothing"),
        pytest.param(
            {"resource": kind("apps/v1", "DaemonSet"), "replicas": 0},
            {"m1": reporting(numberReady=2)},
            (),
            True,
            id="a DaemonSet",
        ),
        pytest.param(
            {"resource": kind("v1", "ConfigMap")}, {"m1": reporting()}, (), None, id="it has no pods"
        ),
    ],
)
def test_a_workload_is_up_where_a_pod_is_ready_of_which_something_is_heard(
    spec: dict[str, Any], works: dict[str, HeldWork], silent: tuple[str, ...], *, is_ready: bool | None
) -> None:
    assert has_ready_copy(claimed_binding(**spec), works, silent) is is_ready
