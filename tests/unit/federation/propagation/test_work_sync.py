from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.work_sync import (
    LARGEST_STATUS,
    AppliedManifest,
    ManifestOutcome,
    change_work_status,
    digest,
    explain_rejection,
    find_conflict,
    find_foreign_role,
    hold_replicas,
    is_as_written,
    is_missing_namespace,
    is_newest_applied,
    key_of_bound_role,
    key_of_manifest,
    list_manifests,
    mark_of,
    omit_retained_replicas,
    work_of,
)
from federation.propagation.works import write_work
from reberth.protocol.nesting import DEEPEST
from reberth.records import ObjectMeta
from reberth.values.errors import ApiError, Forbidden, NotFound
from reberth.values.timestamp import write_time
from tests.support.federation.objects import NOW, WEB, as_template, claimed_binding, template, work

ODD_HEADS: tuple[Any, ...] = (
    [{"metadata": {"name": 5}}],
    [{"metadata": {"name": "a", "namespace": 5}}],
    [{"metadata": {"name": "a", "labels": [1]}}],
    [{"metadata": {"name": "a", "annotations": "x"}}],
)
RETAIN = "resourcetemplate.karmada.io/retain-replicas"


def made(*, conflict: str | None = None, **status: Any) -> HeldWork:
    return work(write_work(WEB, claimed_binding(conflictResolution=conflict), template(), "m1", 2), **status)


def sent(one: HeldWork) -> Object:
    (manifest,) = list_manifests(one)
    assert manifest is not None
    return manifest


def found(one: HeldWork, *, generation: int = 4, **status: Any) -> ResourceTemplate:
    """What the member has made of it."""
    manifest = sent(one)
    given = {"uid": "there", "generation": generation, "resourceVersion": "8"}
    wire = manifest | {"metadata": manifest["metadata"] | given, "status": status}
    return as_template(wire)


def test_a_sent_manifest_names_its_work() -> None:
    manifest = sent(made())
    assert key_of_manifest(manifest) == WEB
    assert work_of(found(made()).metadata) == ("karmada-es-m1", made().metadata.name)
    assert work_of(ObjectMeta("a", annotations={"work.karmada.io/name": "half"})) is None


@pytest.mark.parametrize(
    "manifests", [[], [3], [{"kind": "A"}], [{"metadata": {}}], [{"metadata": 1}], *ODD_HEADS]
)
def test_a_work_that_holds_no_object_has_nothing_to_send(manifests: Any) -> None:
    wire = {"metadata": {"name": "a"}, "spec": {"workload": {"manifests": manifests}}}
    assert list_manifests(work(wire)) == [None]


@pytest.mark.parametrize(
    ("policy", "labels", "is_refused"),
    [("Abort", None, True), ("Overwrite", None, False), ("Abort", {"karmada.io/managed": "true"}, False)],
)
def test_an_unmanaged_object_is_taken_over_only_with_overwrite(
    policy: str, labels: Any, *, is_refused: bool
) -> None:
    there = ResourceTemplate(ObjectMeta("web", labels=labels))
    assert bool(find_conflict(sent(made(conflict=policy)), there)) is is_refused
    assert find_conflict(sent(made(conflict=policy)), None) is None


def test_an_unchanged_manifest_is_not_sent_again() -> None:
    manifest, there = sent(made()), found(made())
    written = AppliedManifest(digest(manifest), "there", mark_of(there.metadata))
    assert is_as_written(written, manifest, there)
    assert not is_as_written(None, manifest, there)
    assert not is_as_written(written, manifest, None)
    assert not is_as_written(written, {**manifest, "spec": {}}, there)
    assert not is_as_written(written, manifest, found(made(), generation=5))
    bare = msgspec.structs.replace(there, metadata=msgspec.structs.replace(there.metadata, labels=None))
    assert not is_as_written(written, manifest, bare)


def test_an_object_without_generation_is_tracked_by_resource_version() -> None:
    assert mark_of(ObjectMeta("a", resource_version="8")) == "v8"
    assert mark_of(ObjectMeta("a", resource_version="8", generation=2)) == "g2"


def test_replicas_that_others_set_are_not_sent() -> None:
    manifest, there = sent(made()), found(made())
    assert omit_retained_replicas(manifest, there) is manifest
    assert hold_replicas(manifest, there) is None
    manifest["metadata"]["labels"][RETAIN] = "true"
    assert omit_retained_replicas(manifest, None)["spec"]["replicas"] == 2
    assert "replicas" not in omit_retained_replicas(manifest, there)["spec"]


def test_replicas_get_another_manager_before_they_are_omitted() -> None:
    manifest = sent(made())
    manifest["metadata"]["labels"][RETAIN] = "true"
    assert hold_replicas(manifest, None) is None
    assert hold_replicas(manifest, ResourceTemplate(ObjectMeta("web"))) is None
    held = hold_replicas(manifest, found(made()))
    assert held is not None
    assert held["metadata"] == {"name": "web", "namespace": "default"}
    assert held["spec"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (NotFound("patch", "404 page not found"), "apps/v1 Deployment is not served in this cluster"),
        (NotFound("patch", 'namespaces "a" not found'), 'namespaces "a" not found'),
        (Forbidden("patch", "exceeded quota"), "exceeded quota"),
    ],
)
def test_a_members_rejection_is_reported_with_its_cause(error: ApiError, wanted: str) -> None:
    assert explain_rejection(error, WEB) == wanted


def test_only_a_namespace_that_is_missing_is_made() -> None:
    assert is_missing_namespace('namespaces "a" not found', "a")
    assert not is_missing_namespace('namespaces "b" not found', "a")
    assert not is_missing_namespace('namespaces "" not found', "")


def test_the_generation_annotation_of_a_copy_is_reported() -> None:
    there = as_template(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "generation": 4,
                "annotations": {"resourcetemplate.karmada.io/generation": "7"},
            },
            "status": {"replicas": 2},
        }
    )
    change = change_work_status(made(), [ManifestOutcome(WEB, "deployments", there, None)], now=NOW)
    assert change is not None
    assert change["status"]["manifestStatuses"][0]["status"] == {
        "replicas": 2,
        "generation": 4,
        "resourceTemplateGeneration": 7,
    }


@pytest.mark.parametrize("odd", ["9" * 5000, "9" * 19, "-1", "x"])
def test_a_generation_of_the_template_that_is_none_is_left_out(odd: str) -> None:
    annotations = {"resourcetemplate.karmada.io/generation": odd}
    metadata = {"name": "web", "generation": 4, "annotations": annotations}
    there = as_template({**sent(made()), "metadata": metadata, "status": {"replicas": 2}})
    change = change_work_status(made(), [ManifestOutcome(WEB, "deployments", there, None)], now=NOW)
    assert change is not None
    assert change["status"]["manifestStatuses"][0]["status"] == {"replicas": 2, "generation": 4}


def test_a_pod_that_is_being_deleted_in_its_member_is_reported_as_unhealthy() -> None:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for deleted, health in ((None, "Healthy"), ("2026-11-19T05:00:00Z", "Unhealthy")):
        metadata = {"name": "web", "deletionTimestamp": deleted}
        there = as_template({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})
        key = Key("v1", "Pod", "default", "web")
        change = change_work_status(made(), [ManifestOutcome(key, "pods", there, None)], now=NOW)
        assert change is not None
        assert change["status"]["manifestStatuses"][0]["health"] == health


def test_a_status_is_written_once() -> None:
    there = found(made(), replicas=2, updatedReplicas=2, availableReplicas=2, observedGeneration=4)
    change = change_work_status(made(), [ManifestOutcome(WEB, "deployments", there, None)], now=NOW)
    assert change is not None
    (status,) = change["status"]["manifestStatuses"]
    assert status["health"] == "Healthy"
    assert status["identifier"]["ordinal"] == 0
    assert change["status"]["conditions"][0]["reason"] == "AppliedSuccessful"
    after = made(**change["status"])
    assert change_work_status(after, [ManifestOutcome(WEB, "deployments", there, None)], now=NOW) is None


def test_the_condition_applied_tells_which_version_was_applied_of_a_kind_that_is_rolled_out() -> None:
    rolled, outcome = made(), ManifestOutcome(WEB, "deployments", found(made()), None)
    change = change_work_status(rolled, [outcome], now=NOW, generation=3)
    assert change is not None
    assert condition_of(change, "Applied")["observedGeneration"] == 3
    after = made(**change["status"])
    assert change_work_status(after, [outcome], now=NOW, generation=3) is None
    next_one = change_work_status(after, [outcome], now=NOW, generation=4)
    assert next_one is not None
    assert condition_of(next_one, "Applied")["observedGeneration"] == 4
    config = Key("v1", "ConfigMap", "default", "web")
    plain = change_work_status(
        made(), [ManifestOutcome(config, "configmaps", None, "no")], now=NOW, generation=3
    )
    assert plain is not None
    assert "observedGeneration" not in condition_of(plain, "Applied"), "it would be a write for each version"


@pytest.mark.parametrize(
    ("applied", "suspended", "wanted"),
    [(3, None, False), (4, None, True), (None, None, True), (3, True, True)],
)
def test_what_is_told_of_a_copy_may_be_about_an_older_version(
    applied: int | None, *, suspended: bool | None, wanted: bool
) -> None:
    said = {"type": "Applied", "status": "True"} | ({"observedGeneration": applied} if applied else {})
    one = made(conditions=[said])
    meta, spec = replace(one.metadata, generation=4), replace(one.spec, suspend_dispatching=suspended)
    assert is_newest_applied(replace(one, metadata=meta, spec=spec)) is wanted


def test_a_rollout_is_a_failure_only_if_it_is_counted() -> None:
    status = {"replicas": 2, "availableReplicas": 2, "updatedReplicas": 1, "observedGeneration": 1}
    there = found(made(), **status)
    outcome = [ManifestOutcome(WEB, "deployments", there, None)]
    for counts in (False, True):
        change = change_work_status(made(), outcome, now=NOW, counts_rollouts=counts)
        assert change is not None
        assert any(each["type"] == "Failing" for each in change["status"]["conditions"]) is counts


def condition_of(change: Any, name: str) -> Any:
    return next(each for each in change["status"]["conditions"] if each["type"] == name)


def test_a_problem_is_reported_and_a_deleted_copy_has_no_status() -> None:
    before = made(**change_of(found(made())))
    change = change_work_status(before, [ManifestOutcome(WEB, "deployments", None, "no such kind")], now=NOW)
    assert change is not None
    assert change["status"]["manifestStatuses"] == []
    condition = condition_of(change, "Applied")
    assert (condition["status"], condition["message"]) == ("False", "no such kind")


def change_of(there: ResourceTemplate) -> Any:
    change = change_work_status(made(), [ManifestOutcome(WEB, "deployments", there, None)], now=NOW)
    assert change is not None
    return change["status"]


RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("kind", "version", "role", "wanted"),
    [
        ("RoleBinding", RBAC, "Role", Key(RBAC, "Role", "shop", "deploy")),
        ("RoleBinding", RBAC, "ClusterRole", Key(RBAC, "ClusterRole", "", "deploy")),
        ("ClusterRoleBinding", RBAC, "ClusterRole", Key(RBAC, "ClusterRole", "", "deploy")),
        ("RoleBinding", "example.com/v1", "Role", None),
        ("Deployment", "apps/v1", "Role", None),
    ],
)
def test_a_binding_of_roles_grants_one_role(kind: str, version: str, role: str, wanted: Key | None) -> None:
    meta = {"name": "x", "namespace": "shop"}
    manifest = {
        "apiVersion": version,
        "kind": kind,
        "metadata": meta,
        "roleRef": {"kind": role, "name": "deploy"},
    }
    assert key_of_bound_role(manifest) == wanted


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"karmada.io/managed": "true"}, None),
        ({"kubernetes.io/bootstrapping": "rbac-defaults"}, None),
        ({}, "is not managed by the federation"),
        (None, "is not there"),
    ],
)
def test_only_a_role_that_is_carried_too_or_comes_with_kubernetes_is_granted(
    labels: dict[str, str] | None, words: str | None
) -> None:
    role = None if labels is None else as_template({"metadata": {"name": "deploy", "labels": labels}})
    said = find_foreign_role(Key(RBAC, "ClusterRole", "", "deploy"), role)
    assert (said is None) == (words is None)
    assert words is None or words in (said or "")


def told(status: Any) -> Any:
    there = as_template({**sent(made()), "status": status})
    change = change_work_status(made(), [ManifestOutcome(WEB, "deployments", there, None)], now=NOW)
    assert change is not None
    return change["status"]["manifestStatuses"][0].get("status")


def test_a_status_that_the_hub_would_refuse_or_could_not_read_is_not_told() -> None:
    """Otherwise it would keep the binding from showing what all other clusters say."""
    deep: Any = 1
    for _ in range(DEEPEST):
        deep = [deep]
    assert told({"replicas": 1}) is not None
    for odd in ("x", [1], 5, {"a": "x" * LARGEST_STATUS}, {"a": deep}):
        assert told(odd) is None


def test_a_copy_that_fails_has_a_clock_in_its_work_and_an_object_without_health_has_none() -> None:
    there = found(made(), replicas=2)
    change = change_work_status(made(), [ManifestOutcome(WEB, "deployments", there, None)], now=NOW)
    assert change is not None
    told = {each["type"]: each for each in change["status"]["conditions"]}
    assert told["Failing"]["status"] == "True"
    assert told["Failing"]["lastTransitionTime"] == write_time(NOW)
    assert told["Settled"]["status"] == "False"
    config = Key("v1", "ConfigMap", "default", "web")
    change = change_work_status(made(), [ManifestOutcome(config, "configmaps", there, None)], now=NOW)
    assert change is not None
    assert [each["type"] for each in change["status"]["conditions"]] == ["Applied"]
