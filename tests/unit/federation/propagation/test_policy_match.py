from collections.abc import Iterable

import pytest

from federation.api import PropagationPolicy
from federation.objects.names import Key
from federation.propagation.policy_match import PolicyIndex, Subject, choose_policy, list_unreadable
from tests.support.federation.objects import WEB, policy

BY_NAME, BY_LABELS, BY_KIND = {"name": "web"}, {"labelSelector": {"matchLabels": {"app": "web"}}}, {}
CLAIM = "propagationpolicy.karmada.io/permanent-id"
CLUSTER_CLAIM = "clusterpropagationpolicy.karmada.io/permanent-id"


def chosen(policies: Iterable[PropagationPolicy], key: Key = WEB, **labels: str) -> str | None:
    found = choose_policy(Subject(key, {"app": "web", **labels}), policies)
    return found.metadata.name if found else None


@pytest.mark.parametrize(
    ("policies", "wanted"),
    [
        ([policy("b", BY_NAME), policy("a", BY_LABELS)], "b"),
        ([policy("b", BY_LABELS), policy("a", BY_KIND)], "b"),
        ([policy("b", BY_NAME), policy("a", BY_NAME)], "a"),
        ([policy("b", BY_KIND, priority=1), policy("a", BY_NAME)], "b"),
        ([policy("b", BY_KIND, namespace="default"), policy("a", BY_NAME, namespace="")], "b"),
        ([policy("a", BY_NAME, namespace="")], "a"),
        ([policy("a", {"name": "other"})], None),
        ([policy("a", {"labelSelector": {"matchLabels": {"app": "other"}}})], None),
        ([policy("a", BY_NAME, namespace="elsewhere")], None),
        ([policy("a", {"kind": "StatefulSet"})], None),
        ([], None),
    ],
)
def test_the_closest_of_the_highest_priority_comes_first(
    policies: list[PropagationPolicy], wanted: str | None
) -> None:
    assert chosen(policies) == wanted
    assert chosen(reversed(policies)) == wanted


@pytest.mark.parametrize(
    ("claim", "challenger", "wanted"),
    [
        (CLAIM, policy("new", BY_NAME, priority=5), "old"),
        (CLAIM, policy("new", BY_NAME, priority=5, preemption="Always"), "new"),
        (CLAIM, policy("new", BY_NAME, priority=0, preemption="Always"), "old"),
        (CLAIM, policy("new", BY_NAME, namespace="", priority=5, preemption="Always"), "old"),
        (CLUSTER_CLAIM, policy("new", BY_NAME), "old"),
        (CLUSTER_CLAIM, policy("new", BY_NAME, preemption="Always"), "new"),
    ],
)
def test_the_claiming_policy_keeps_its_template_unless_preempted(
    claim: str, challenger: PropagationPolicy, wanted: str
) -> None:
    holder = policy("old", BY_KIND, namespace="default" if claim == CLAIM else "")
    assert chosen([challenger, holder], **{claim: "uid-old"}) == wanted


def test_a_claim_ends_with_the_selection() -> None:
    holder = policy("old", {"name": "other"})
    assert chosen([holder, policy("new", BY_KIND)], **{CLAIM: "uid-old"}) == "new"


RESERVED = ["kube-system", "karmada-system", "karmada-cluster", "karmada-es-m1", "reberth-system"]


@pytest.mark.parametrize("namespace", RESERVED)
def test_system_namespaces_are_not_matched_by_cluster_policies(namespace: str) -> None:
    assert (
        chosen([policy("a", BY_NAME, namespace="")], Key("apps/v1", "Deployment", namespace, "web")) is None
    )


@pytest.mark.parametrize("namespace", RESERVED)
def test_secrets_of_system_namespaces_are_matched_by_no_policy(namespace: str) -> None:
    key = Key("v1", "Secret", namespace, "web")
    own = policy("a", {"apiVersion": "v1", "kind": "Secret", **BY_NAME}, namespace=namespace)
    assert chosen([own], key) is None
    assert chosen([own], key._replace(kind="ConfigMap")) is None
    named = policy("a", {"apiVersion": "v1", "kind": "ConfigMap", **BY_NAME}, namespace=namespace)
    assert chosen([named], key._replace(kind="ConfigMap")) == "a"


def test_a_policy_of_all_may_select_in_one_namespace() -> None:
    elsewhere = policy("a", {"namespace": "elsewhere"}, namespace="")
    assert chosen([elsewhere]) is None
    assert chosen([elsewhere], WEB._replace(namespace="elsewhere")) == "a"


@pytest.mark.parametrize(("kind", "name"), [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")])
def test_objects_that_each_cluster_creates_match_only_by_name(kind: str, name: str) -> None:
    key = Key("v1", kind, "default", name)
    of_kind = {"apiVersion": "v1", "kind": kind}
    assert chosen([policy("a", of_kind)], key) is None
    assert chosen([policy("a", of_kind | {"labelSelector": {}})], key) is None
    assert chosen([policy("a", of_kind | {"name": name})], key) == "a"


UNREADABLE = [{"key": "app", "operator": "in", "values": ["web"]}, {"key": "app", "operator": "In"}]


@pytest.mark.parametrize("requirement", UNREADABLE)
@pytest.mark.parametrize("namespace", ["default", ""])
def test_a_selector_that_cannot_be_read_selects_nothing_and_keeps_no_other_policy_from_it(
    requirement: dict[str, object], namespace: str
) -> None:
    odd = {"labelSelector": {"matchExpressions": [requirement]}}
    bad = policy("bad", odd, namespace=namespace, priority=9, preemption="Always")
    assert chosen([bad]) is None
    assert chosen([bad, policy("good", BY_KIND)]) == "good"
    assert chosen([policy("partly", odd, BY_NAME)]) == "partly"
    (said,) = list_unreadable(policy("partly", BY_NAME, odd))
    assert said.startswith("spec.resourceSelectors[1].labelSelector: ")


def test_what_a_policy_has_claimed_stays_with_it_when_its_selector_becomes_unreadable() -> None:
    odd = policy("old", {"labelSelector": {"matchExpressions": UNREADABLE[:1]}})
    assert chosen([odd, policy("new", BY_NAME)], **{CLAIM: "uid-old"}) == "old"


def test_the_index_finds_what_may_select_a_template_and_little_else() -> None:
    named = [policy(f"p{number}", {"name": f"w{number}"}) for number in range(1_000)]
    others = [policy("a", BY_LABELS), policy("b", BY_KIND, {"name": "web"}), policy("c", {"kind": "Job"})]
    found = list(PolicyIndex([*named, *others, policy("d", BY_NAME)]).find(WEB))
    assert {each.metadata.name for each in found} == {"a", "b", "d"}
    assert chosen(found) == chosen([*named, *others, policy("d", BY_NAME)])
