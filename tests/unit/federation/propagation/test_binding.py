from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import ResourceBinding, Suspension
from federation.objects.names import Key
from federation.propagation.binding import (
    change_binding,
    change_template,
    find_misuse,
    key_of_binding,
    template_of,
    write_binding,
)
from reberth.values.object_error import ObjectError
from tests.support.federation.objects import WEB, meta, policy, template

CLAIM = "propagationpolicy.karmada.io/permanent-id"


def made(**spec: Any) -> ResourceBinding:
    wire = write_binding(WEB, template(), policy("a", **spec))
    return msgspec.convert(wire | {"metadata": meta("web-deployment") | wire["metadata"]}, ResourceBinding)


def test_a_binding_takes_its_spec_from_template_and_policy() -> None:
    wire = write_binding(WEB, template(), policy("a", conflictResolution="Overwrite", propagateDeps=True))
    assert wire["metadata"]["labels"] == {CLAIM: "uid-a"}
    assert wire["metadata"]["annotations"] == {
        "propagationpolicy.karmada.io/name": "a",
        "propagationpolicy.karmada.io/namespace": "default",
    }
    assert wire["metadata"]["ownerReferences"][0]["uid"] == "uid-web"
    assert wire["spec"]["replicas"] == 3
    assert wire["spec"]["replicaRequirements"]["resourceRequest"] == {"cpu": "100m"}
    assert wire["spec"]["conflictResolution"] == "Overwrite"
    assert wire["spec"]["propagateDeps"] is True


def test_a_binding_is_named_after_its_template_and_kind() -> None:
    assert key_of_binding(WEB).name == "web-deployment"
    role = Key("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:reader")
    assert key_of_binding(role)[1:] == ("ClusterResourceBinding", "", "system.reader-clusterrole")
    assert len(key_of_binding(WEB._replace(name="a" * 253)).name) == 253
    assert template_of(made()) == WEB


def test_an_up_to_date_binding_is_not_written_again() -> None:
    assert change_binding(made(priority=2), WEB, template(), policy("a")) is None


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, {"propagateDeps": True}, {"propagateDeps": True}),
        ({"propagateDeps": True}, {}, {"propagateDeps": None}),
        (
            {"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}},
            {"placement": {"clusterTolerations": [{"key": "a"}]}},
            {"placement": {"clusterAffinity": None, "clusterTolerations": [{"key": "a"}]}},
        ),
    ],
)
def test_only_changed_binding_fields_are_patched(before: Any, after: Any, change: Any) -> None:
    patch = change_binding(made(**before), WEB, template(), policy("a", **after))
    sent = msgspec.json.decode(msgspec.json.encode(patch))
    assert sent == {"metadata": {"resourceVersion": "7"}, "spec": change}


def test_a_change_of_replicas_reaches_the_binding() -> None:
    patch = change_binding(made(), WEB, template(replicas=5), policy("a"))
    assert patch is not None
    assert patch["spec"] == {"replicas": 5}


def test_a_scheduling_suspension_survives_policy_changes() -> None:
    has = msgspec.structs.replace(made().spec, suspension=Suspension(scheduling=True))
    halted = msgspec.structs.replace(made(), spec=has)
    assert change_binding(halted, WEB, template(), policy("a")) is None
    patch = change_binding(halted, WEB, template(), policy("a", suspension={"dispatching": True}))
    assert patch is not None
    assert patch["spec"] == {"suspension": {"dispatching": True}}


def test_a_template_is_claimed_once_and_given_up_when_no_policy_is_left() -> None:
    claim = change_template(template(), policy("a"))
    assert claim is not None
    assert claim["metadata"]["labels"] == {CLAIM: "uid-a"}
    claimed = template(**{key: claim["metadata"][key] for key in ("labels", "annotations")})
    assert change_template(claimed, policy("a")) is None
    left = change_template(claimed, None)
    assert left is not None
    assert left["metadata"]["labels"] == {CLAIM: None}


def test_without_a_policy_a_binding_stays_without_a_claim() -> None:
    patch = change_binding(made(), WEB, template(), None)
    assert patch is not None
    assert "spec" not in patch
    assert patch["metadata"]["labels"] == {CLAIM: None}


@pytest.mark.parametrize("spec", [{"template": {"spec": {"containers": [{"name": 3}]}}}])
def test_a_template_that_cannot_be_read_is_named(spec: Any) -> None:
    odd = msgspec.structs.replace(template(), parts={"spec": msgspec.Raw(msgspec.json.encode(spec))})
    with pytest.raises(ObjectError, match="web.*spec.template.spec"):
        write_binding(WEB, odd, policy("a"))


def test_an_unset_number_of_replicas_is_one_and_other_kinds_have_none() -> None:
    assert write_binding(WEB, template(replicas=None), policy("a"))["spec"]["replicas"] == 1
    role = WEB._replace(kind="ConfigMap", api_version="v1")
    assert "replicas" not in write_binding(role, template(), policy("a"))["spec"]


def test_a_policy_of_all_namespaces_is_claimed_by_its_own_marks() -> None:
    claim = change_template(template(), policy("a", namespace=""))
    assert claim is not None
    assert claim["metadata"]["labels"] == {"clusterpropagationpolicy.karmada.io/permanent-id": "uid-a"}
    assert claim["metadata"]["annotations"] == {"clusterpropagationpolicy.karmada.io/name": "a"}


def test_a_template_of_another_uid_is_named_in_the_binding() -> None:
    patch = change_binding(made(), WEB, template(uid="another"), policy("a"))
    assert patch is not None
    assert patch["spec"]["resource"]["uid"] == "another"


def test_replica_requirements_contain_node_claims_and_priority() -> None:
    pod = {"nodeSelector": {"disk": "fast"}, "priorityClassName": "high", "containers": []}
    one = msgspec.structs.replace(
        template(),
        parts={"spec": msgspec.Raw(msgspec.json.encode({"replicas": 2, "template": {"spec": pod}}))},
    )
    needs = write_binding(WEB, one, policy("a"))["spec"]["replicaRequirements"]
    assert needs == {
        "nodeClaim": {"nodeSelector": {"disk": "fast"}},
        "namespace": "default",
        "priorityClassName": "high",
    }


def test_a_replica_that_asks_for_nothing_has_no_requirements() -> None:
    one = msgspec.structs.replace(template(), parts={"spec": msgspec.Raw(b'{"replicas": 2}')})
    assert "replicaRequirements" not in write_binding(WEB, one, policy("a"))["spec"]


def test_a_binding_of_another_object_is_mended() -> None:
    binding = made()
    foreign = replace(binding.spec.resource, namespace="shop")
    astray = replace(binding, spec=replace(binding.spec, resource=foreign))
    change = change_binding(astray, WEB, template(), policy("a"))
    assert change
    assert change["spec"]["resource"]["namespace"] == "default"
    assert find_misuse(astray) == "the resource, Deployment shop/web, is not in the binding's namespace"
    assert not find_misuse(binding)


@pytest.mark.parametrize(
    ("kind", "namespace", "why"),
    [
        ("Secret", "karmada-cluster", "Secret karmada-cluster/web is in a reserved namespace"),
        ("Secret", "kube-system", "Secret kube-system/web is in a reserved namespace"),
        ("Secret", "default", ""),
        ("ConfigMap", "kube-system", ""),
    ],
)
def test_secrets_of_reserved_namespaces_are_bound_by_nobody(kind: str, namespace: str, why: str) -> None:
    binding = made()
    bound = replace(binding.spec.resource, api_version="v1", kind=kind, namespace=namespace)
    meta = replace(binding.metadata, namespace=namespace)
    assert find_misuse(replace(binding, metadata=meta, spec=replace(binding.spec, resource=bound))) == why
