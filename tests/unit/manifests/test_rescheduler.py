"""The manifests of the rescheduler agree with each other, with the code, and with the extender's."""

import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reberth.cluster.kinds import ALL_RESOURCES
from reberth.config.settings import parse
from reberth.forecast.state.profile import parse_scheduler
from reberth.memory.notes import ANNOTATION
from reberth.runtime.tls.renewal import CertificateSettings
from rescheduler.execution.store import MOVE
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.model.replacing_kinds import OTHER_PROJECTS
from rescheduler.settings import ReschedulerSettings
from tests.support.repository import MANIFESTS

FILES = sorted((MANIFESTS / "rescheduler").glob("*.yaml"))
READING = {"get", "list", "watch"}


def objects(kind: str) -> list[Any]:
    found = [one for file in FILES for one in yaml.safe_load_all(file.read_text())]
    return [one for one in found if one["kind"] == kind]


def named(kind: str, name: str) -> Any:
    (found,) = (one for one in objects(kind) if one["metadata"]["name"] == name)
    return found


def held(name: str, key: str) -> str:
    (found,) = (one for one in objects("ConfigMap") if one["metadata"]["name"] == name)
    text: str = found["data"][key]
    return text


def read_settings() -> ReschedulerSettings:
    return parse(held("reberth-rescheduler", "settings.yaml").encode(), ReschedulerSettings)


def test_the_settings_are_valid_and_require_all_extenders() -> None:
    settings = read_settings()
    assert settings.extender == "required"
    assert settings.extender_access.tls
    assert settings.server.tls


def test_the_configuration_of_the_scheduler_is_that_of_the_scheduler() -> None:
    content = held("reberth-scheduler-configuration", "configuration.yaml")
    assert yaml.safe_load(content) == yaml.safe_load(
        (MANIFESTS / "kube-scheduler" / "reberth.yaml").read_text()
    )
    assert parse_scheduler(content.encode(), version=(1, 36), source="here").extenders


def list_files(secret: str) -> set[str]:
    """List the files that the job puts into a Secret."""
    (made,) = yaml.safe_load_all((MANIFESTS / "certificates" / "20-settings.yaml").read_text())
    asked = parse(made["data"]["settings.yaml"].encode(), CertificateSettings)
    pairs = [pair.file for one in asked.secrets if one.name == secret for pair in one.pairs]
    return {"ca.crt", *(f"{file}.{kind}" for file in pairs for kind in ("crt", "key"))}


def test_every_file_of_the_settings_is_mounted() -> None:
    (deployment,) = objects("Deployment")
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert {one["name"] for one in spec["volumes"]} == {one["name"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in spec["volumes"]}
    places = {one["mountPath"]: volumes[one["name"]] for one in container["volumeMounts"]}
    settings = read_settings()
    assert settings.extender_access.tls
    assert settings.server.tls
    tls, server = settings.extender_access.tls, settings.server.tls
    given = [argument.partition("=")[2] for argument in container["args"] if argument.startswith("--")]
    named = [settings.scheduler.configuration, settings.scheduler.extender, *given]
    for file in map(Path, named):
        keys = _keys_of(places[str(file.parent)]["configMap"]["name"])
        assert file.name in keys, file
    for file in map(Path, [tls.ca, tls.certificate, tls.key, *map(str, server.paths())]):
        secret = places[str(file.parent)]["secret"]["secretName"]
        assert file.name in list_files(secret), file


def test_labels_ports_and_accounts_fit() -> None:
    (deployment,) = objects("Deployment")
    (budget,) = objects("PodDisruptionBudget")
    (policy,) = objects("NetworkPolicy")
    account = named("ServiceAccount", "reberth-rescheduler")
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"]
    selectors = [deployment["spec"]["selector"], budget["spec"]["selector"], policy["spec"]["podSelector"]]
    assert [selector["matchLabels"] for selector in selectors] == [labels] * 3
    assert deployment["spec"]["replicas"] == 2
    (container,) = template["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"https": read_settings().server.port}
    assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == list(ports)
    bindings = [*objects("ClusterRoleBinding"), *objects("RoleBinding")]
    bound = {
        binding["subjects"][0]["name"] for binding in bindings
    }  # the writers' other subjects are no pods
    assert template["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert bound == {account["metadata"]["name"], "reberth-reader"}


def test_the_network_policy_allows_calls_to_the_extenders() -> None:
    (policy,) = objects("NetworkPolicy")
    _, to_extenders = policy["spec"]["egress"]
    (deployment,) = yaml.safe_load_all((MANIFESTS / "extender" / "30-deployment.yaml").read_text())
    template = deployment["spec"]["template"]
    assert to_extenders["to"][0]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    (port,) = to_extenders["ports"]
    assert port["port"] in {one["containerPort"] for one in template["spec"]["containers"][0]["ports"]}


def test_the_account_may_read_the_cached_kinds_and_nothing_else() -> None:
    role = named("ClusterRole", "reberth-rescheduler")
    readable = {
        (group, resource)
        for rule in role["rules"]
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    known = {(each.group, f"{each.kind.lower()}s") for each in OTHER_PROJECTS}
    assert readable == {(one.kind.group, one.name) for one in ALL_RESOURCES} | known


def test_the_service_account_may_write_only_the_objects_of_a_move() -> None:
    role = named("ClusterRole", "reberth-rescheduler")
    (own,) = objects("Role")
    written = {
        resource: set(rule["verbs"]) - READING
        for rule in [*role["rules"], *own["rules"]]
        for resource in rule["resources"]
        if set(rule["verbs"]) - READING and "resourceNames" not in rule
    }
    assert written == {
        "nodes": {"patch"},
        "pods/eviction": {"create"},
        "evictionhistories": {"create", "delete"},
        "moveledgers": {"create"},
        "evictionhistories/status": {"update"},
        "moveledgers/status": {"update"},
        "events": {"create", "patch"},
        "leases": {"create"},
        "tokenreviews": {"create"},  # which change nothing
        "subjectaccessreviews": {"create"},
    }
    leases = [rule for rule in own["rules"] if "resourceNames" in rule]
    assert [(rule["resourceNames"], rule["verbs"]) for rule in leases] == [
        ([read_settings().lease.name], ["get", "list", "watch", "patch"])
    ]


def test_the_admission_policy_is_about_our_account_and_the_note() -> None:
    policy = named("ValidatingAdmissionPolicy", "reberth-rescheduler-notes")
    account = named("ServiceAccount", "reberth-rescheduler")
    meta, spec = account["metadata"], policy["spec"]
    (condition,) = spec["matchConditions"]
    user = f"system:serviceaccount:{meta['namespace']}:{meta['name']}"
    assert condition["expression"] == f"request.userInfo.username == '{user}'"
    assert {"name": "note", "expression": f"'{ANNOTATION}'"} in spec["variables"]


def test_the_namespaces_of_the_system_are_those_that_the_api_server_protects() -> None:
    binding = named("ValidatingAdmissionPolicyBinding", "reberth-rescheduler-never")
    (term,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert (term["key"], term["operator"]) == ("kubernetes.io/metadata.name", "In")
    assert tuple(term["values"]) == ProtectionSettings().system_namespaces


def test_the_api_server_looks_for_the_annotation_that_an_eviction_carries() -> None:
    (rule,) = named("ValidatingAdmissionPolicy", "reberth-rescheduler-evictions")["spec"]["validations"]
    assert f"[?'{MOVE}']" in rule["expression"]


def test_the_certificates_are_valid_for_the_service_name(tmp_path: Path) -> None:
    script = MANIFESTS / "extender" / "certificates.sh"
    subprocess.run([script, tmp_path], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "rescheduler-tls.crt", tmp_path / "rescheduler-tls.key")
    name = "reberth-rescheduler.reberth-system.svc"
    command = ["openssl", "verify", "-CAfile", "ca.crt", "-purpose", "sslserver", "-verify_hostname", name]
    said = subprocess.run(
        [*command, "rescheduler-tls.crt"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr


def _keys_of(name: str) -> set[str]:
    files = [*FILES, *sorted((MANIFESTS / "extender").glob("*.yaml"))]
    every = [one for file in files for one in yaml.safe_load_all(file.read_text())]
    (found,) = (one for one in every if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", name))
    return set(found["data"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_everything_namespaced_is_in_our_namespace(file: Path) -> None:
    cluster_wide = ("ClusterRole", "FlowSchema", "ValidatingAdmission")
    for one in yaml.safe_load_all(file.read_text()):
        if not one["kind"].startswith(cluster_wide):
            assert one["metadata"]["namespace"] == "reberth-system"
