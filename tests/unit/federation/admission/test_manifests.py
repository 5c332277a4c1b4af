"""The manifests of the webhook match what it serves, and where."""

from typing import Any

import pytest

from federation.commands import webhook
from federation.commands.webhook import WebhookSettings
from reberth.config.settings import parse
from tests.live.support.webhook_hub import CONFIGURATIONS, MANIFESTS
from tests.support.builders import Object
from tests.support.federation.crds import CRDS, DOCUMENT

NAME = "reberth-federation-webhook"


def manifest(kind: str) -> Object:
    (found,) = [one for one in MANIFESTS if one["kind"] == kind]
    return found


POD: Any = manifest("Deployment")["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda one: one["kind"])
def test_the_api_server_asks_about_all_kinds_but_rebalancers(configuration: Object) -> None:
    (hook,) = configuration["webhooks"]
    asked = {
        (group, version, resource)
        for rule in hook["rules"]
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for resource in rule["resources"]
    }
    kept = {
        (spec["group"], spec["versions"][0]["name"], spec["names"]["plural"])
        for spec in (crd["spec"] for crd in CRDS.values())
    }
    assert {plural for _, _, plural in kept - asked} == {"workloadrebalancers"}
    assert {(group, plural) for group, _, plural in asked} == {
        (CRDS[kind]["spec"]["group"], CRDS[kind]["spec"]["names"]["plural"]) for kind in webhook.KINDS
    }
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in hook["rules"])


def test_each_webhook_configuration_names_its_path() -> None:
    paths = {one["kind"]: one["webhooks"][0]["clientConfig"]["service"]["path"] for one in CONFIGURATIONS}
    assert paths == {
        "MutatingWebhookConfiguration": webhook.COMPLETE,
        "ValidatingWebhookConfiguration": webhook.LOOK,
    }


def test_the_service_leads_to_the_pods() -> None:
    for one in CONFIGURATIONS:
        service = one["webhooks"][0]["clientConfig"]["service"]
        assert (service["namespace"], service["name"]) == ("reberth-system", NAME)
    labels = POD["metadata"]["labels"].items()
    (port,) = manifest("Service")["spec"]["ports"]
    assert manifest("Service")["spec"]["selector"].items() <= labels
    assert manifest("NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= labels
    assert manifest("PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items() <= labels
    assert (port["port"], port["targetPort"]) == (443, CONTAINER["ports"][0]["name"])


def test_the_mounted_settings_name_only_mounted_paths_and_open_ports() -> None:
    (content,) = manifest("ConfigMap")["data"].values()
    server = parse(content.encode(), WebhookSettings).server
    assert server.port == CONTAINER["ports"][0]["containerPort"]
    assert server.tls
    mounts = [mount["mountPath"] for mount in CONTAINER["volumeMounts"]]
    for path in [CONTAINER["args"][-1], *map(str, server.tls.paths())]:
        assert path.rpartition("/")[0] in mounts


def test_the_webhook_pods_have_least_privilege() -> None:
    assert not [one for one in MANIFESTS if "Role" in one["kind"]]
    assert manifest("ServiceAccount")["automountServiceAccountToken"] is False
    assert POD["spec"]["automountServiceAccountToken"] is False
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert manifest("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in manifest("NetworkPolicy")["spec"]


def test_the_pod_has_time_to_finish_open_requests_when_it_stops() -> None:
    waits = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    answers = WebhookSettings().server.stop_within
    assert POD["spec"]["terminationGracePeriodSeconds"] >= waits + answers
    assert all(one["webhooks"][0]["timeoutSeconds"] <= answers for one in CONFIGURATIONS)


def test_the_documentation_names_the_manifests() -> None:
    assert "manifests/federation/webhook.yaml" in DOCUMENT
    assert "manifests/crds/federation/" in DOCUMENT
