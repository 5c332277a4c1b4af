"""Policies in a plan: which bindings are made, changed and deleted."""

import msgspec
from msgspec.structs import replace

from reberth.records import OwnerReference
from tests.support.federation.clusters import AGGREGATED, DYNAMIC
from tests.support.federation.objects import as_template, policy, template
from tests.support.federation.planned import (
    DEPLOYMENT,
    DONE,
    SPACIOUS,
    ours,
    plan_of,
    steps_of,
)


def test_a_policy_makes_the_binding_of_what_it_selects() -> None:
    plan = plan_of(
        SPACIOUS, [], policies=[policy("all", placement=DYNAMIC)], templates=[(DEPLOYMENT, template())]
    )
    assert steps_of(plan) == [("Bind", "web-deployment", {"m1": 2, "m2": 1})]
    assert plan.bindings["default/web-deployment"].origin is None


def test_a_binding_follows_its_policy_and_moves() -> None:
    web = ours("web", 3, AGGREGATED, at={"m1": 3}, applied=AGGREGATED, status=DONE)
    only = {**AGGREGATED, "clusterAffinity": {"clusterNames": ["m2"]}}
    plan = plan_of(
        SPACIOUS, [web], policies=[policy("all", placement=only)], templates=[(DEPLOYMENT, template())]
    )
    assert steps_of(plan) == [("Update", "web-deployment", {}), ("Move", "web-deployment", {"m2": 3})]


def test_a_binding_without_its_template_is_deleted_if_all_templates_are_known() -> None:
    web = ours("web", 3, AGGREGATED, at={"m1": 3}, applied=AGGREGATED, status=DONE, uid="u1")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u1"}
    owned = replace(web.metadata, owner_references=(msgspec.convert(owner, OwnerReference),))
    gone, other = replace(web, metadata=owned), [policy("other", {"name": "other"})]
    known = frozenset([("apps/v1", "Deployment")])
    assert steps_of(plan_of(SPACIOUS, [gone], policies=other)) == []
    plan = plan_of(SPACIOUS, [gone], policies=other, complete=known)
    assert steps_of(plan) == [("Unbind", "web-deployment", {})]
    assert plan.bindings["default/web-deployment"].to is None


def test_a_template_that_cannot_be_read_gets_no_binding_and_fails_alone() -> None:
    pod = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "bad"}}}]}}
    wire = {"metadata": {"name": "odd", "namespace": "default"}, "spec": {"replicas": 1, "template": pod}}
    bad = DEPLOYMENT._replace(name="odd"), as_template(wire)
    plan = plan_of(
        SPACIOUS, [], policies=[policy("all", placement=DYNAMIC)], templates=[bad, (DEPLOYMENT, template())]
    )
    assert [each[1] for each in steps_of(plan) if each[0] == "Bind"] == ["web-deployment"]
    assert "'bad'" in " ".join(plan.warnings)
