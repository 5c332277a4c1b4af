"""Which replacements the Pod Security level of their namespace forbids."""

from typing import Any

import pytest

from reberth.forecast.replacement.refusals import CANNOT_BE_REPLACED
from reberth.values.refusal import Refused
from tests.support.builders import Object, container
from tests.support.forecast.replicas import NAMESPACE, next_of, refused_of, replica, replica_owner

SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def enforcing(level: str, *, since: dict[str | None, str] | None = None) -> Object:
    labels = {"pod-security.kubernetes.io/enforce": level}
    managed = [
        {"manager": "m", "fieldsV1": {"f:metadata": {"f:labels": {f"f:{label}": {}}}}, "time": time}
        for time, label in (since or {}).items()
    ]
    meta = {"name": NAMESPACE, "uid": "ns", "labels": labels, "managedFields": managed}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def template(context: Object | None = None, **spec: Any) -> tuple[Object, Object]:
    made = {"containers": [container(securityContext={**SAFE, **(context or {})})], **spec}
    return replica_owner(**made), replica(**made)


@pytest.mark.parametrize("level", ["privileged", "baseline", "restricted", "unknown"])
def test_a_pod_with_every_precaution_is_allowed_everywhere(level: str) -> None:
    assert not isinstance(next_of(*template(), enforcing(level)), Refused)


@pytest.mark.parametrize(
    ("context", "spec", "what"),
    [
        ({}, {"hostPID": True}, "host namespaces"),
        ({}, {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "hostPath volumes"),
        ({}, {"initContainers": [container("i", ports=[{"containerPort": 1, "hostPort": 1}])]}, "hostPort"),
        ({}, {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}, "sysctls"),
        ({"privileged": True}, {}, "privileged containers"),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, {}, "added capabilities"),
        ({"procMount": "Unmasked"}, {}, "procMount"),
        ({"seccompProfile": {"type": "Unconfined"}}, {}, "seccompProfile"),
        ({"appArmorProfile": {"type": "Unconfined"}}, {}, "appArmorProfile"),
        ({"seLinuxOptions": {"type": "spc_t"}}, {}, "seLinuxOptions"),
        ({"seLinuxOptions": {"user": "root"}}, {}, "seLinuxOptions"),
        ({}, {"securityContext": {"windowsOptions": {"hostProcess": True}}}, "hostProcess"),
    ],
)
def test_what_is_below_the_baseline_is_forbidden(context: Object, spec: Object, what: str) -> None:
    objects = template(context, **spec)
    for level in ("baseline", "restricted"):
        refused = refused_of(*objects, enforcing(level))
        assert refused.rule == CANNOT_BE_REPLACED
        assert refused.reason.endswith(f"Pod Security level {level} forbids {what}")
    assert not isinstance(next_of(*objects, enforcing("privileged")), Refused)


@pytest.mark.parametrize(
    ("context", "spec", "what"),
    [
        ({"allowPrivilegeEscalation": True}, {}, "allowPrivilegeEscalation != false"),
        ({"capabilities": None}, {}, "unrestricted capabilities"),
        ({"capabilities": {"drop": ["KILL"]}}, {}, "unrestricted capabilities"),
        ({"capabilities": {"drop": ["ALL"], "add": ["KILL"]}}, {}, "unrestricted capabilities"),
        ({"seccompProfile": None}, {}, "seccompProfile"),
        ({"runAsNonRoot": None}, {}, "runAsNonRoot != true"),
        ({"runAsUser": 0}, {}, "runAsNonRoot != true"),
        ({}, {"securityContext": {"runAsUser": 0}}, "runAsUser=0"),
        ({}, {"volumes": [{"name": "v", "rbd": {"monitors": [], "image": "i"}}]}, "volume types"),
        (
            {"runAsNonRoot": False, "capabilities": None},
            {"os": {"name": "windows"}},
            "runAsNonRoot != true",
        ),
    ],
)
def test_what_is_not_restricted_is_allowed_by_the_baseline_alone(
    context: Object, spec: Object, what: str
) -> None:
    objects = template(context, **spec)
    assert not isinstance(next_of(*objects, enforcing("baseline")), Refused)
    refused = refused_of(*objects, enforcing("restricted"))
    assert refused.reason.endswith(f"Pod Security level restricted forbids {what}")


def test_the_pod_answers_for_its_containers() -> None:
    whole = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}
    objects = template({"runAsNonRoot": None, "seccompProfile": None}, securityContext=whole)
    assert not isinstance(next_of(*objects, enforcing("restricted")), Refused)


@pytest.mark.parametrize(
    ("context", "spec", "level", "version", "is_allowed"),
    [
        ({"runAsNonRoot": None}, {"hostUsers": False}, "restricted", None, True),
        ({"runAsUser": 0}, {"hostUsers": False}, "restricted", "latest", True),
        ({}, {"hostUsers": False, "securityContext": {"runAsUser": 0}}, "restricted", "v1.35", True),
        ({"procMount": "Unmasked"}, {"hostUsers": False}, "baseline", "v1.36", True),
        ({"procMount": "Unmasked"}, {"hostUsers": False}, "restricted", None, False),
        ({"procMount": "Unmasked"}, {"hostUsers": False}, "baseline", "v1.34", False),
        ({"runAsNonRoot": None}, {"hostUsers": False}, "restricted", "v1.9", False),
        ({"runAsNonRoot": None}, {"hostUsers": True}, "restricted", None, False),
        ({"seccompProfile": None}, {"hostUsers": False}, "restricted", None, False),
    ],
)
def test_a_user_namespace_of_its_own_may_have_a_root(
    context: Object, spec: Object, level: str, version: str | None, *, is_allowed: bool
) -> None:
    namespace = enforcing(level)
    if version:
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce-version"] = version
    assert isinstance(next_of(*template(context, **spec), namespace), Refused) is not is_allowed


LABEL = "pod-security.kubernetes.io/enforce"
BEFORE, SOON, AFTER = "2026-10-01T00:00:00Z", "2026-10-31T23:59:30Z", "2026-11-02T00:00:00Z"


@pytest.mark.parametrize(
    ("since", "spec", "is_allowed"),
    [
        ({BEFORE: LABEL}, {}, True),
        ({BEFORE: LABEL, AFTER: "another"}, {}, True),
        ({BEFORE: LABEL, AFTER: f"{LABEL}-version"}, {}, False),
        ({SOON: LABEL}, {}, False),
        ({AFTER: LABEL}, {}, False),
        ({BEFORE: "another"}, {}, False),
        ({"no time": LABEL}, {}, False),
        ({None: LABEL, BEFORE: LABEL}, {}, False),
        ({BEFORE: LABEL}, {"generation": 2}, False),
    ],
)
def test_what_a_pod_of_the_template_passed_a_webhook_mends(
    since: dict[str | None, str], spec: Object, *, is_allowed: bool
) -> None:
    """Or the API server exempts it."""
    found = next_of(replica_owner(), replica(**spec), enforcing("restricted", since=since))
    assert isinstance(found, Refused) is not is_allowed


def test_pods_of_a_template_that_may_have_been_edited_prove_nothing() -> None:
    namespace = enforcing("restricted", since={BEFORE: LABEL})
    assert refused_of(replica_owner(standalone=True), replica(), namespace).rule == CANNOT_BE_REPLACED
