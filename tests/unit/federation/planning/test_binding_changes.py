"""What becomes of the binding of a template."""

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import PropagationPolicy, ResourceBinding
from federation.objects.template import ResourceTemplate
from federation.planning.binding_changes import (
    BindingStep,
    ChangeBinding,
    CreateBinding,
    DeleteBinding,
    decide_binding,
)
from reberth.records import OwnerReference
from tests.support.federation.objects import WEB, claimed_binding, policy, template


def decide(
    found: ResourceTemplate | None, binding: ResourceBinding | None, *policies: PropagationPolicy
) -> BindingStep:
    return decide_binding(WEB, found, binding, lambda _: policies)


def owned(uid: str) -> ResourceBinding:
    made = claimed_binding()
    wire = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid}
    owners = (msgspec.convert(wire, OwnerReference),)
    resource = replace(made.spec.resource, uid=uid)
    return replace(
        made,
        metadata=replace(made.metadata, owner_references=owners),
        spec=replace(made.spec, resource=resource),
    )


def test_a_selected_template_gets_a_binding_and_a_claim() -> None:
    step = decide(template(), None, policy("p"))
    assert isinstance(step.binding, CreateBinding)
    assert step.claim is not None


def test_a_template_that_nothing_concerns_is_left_alone() -> None:
    assert decide(template(), None) == BindingStep()
    assert decide(None, None, policy("p")) == BindingStep()


@pytest.mark.parametrize("found", [None, template()], ids=["gone", "made anew"])
def test_the_binding_of_a_deleted_template_is_deleted(found: ResourceTemplate | None) -> None:
    step = decide(found, owned("an-old-uid"), policy("p"))
    assert isinstance(step.binding, DeleteBinding)


def test_a_template_that_is_being_deleted_is_left_alone() -> None:
    leaving = template(deletionTimestamp="2026-11-18T12:00:00Z")
    assert decide(leaving, None, policy("p")) == BindingStep()


def test_a_binding_loses_a_claim_that_no_policy_has() -> None:
    step = decide(template(), claimed_binding())
    assert isinstance(step.binding, ChangeBinding)
    label = "propagationpolicy.karmada.io/permanent-id"
    assert step.binding.patch["metadata"]["labels"] == {label: None}


def test_a_claimed_template_without_a_policy_loses_its_claim() -> None:
    claimed = template(labels={"propagationpolicy.karmada.io/permanent-id": "p"})
    step = decide(claimed, None)
    assert (step.binding, step.claim is None) == (None, False)
