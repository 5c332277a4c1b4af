"""Pods that nobody is known to replace stay where they are."""

from typing import Any

import pytest

from reberth.cluster.pods.identity import name_history
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused
from rescheduler.protections import ProtectionSettings, explain, refuse_protected
from tests.support.builders import owner
from tests.support.rescheduler.guardrails import (
    WEB,
    Object,
    context_of,
    history,
    past_move,
    place_of,
    replica,
    workload,
)
from tests.support.rescheduler.other_projects import OtherProject, read_other_projects

PROJECTS = read_other_projects()
CLUSTER = owner("Cluster", "db", api_version="postgresql.cnpg.io/v1")
ADVICE = "if it does, add postgresql.cnpg.io/Cluster to replacingKinds"
UNKNOWN = Refused("UnknownController", f"Cluster db is not known to replace its pods; {ADVICE}")
KNOWN = [
    WEB,
    owner("StatefulSet", "web"),
    owner("ReplicaSet", "web", api_version="apps/v1beta2"),
    owner("ReplicationController", "web", api_version="v1"),
]

by_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.kind)


def ask(
    owned_by: Object | None, *others: Object, fields: Object | None = None, **settings: Any
) -> Refused | None:
    pods = [replica(name, owned_by=owned_by, **(fields or {})) for name in ("web-1", "web-2")]
    context = context_of(*pods, *others, protections=ProtectionSettings(**settings))
    return refuse_protected(place_of(context), context)


def ask_project(project: OtherProject, **settings: Any) -> str | None:
    refused = ask(project.own("one"), fields={"restartPolicy": project.restart_policy}, **settings)
    return refused.rule if refused else None


@pytest.mark.parametrize("owned_by", KNOWN)
@pytest.mark.parametrize("policy", [{}, {"restartPolicy": "Always"}])
def test_the_controllers_of_kubernetes_replace_their_pods(owned_by: Object, policy: Object) -> None:
    assert ask(owned_by, fields=policy) is None


def test_the_owner_of_the_controller_may_be_of_any_kind() -> None:
    above = owner("Kafka", "log", api_version="kafka.example.com/v1")
    assert ask(owner("StatefulSet", "web"), workload("StatefulSet", ownerReferences=[above])) is None


@by_project
def test_pods_of_another_project_are_kept_by_the_documented_rule(project: OtherProject) -> None:
    assert ask_project(project) == (project.rule or None)


@by_project
def test_pods_of_another_project_are_moved_with_the_documented_settings(project: OtherProject) -> None:
    named = {
        "movable_restart_policies": tuple(project.settings.get("movableRestartPolicies", ["Always"])),
        "replacing_kinds": tuple(project.settings.get("replacingKinds", [])),
    }
    assert ask_project(project, **named) == (None if project.settings else project.rule or None)


@by_project
def test_a_movable_restart_policy_alone_moves_no_pod_of_an_unknown_controller(project: OtherProject) -> None:
    every = ("Always", "OnFailure", "Never")
    wanted = "UnknownController" if project.rule else None
    assert ask_project(project, movable_restart_policies=every) == wanted


def test_the_table_has_rows_of_both_rules_and_none_with_and_without_settings() -> None:
    assert {(project.rule, bool(project.settings)) for project in PROJECTS} == {
        ("RestartPolicy", False),
        ("RestartPolicy", True),
        ("UnknownController", True),
        ("", False),
    }


@pytest.mark.parametrize(
    "entry", ["postgresql.cnpg.io/Cluster", "postgresql.cnpg.io/v1/Cluster", "postgresql.cnpg.io/v2/Cluster"]
)
def test_a_kind_is_named_with_or_without_a_version(entry: str) -> None:
    assert ask(CLUSTER) == UNKNOWN
    assert ask(CLUSTER, replacing_kinds=(entry,)) is None


@pytest.mark.parametrize("entry", ["example.com/Cluster", "postgresql.cnpg.io/Pooler", "v1/Cluster"])
def test_another_kind_that_is_named_helps_nothing(entry: str) -> None:
    assert ask(CLUSTER, replacing_kinds=(entry,)) == UNKNOWN


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [("CloneSet", "apps.kruise.io/v1alpha1"), ("StatefulSet", "apps.kruise.io/v1beta1")],
)
def test_kinds_that_are_known_to_replace_their_pods_need_not_be_named(kind: str, api_version: str) -> None:
    assert ask(owner(kind, "web", api_version=api_version)) is None
    refused = ask(owner("DaemonSet", "web", api_version="apps.kruise.io/v1alpha1"))
    assert refused is not None


@pytest.mark.parametrize("api_version", ["serving.example.com/v1", "example.com/v1", "extensions/v1beta1"])
@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "ReplicationController"])
def test_a_known_kind_of_another_group_is_unknown(kind: str, api_version: str) -> None:
    refused = ask(owner(kind, "web", api_version=api_version))
    assert refused is not None
    assert refused.rule == "UnknownController"


def test_the_pods_of_a_job_are_the_matter_of_its_own_rule() -> None:
    job = owner("Job", "sum", api_version="batch/v1")
    never = {"restartPolicy": "Never"}
    refused = ask(job, fields=never)
    assert refused is not None
    assert refused.rule == "JobPod"
    assert ask(job, fields=never, job_pods=False) is None


def test_the_job_of_another_group_is_not_known() -> None:
    job = owner("Job", "train", api_version="batch.volcano.sh/v1alpha1")
    every = ("Always", "OnFailure", "Never")
    refused = [
        ask(job, fields={"restartPolicy": "OnFailure"}, job_pods=False, movable_restart_policies=policies)
        for policies in (("Always",), every)
    ]
    assert [each and each.rule for each in refused] == ["RestartPolicy", "UnknownController"]


def test_the_mark_that_lifts_a_bare_pod_lifts_no_restart_policy() -> None:
    evictable = {"annotations": {"descheduler.alpha.kubernetes.io/evict": ""}}
    assert ask(None, fields=evictable, last_ready=False) is None
    assert ask(None, fields={**evictable, "restartPolicy": "Never"}, last_ready=False) == Refused(
        "RestartPolicy", "restartPolicy Never: the pod runs to an end"
    )


def test_a_pod_without_a_movable_controller_has_only_the_rule_of_that() -> None:
    context = context_of(replica(owned_by=owner("DaemonSet", "log")))
    said = [refused.rule for _, refused in explain(place_of(context), context) if refused]
    assert said == ["DaemonSetPod", "LastReady"]


def remembered(*past: Object) -> Object:
    """The history of the cluster."""
    made = history("db", kind="Cluster", past=list(past))
    root = {key: CLUSTER[key] for key in ("apiVersion", "kind", "name", "uid")}
    name = name_history(WorkloadIdentity(*root.values()))
    return made | {"metadata": made["metadata"] | {"name": name}, "spec": {"workload": root}}


def test_an_earlier_replacement_is_shown_and_permits_nothing() -> None:
    times = ("2027-01-15T07:50:00.000000Z", "2027-01-15T07:52:00.000000Z")
    past = [past_move("Better", time, landedOn=node) for time, node in zip(times, ("n2", "n3"), strict=True)]
    refused = ask(CLUSTER, remembered(*reversed(past)))
    shown = f" (after an eviction that ended {times[1]} a new pod landed on n3)"
    assert refused == Refused("UnknownController", UNKNOWN.reason + shown)


def test_a_move_that_landed_nowhere_is_no_evidence() -> None:
    assert ask(CLUSTER, remembered(past_move("Pending"))) == UNKNOWN
    assert ask(CLUSTER, remembered()) == UNKNOWN
