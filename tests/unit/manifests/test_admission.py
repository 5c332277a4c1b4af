"""The admission policies of all manifests: each is bound, denies, fails closed, and knows our accounts."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.repository import DOCS, MANIFESTS

FILES = sorted(MANIFESTS.rglob("*.yaml"))
# Some have no token of the API server; the others fill Secrets, and what trusts them, that RBAC names.
HARMLESS = ("-webhook", "-certificates", "-reader")
ACCOUNT = re.compile(r"system:serviceaccount:[a-z-]+:[a-z-]+")


def objects(kind: str) -> list[Any]:
    found = [one for file in FILES for one in yaml.safe_load_all(file.read_text()) if one]
    return [one for one in found if one["kind"] == kind]


POLICIES = {one["metadata"]["name"]: one["spec"] for one in objects("ValidatingAdmissionPolicy")}


def test_every_policy_is_bound_once_and_denies() -> None:
    bindings = [one["spec"] for one in objects("ValidatingAdmissionPolicyBinding")]
    assert sorted(one["policyName"] for one in bindings) == sorted(POLICIES)
    assert all(one["validationActions"] == ["Deny"] for one in bindings)


@pytest.mark.parametrize("name", POLICIES)
def test_what_cannot_be_judged_is_denied_with_a_reason(name: str) -> None:
    assert POLICIES[name]["failurePolicy"] == "Fail"
    assert all(one.get("message") or one.get("messageExpression") for one in POLICIES[name]["validations"])


def test_the_accounts_that_policies_name_are_those_of_the_manifests() -> None:
    metas = [one["metadata"] for one in objects("ServiceAccount")]
    ours = {f"system:serviceaccount:{meta['namespace']}:{meta['name']}" for meta in metas}
    named = set(ACCOUNT.findall(yaml.safe_dump(POLICIES, width=10_000)))
    assert named <= ours
    assert named >= {one for one in ours if not one.endswith(HARMLESS)}


@pytest.mark.parametrize("name", POLICIES)
def test_a_field_of_a_request_that_may_be_missing_is_asked_for_as_such(name: str) -> None:
    """A request for all objects has no name, one for a cluster-scoped object has no namespace."""
    text = yaml.safe_dump(POLICIES[name], width=10_000)
    assert not re.findall(r"request\.(?:name|namespace|subResource)\b", text)


def test_who_may_write_is_answered_by_roles_that_only_cluster_role_bindings_grant() -> None:
    """An authorizer that is asked without a namespace does not count roles of a namespace."""
    asked = {
        (group, resource)
        for spec in POLICIES.values()
        for group, resource in re.findall(
            r"authorizer\.group\('([^']+)'\)\.resource\('([^']+)'\)", yaml.safe_dump(spec, width=10_000)
        )
    }
    granted = {
        (group, resource): role["metadata"]["name"]
        for role in objects("ClusterRole")
        for rule in role["rules"]
        if rule["verbs"] == ["write"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert asked == {*granted, ("reberth.dev", "scoresources")}  # each add-on has a role of its own
    assert not any(".namespace(" in yaml.safe_dump(spec) for spec in POLICIES.values())
    bound = {one["roleRef"]["name"]: one["subjects"] for one in objects("ClusterRoleBinding")}
    for role in granted.values():
        names = {subject["name"] for subject in bound[role]}
        assert "reberth:operators" in names
        assert any(name.startswith("reberth-") for name in names)


def test_the_page_on_security_names_every_policy() -> None:
    page = Path(DOCS, "security.md").read_text()
    assert {name for name in POLICIES if f"`{name}`" not in page} == set()
