"""The manifests of the extender agree with each other and with kube-scheduler's configurations."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.repository import MANIFESTS

MOST_WITHOUT_US = 1450 + 100  # the default plugins, and /scores with its weight of 1
FILES = sorted((MANIFESTS / "kube-scheduler").glob("*.yaml"))


def objects(kind: str) -> list[Any]:
    found = [
        one
        for file in (MANIFESTS / "extender").glob("*.yaml")
        for one in yaml.safe_load_all(file.read_text())
    ]
    return [one for one in found if one["kind"] == kind]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_configuration_is_as_the_extender_needs_it(file: Path) -> None:
    avoid, scores = yaml.safe_load(file.read_text())["extenders"]
    for extender in (avoid, scores):
        assert extender["nodeCacheCapable"] is extender["ignorable"] is True
        assert extender["httpTimeout"] == "1s"
    assert avoid["urlPrefix"].endswith("/avoid")
    assert scores["urlPrefix"].endswith("/scores")
    assert (avoid["filterVerb"], avoid["prioritizeVerb"], avoid["preemptVerb"]) == (
        "filter",
        "prioritize",
        "preempt",
    )
    assert {"filterVerb", "preemptVerb", "bindVerb"}.isdisjoint(scores)
    assert avoid["weight"] * 100 > MOST_WITHOUT_US
    assert scores["weight"] == 1


@pytest.mark.parametrize("name", ["reberth.yaml", "all-nodes.yaml"])
def test_the_scheduler_calls_the_service_by_its_address_and_its_certificate(name: str) -> None:
    (service,) = objects("Service")
    meta, spec = service["metadata"], service["spec"]
    script = (MANIFESTS / "extender" / "certificates.sh").read_text()
    for extender in yaml.safe_load((MANIFESTS / "kube-scheduler" / name).read_text())["extenders"]:
        assert extender["urlPrefix"].startswith(f"https://{spec['clusterIP']}/")
        server = extender["tlsConfig"]["serverName"]
        assert server == f"{meta['name']}.{meta['namespace']}.svc"
        assert f"DNS:{server}" in script


def test_the_two_configurations_differ_in_the_sample_alone() -> None:
    sampled, whole = (
        yaml.safe_load((MANIFESTS / "kube-scheduler" / name).read_text())
        for name in ("reberth.yaml", "all-nodes.yaml")
    )
    assert whole.pop("percentageOfNodesToScore") == 100
    assert whole == sampled


def test_labels_ports_and_accounts_fit() -> None:
    (deployment,) = objects("Deployment")
    (service,) = objects("Service")
    (budget,) = objects("PodDisruptionBudget")
    (policy,) = objects("NetworkPolicy")
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert deployment["spec"]["replicas"] == 2
    selectors = [deployment["spec"]["selector"], budget["spec"]["selector"], policy["spec"]["podSelector"]]
    assert [selector["matchLabels"] for selector in selectors] == [labels] * 3
    assert service["spec"]["selector"] == labels
    (container,) = template["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    (held,) = objects("ConfigMap")
    settings = yaml.safe_load(held["data"]["settings.yaml"])
    assert ports == {"https": settings["server"]["port"], "probes": settings["probes"]["port"]}
    open_to_all, probes = policy["spec"]["ingress"]
    assert [port["port"] for each in (open_to_all, probes) for port in each["ports"]] == list(ports)
    assert ("from" in open_to_all, "from" in probes) == (False, True)
    (account,) = objects("ServiceAccount")
    (binding,) = objects("ClusterRoleBinding")
    assert (
        template["spec"]["serviceAccountName"]
        == account["metadata"]["name"]
        == binding["subjects"][0]["name"]
    )


def test_the_service_account_may_only_read_and_write_events() -> None:
    (role,) = objects("ClusterRole")
    writing = [rule for rule in role["rules"] if set(rule["verbs"]) - {"get", "list", "watch"}]
    assert writing == [
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}
    ]
