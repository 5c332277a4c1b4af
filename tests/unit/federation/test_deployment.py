"""The manifests of the controllers fit each other, and give no more than is needed."""

from pathlib import Path
from typing import Any

import yaml

from federation.hub.karmada_leases import NAMES
from federation.objects import resources
from federation.settings import FederationSettings
from reberth.config.settings import parse
from tests.support.builders import Object
from tests.support.repository import ROOT

FOLDER = ROOT / "manifests" / "federation"
NAME = "reberth-federation"


def read(file: str) -> list[Object]:
    return [each for each in yaml.safe_load_all((FOLDER / file).read_text()) if each]


DEPLOYED, HUB, MEMBER = read("deployment.yaml"), read("hub/rbac.yaml"), read("member/rbac.yaml")


def one(found: list[Object], kind: str, name: str = NAME) -> Any:
    (wanted,) = [each for each in found if each["kind"] == kind and each["metadata"]["name"] == name]
    return wanted


POD = one(DEPLOYED, "Deployment")["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


def test_the_settings_are_read_and_name_the_lease_that_may_be_held() -> None:
    settings = parse(one(DEPLOYED, "ConfigMap")["data"]["settings.yaml"].encode(), FederationSettings)
    assert settings.server.port == CONTAINER["ports"][0]["containerPort"]
    roles = [each for each in HUB if each["kind"] == "Role"]
    (role,) = [each for each in roles if each["metadata"]["namespace"] == settings.lease.namespace]
    named = [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule]
    assert named == [[settings.lease.name]]
    mounted = {mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert str(Path(CONTAINER["args"][-1]).parent) in mounted


def test_leases_are_read_and_written_in_two_namespaces_alone() -> None:
    """What guards against Karmada's controllers needs theirs; no role of the whole hub names any."""
    settings = parse(one(DEPLOYED, "ConfigMap")["data"]["settings.yaml"].encode(), FederationSettings)
    rules = [(each, rule) for each in HUB if each["kind"].endswith("Role") for rule in each["rules"]]
    concerned = [(each, rule) for each, rule in rules if "leases" in rule["resources"]]
    assert {(each["kind"], each["metadata"].get("namespace")) for each, _ in concerned} == {
        ("Role", settings.lease.namespace),
        ("Role", settings.karmada.namespace),
    }
    (reading,) = [
        rule for each, rule in concerned if each["metadata"]["namespace"] == settings.karmada.namespace
    ]
    assert (reading["verbs"], sorted(reading["resourceNames"])) == (["get"], sorted(NAMES))
    bound = [each["metadata"]["namespace"] for each in HUB if each["kind"] == "RoleBinding"]
    assert settings.karmada.namespace in bound


def test_services_budgets_and_network_policies_select_the_pods() -> None:
    labels = POD["metadata"]["labels"]
    assert one(DEPLOYED, "Service")["spec"]["selector"] == labels
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        spec = one(DEPLOYED, kind)["spec"]
        assert (spec.get("selector") or spec["podSelector"])["matchLabels"] == labels
    (ingress,) = one(DEPLOYED, "NetworkPolicy")["spec"]["ingress"]
    assert ingress["from"]  # the port asks for no certificate
    assert POD["spec"]["serviceAccountName"] == one(HUB, "ServiceAccount")["metadata"]["name"]


def test_the_pods_have_least_privilege() -> None:
    assert POD["spec"]["securityContext"]["runAsNonRoot"]
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def allowed(objects: list[Object]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    rules = [rule for each in objects if each["kind"] == "ClusterRole" for rule in each["rules"]]
    for rule in rules:
        for group in rule["apiGroups"]:
            for plural in rule["resources"]:
                found.setdefault((group, plural), set()).update(rule["verbs"])
    return found


def test_every_kind_that_is_known_beforehand_may_be_carried() -> None:
    """With the rights to propagate roles, which are not applied by default."""
    more = {part: read(f"rights/{part}/rbac.yaml") for part in ("hub", "member")}
    hub, member = allowed([*HUB, *more["hub"]]), allowed([*MEMBER, *more["member"]])
    for each in (*resources.TEMPLATES, *resources.RBAC_KINDS):
        key = (each.kind.group, each.name)
        assert hub[key] >= {"list", "watch", "patch"}
        assert member[key] >= {"get", "list", "watch", "create", "patch", "delete"}


def test_nothing_is_allowed_at_large() -> None:
    for rules in (allowed(HUB), allowed(MEMBER)):
        assert not [key for key, verbs in rules.items() if "*" in key or "*" in verbs]
        assert not [key for key, verbs in rules.items() if verbs & {"escalate", "bind"}]
