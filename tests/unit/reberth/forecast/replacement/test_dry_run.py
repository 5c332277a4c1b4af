"""The replacement as it is created for a dry run, and what the answers mean."""

import pytest

from reberth.forecast.replacement.dry_run import WholeTemplate, compose_pod, judge_refusal
from reberth.records import WorkloadIdentity
from reberth.values import errors
from reberth.values.errors import ApiError
from tests.support.builders import Object
from tests.support.forecast.replicas import look, replica, replica_owner

SPEC: Object = {
    "containers": [{"name": "main", "command": ["run"]}],
    "volumes": [{"name": "data"}, {"name": "x"}],
}
EXCEEDED = 'pods "web-0-" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2'
TEMPLATE: Object = {"metadata": {"labels": {"app": "web"}, "annotations": {"inject": "yes"}}, "spec": SPEC}


def compose(kind: str, pod: Object, **more: object) -> Object:
    snapshot = look(replica_owner(kind), pod)
    row = snapshot.pods.rows[0]
    controller = WorkloadIdentity("apps/v1", kind, "web", "uid-1")
    return compose_pod(WholeTemplate(controller, TEMPLATE, **more), row)  # type: ignore[arg-type]


def test_the_pod_of_a_replica_set_has_its_whole_template() -> None:
    made = compose("ReplicaSet", replica())
    assert made["spec"] == SPEC
    assert made["metadata"] == {
        "generateName": "web-",
        "namespace": "shop",
        "labels": {"app": "web"},
        "annotations": {"inject": "yes"},
        "finalizers": [],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-1", "controller": True}
        ],
    }


def test_the_pod_of_a_stateful_set_has_its_ordinal_and_its_claims() -> None:
    own = {"statefulset.kubernetes.io/pod-name": "web-1", "apps.kubernetes.io/pod-index": "1"}
    placed = {"topology.kubernetes.io/zone": "a", "controller-revision-hash": "old"}
    pod = replica(kind="StatefulSet", labels={"app": "web", **own, **placed})
    made = compose("StatefulSet", pod, service="peers", claims=("data",), revision="new")
    assert made["metadata"]["generateName"] == "web-1-"
    assert made["metadata"]["labels"] == {"app": "web", **own, "controller-revision-hash": "new"}
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-1", "peers")
    claimed = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    assert made["spec"]["volumes"] == [claimed, {"name": "x"}]


@pytest.mark.parametrize(
    ("kind", "said", "is_of_set", "rule"),
    [
        (errors.Forbidden, "violates PodSecurity", False, "CannotBeReplaced"),
        (errors.Forbidden, EXCEEDED, False, "CannotBeReplaced"),
        (errors.Forbidden, EXCEEDED, True, None),
        (errors.Forbidden, "exceeded quota: few", True, "CannotBeReplaced"),
        (errors.Forbidden, f'admission webhook "x" denied the request: {EXCEEDED}', True, "CannotBeReplaced"),
        (
            errors.Forbidden,
            f"ValidatingAdmissionPolicy 'x' denied request: {EXCEEDED}",
            True,
            "CannotBeReplaced",
        ),
        (errors.BadRequest, EXCEEDED, True, "CannotBeReplaced"),
        (errors.ServerFault, EXCEEDED, True, "CannotForecast"),
        (errors.Invalid, "spec.containers: Required", False, "CannotBeReplaced"),
        (errors.Forbidden, 'User "reberth" cannot create resource "pods"', False, "CannotForecast"),
        (errors.BadRequest, "admission webhook x does not support dry run", False, "CannotForecast"),
        (errors.ServerFault, "failed calling webhook", False, "CannotForecast"),
        (errors.Unanswered, "no answer", True, "CannotForecast"),
    ],
)
def test_a_refusal_is_of_the_pod_or_of_us(
    kind: type[ApiError],
    said: str,
    is_of_set: bool,  # noqa: FBT001 - a column of the table
    rule: str | None,
) -> None:
    refused = judge_refusal(kind("create pods", said), is_of_set=is_of_set)
    assert (refused.rule if refused else None) == rule
