"""The rights of our own accounts: those that are applied by default are no way to more rights."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.repository import MANIFESTS

OPTIONAL = MANIFESTS / "federation" / "rights"
FORBIDDEN_VERBS = {"*", "escalate", "bind", "impersonate", "deletecollection", "approve", "sign"}
# Whoever may write these takes over the cluster: pods with any account, tokens, rights, admission.
WAYS_TO_MORE = {
    ("", "serviceaccounts/token"),
    ("", "nodes/proxy"),
    ("", "pods/exec"),
    ("", "pods/attach"),
    ("", "pods/ephemeralcontainers"),
    ("rbac.authorization.k8s.io", "*"),
    ("admissionregistration.k8s.io", "*"),
    ("certificates.k8s.io", "*"),
}
READING = {"get", "list", "watch"}


class Rule(NamedTuple):
    file: str
    role: str
    kind: str
    content: Any


def list_rules(*, optional: bool) -> Iterator[Rule]:
    for file in sorted(MANIFESTS.rglob("*.yaml")):
        if file.is_relative_to(OPTIONAL) is not optional:
            continue
        for one in yaml.safe_load_all(file.read_text()):
            if one and one["kind"] in ("ClusterRole", "Role"):
                name = one["metadata"]["name"]
                yield from (Rule(_name(file), name, one["kind"], rule) for rule in one["rules"])


def _name(file: Path) -> str:
    return str(file.relative_to(MANIFESTS))


RULES = list(list_rules(optional=False))


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.role}-{number}" for number, rule in enumerate(RULES)])
def test_no_default_role_has_everything_or_grants_rights(rule: Rule) -> None:
    content = rule.content
    assert not FORBIDDEN_VERBS & set(content["verbs"])
    assert "*" not in [*content.get("apiGroups", ()), *content.get("resources", ())]
    assert not any("*" in path for path in content.get("nonResourceURLs", ()))
    if set(content["verbs"]) <= READING:
        return
    places = {(group, name) for group in content["apiGroups"] for name in content["resources"]}
    every = {(group, "*") for group in content["apiGroups"]}
    if rule.kind == "ClusterRole":
        assert not (places | every) & WAYS_TO_MORE
    elif ("", "serviceaccounts/token") in places:
        assert content["resourceNames"] == [rule.role]  # the tokens of its own account


def test_rights_to_grant_rights_are_in_files_that_are_not_applied_by_default() -> None:
    found = list(list_rules(optional=True))
    assert {rule.file for rule in found} == {
        f"federation/rights/{part}/rbac.yaml" for part in ("hub", "member", "webhook")
    }
    assert any("escalate" in rule.content["verbs"] for rule in found)
    assert {group for rule in found for group in rule.content["apiGroups"]} == {
        "admissionregistration.k8s.io",
        "rbac.authorization.k8s.io",
    }


def test_the_extender_reads_only_what_it_lists() -> None:
    reads = [rule.content["verbs"] for rule in RULES if rule.role == "reberth-extender"]
    assert not any("get" in verbs for verbs in reads)


def objects(kind: str) -> list[Any]:
    files = sorted(MANIFESTS.rglob("*.yaml"))
    return [
        one for file in files for one in yaml.safe_load_all(file.read_text()) if one and one["kind"] == kind
    ]


DEPLOYMENTS = objects("Deployment")


@pytest.mark.parametrize("one", DEPLOYMENTS, ids=[one["metadata"]["name"] for one in DEPLOYMENTS])
def test_replicas_stand_on_different_nodes_and_others_read_no_keys(one: Any) -> None:
    spec = one["spec"]["template"]["spec"]
    (spread,) = spec["topologySpreadConstraints"]
    wanted = {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    assert wanted.items() <= spread.items()
    assert spread["nodeTaintsPolicy"] == "Honor"  # else a drained node would keep the other replica waiting
    assert spec["securityContext"]["fsGroup"] == 65532
    assert {each["secret"]["defaultMode"] for each in spec["volumes"] if "secret" in each} <= {0o440}


def test_a_replica_that_is_not_ready_blocks_no_drain() -> None:
    budgets = objects("PodDisruptionBudget")
    assert len(budgets) == len(DEPLOYMENTS)
    assert {one["spec"]["unhealthyPodEvictionPolicy"] for one in budgets} == {"AlwaysAllow"}


def test_namespaces_that_hold_secrets_take_only_restricted_pods() -> None:
    """In karmada-system Karmada's own pods may run."""
    levels = {
        one["metadata"]["name"]: (one["metadata"].get("labels") or {}).get(
            "pod-security.kubernetes.io/enforce"
        )
        for one in objects("Namespace")
    }
    assert levels == {"reberth-system": "restricted", "karmada-cluster": "restricted", "karmada-system": None}


def test_servers_listen_on_every_address_family() -> None:
    texts = [text for one in objects("ConfigMap") for text in one["data"].values()]
    assert not any("0.0.0.0" in text for text in texts)
