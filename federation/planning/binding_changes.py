"""What becomes of the binding of a resource template: created, changed, deleted, or left as it is."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from federation.api import PropagationPolicy, ResourceBinding
from federation.interpreters.kind_rules import KindRules
from federation.objects.names import Key
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.binding import (
    change_binding,
    change_template,
    is_claimed,
    list_claims,
    write_binding,
)
from federation.propagation.policy_match import Subject, choose_policy

FindPolicies = Callable[[Key], Iterable[PropagationPolicy]]
"""The policies that may select a template."""


class DeleteBinding(NamedTuple):
    """Its template is gone, or another object has taken its name."""

    binding: ResourceBinding


class CreateBinding(NamedTuple):
    wanted: Object


class ChangeBinding(NamedTuple):
    binding: ResourceBinding
    patch: Object


class BindingStep(NamedTuple):
    """What to do with the binding, and the patch by which the template is claimed, or is claimed no more."""

    binding: DeleteBinding | CreateBinding | ChangeBinding | None = None
    claim: Object | None = None


def decide_binding(
    key: Key,
    template: ResourceTemplate | None,
    binding: ResourceBinding | None,
    find: FindPolicies,
    rules: KindRules | None = None,
) -> BindingStep:
    """Decide about the binding with the name of this template's binding, if there is one."""
    if binding is not None and not belongs(binding, template):
        return BindingStep(DeleteBinding(binding))
    if template is None or template.metadata.deletion_timestamp is not None:
        return BindingStep()
    policy = find_policy(key, template, binding, find)
    if policy is None and binding is None and not is_claimed(template.metadata.labels):
        return BindingStep()
    claim = change_template(template, policy)
    if binding is not None:
        patch = change_binding(binding, key, template, policy, rules)
        return BindingStep(ChangeBinding(binding, patch) if patch else None, claim)
    wanted = write_binding(key, template, policy, rules) if policy else None
    return BindingStep(CreateBinding(wanted) if wanted else None, claim)


def find_policy(
    key: Key, template: ResourceTemplate, binding: ResourceBinding | None, find: FindPolicies
) -> PropagationPolicy | None:
    """The claim of the binding counts as long as the template has none: it is written first."""
    labels = template.metadata.labels or {}
    if binding is not None and not is_claimed(labels):
        labels = {**labels, **list_claims(binding.metadata.labels)}
    return choose_policy(Subject(key, labels), find(key))


def belongs(binding: ResourceBinding, template: ResourceTemplate | None) -> bool:
    """Tell whether the binding is of the present template, not of a deleted one, or was created by hand."""
    owners = {owner.uid for owner in binding.metadata.owner_references or ()}
    if binding.spec.resource.uid not in owners:
        return True
    return template is not None and template.metadata.uid in owners
