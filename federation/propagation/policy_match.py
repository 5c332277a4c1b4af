"""Which policy claims a resource template: selectors, priorities and preemption."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from federation.api import PropagationPolicy, ResourceSelector
from federation.api.labels import LABELS, POLICY_KINDS
from federation.objects.names import Key, is_reserved, is_withheld, permanent_id
from reberth.records import Labels
from reberth.selectors.labels import SelectorError, compile_selector

POLICY, CLUSTER_POLICY = POLICY_KINDS
PREEMPTS = "Always"
_BY_NAME, _BY_LABELS, _BY_KIND = 3, 2, 1
# Every cluster creates these itself: only a selector with their name selects them.
MADE_BY_EVERY_CLUSTER = (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"))


class Subject(NamedTuple):
    """What selectors look at: the key of a template, and its labels."""

    key: Key
    labels: Labels


class Match(NamedTuple):
    """A policy that selects the template; `closeness` tells how specific its selector is."""

    policy: PropagationPolicy
    priority: int
    closeness: int

    @property
    def kind(self) -> str:
        return kind_of_policy(self.policy)

    def outranks(self, other: "Match") -> bool:
        """Tell whether it may preempt the other: by its scope, or by its explicit priority."""
        if self.policy.spec.preemption != PREEMPTS:
            return False
        if self.kind != other.kind:
            return self.kind == POLICY
        return self.priority > other.priority


def kind_of_policy(policy: PropagationPolicy) -> str:
    return POLICY if policy.metadata.namespace else CLUSTER_POLICY


class PolicyIndex:
    """Policies by what their selectors name: most of thousands of policies cannot select a template."""

    def __init__(self, policies: Iterable[PropagationPolicy]) -> None:
        self._by_name: dict[tuple[str, str, str], list[PropagationPolicy]] = {}
        for policy in policies:
            selectors = policy.spec.resource_selectors
            for name in {(each.api_version, each.kind, each.name) for each in selectors}:
                self._by_name.setdefault(name, []).append(policy)

    def find(self, key: Key) -> Iterator[PropagationPolicy]:
        """Yield the policies that may select the template; one with several selectors may come twice."""
        for name in (key.name, ""):
            yield from self._by_name.get((key.api_version, key.kind, name), ())


def choose_policy(subject: Subject, policies: Iterable[PropagationPolicy]) -> PropagationPolicy | None:
    """Return the policy that claims the template.

    The policy that has claimed it keeps it as long as it selects it, unless another one preempts it.
    """
    matches = sorted(_list_matches(subject, policies), key=_order)
    holder = next((match for match in matches if _has_claimed(match.policy, subject)), None)
    if holder is None:
        return matches[0].policy if matches else None
    return next((match for match in matches if match.outranks(holder)), holder).policy


def _list_matches(subject: Subject, policies: Iterable[PropagationPolicy]) -> Iterable[Match]:
    for policy in policies:
        closeness = find_closeness(subject, policy)
        if closeness and policy.metadata.deletion_timestamp is None:
            yield Match(policy, policy.spec.priority or 0, closeness)


def _order(match: Match) -> tuple[bool, int, int, str]:
    return match.kind != POLICY, -match.priority, -match.closeness, match.policy.metadata.name


def _has_claimed(policy: PropagationPolicy, subject: Subject) -> bool:
    kind = kind_of_policy(policy)
    return subject.labels.get(LABELS[kind]) == permanent_id(kind, policy.metadata)


def list_unreadable(policy: PropagationPolicy) -> Iterator[str]:
    """Name each label selector that cannot be read, and why."""
    for index, selector in enumerate(policy.spec.resource_selectors):
        try:
            compile_selector(selector.label_selector)
        except SelectorError as error:
            yield f"spec.resourceSelectors[{index}].labelSelector: {error}"


def find_closeness(subject: Subject, policy: PropagationPolicy) -> int:
    """Return how specific the policy's best selector is: by name, by labels, by kind; 0 if none matches.

    A selector that cannot be read selects nothing new. What its policy has claimed stays with it.
    """
    if policy.metadata.namespace and policy.metadata.namespace != subject.key.namespace:
        return 0
    if is_withheld(subject.key) or (not policy.metadata.namespace and is_reserved(subject.key.namespace)):
        return 0
    return max((_fit(subject, each, policy) for each in policy.spec.resource_selectors), default=0)


def _fit(subject: Subject, selector: ResourceSelector, policy: PropagationPolicy) -> int:
    key = subject.key
    if (selector.api_version, selector.kind) != (key.api_version, key.kind):
        return 0
    namespace = selector.namespace or policy.metadata.namespace
    if namespace and namespace != key.namespace:
        return 0
    if selector.name:
        return _BY_NAME if selector.name == key.name else 0
    if (key.kind, key.name) in MADE_BY_EVERY_CLUSTER:
        return 0
    return _BY_KIND if selector.label_selector is None else _fit_labels(subject, selector, policy)


def _fit_labels(subject: Subject, selector: ResourceSelector, policy: PropagationPolicy) -> int:
    try:
        selects = compile_selector(selector.label_selector).matches(subject.labels)
    except SelectorError:
        selects = _has_claimed(policy, subject)
    return _BY_LABELS if selects else 0
