"""Which template the next pod of a StatefulSet is made from, and the names of its claims."""

from typing import Any

import pytest

from reberth.forecast.replacement.refusals import CANNOT_FORECAST
from tests.support.builders import Object, container, owner
from tests.support.forecast.replicas import (
    LABELS,
    NAMESPACE,
    made_of,
    refused_of,
    replica,
    replica_owner,
    requests_in,
)

OLD, NEW = "web-old", "web-new"
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}


def revision(name: str, cpu: str, **spec: Any) -> Object:
    made = replica_owner("StatefulSet", containers=[container(cpu=cpu)], **spec)
    reference = owner("StatefulSet", "web")
    meta = {"name": name, "namespace": NAMESPACE, "uid": name, "ownerReferences": [reference]}
    data = {"spec": {"template": made["spec"]["template"]}}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "data": data}


def stateful_set(strategy: Object, *, current: str = OLD, start: int = 0, **spec: Any) -> Object:
    status = {"currentRevision": current, "updateRevision": NEW, "currentReplicas": 1}
    own = {"updateStrategy": strategy, "ordinals": {"start": start}}
    return replica_owner(
        "StatefulSet", containers=[container(cpu="2")], owner_spec=own, status=status, **spec
    )


def ordinal(number: int, of: str = OLD, cpu: str = "1", **spec: Any) -> Object:
    labels = {**LABELS, "controller-revision-hash": of, "statefulset.kubernetes.io/pod-name": f"web-{number}"}
    return replica(f"web-{number}", kind="StatefulSet", labels=labels, cpu=cpu, **spec)


@pytest.mark.parametrize(
    ("strategy", "start", "number", "cpu"),
    [
        (ROLLING, 0, 1, "1"),
        (ROLLING, 0, 2, "2"),
        (ROLLING, 5, 6, "1"),
        (ROLLING, 5, 7, "2"),
        ({"type": "OnDelete"}, 0, 0, "2"),
        ({"type": "RollingUpdate"}, 0, 0, "1"),
        ({"type": "RollingUpdate"}, 0, 1, "2"),
    ],
)
def test_the_ordinal_decides_which_revision_comes(
    strategy: Object, start: int, number: int, cpu: str
) -> None:
    objects = (stateful_set(strategy, start=start), revision(OLD, "1"), revision(NEW, "2"), ordinal(number))
    found = made_of(*objects, pod=f"web-{number}")
    assert requests_in(found) == {"cpu": cpu}
    assert found.template.labels["controller-revision-hash"] == (OLD if cpu == "1" else NEW)


def test_without_its_revision_nothing_is_known() -> None:
    refused = refused_of(stateful_set(ROLLING), ordinal(1))
    assert (refused.rule, refused.reason) == (
        CANNOT_FORECAST,
        "StatefulSet web would create the pod in revision web-old, which is not in the cache",
    )


def test_what_a_webhook_does_is_learnt_from_another_revision() -> None:
    proxied = ordinal(0, containers=[container(cpu="1"), container("proxy", cpu="10m")])
    objects = (stateful_set({"type": "OnDelete"}), revision(OLD, "1"), revision(NEW, "2"), proxied)
    found = made_of(*objects, pod="web-0")
    assert (requests_in(found), requests_in(found, "proxy")) == ({"cpu": "2"}, {"cpu": "10m"})


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (
            {"cpu": "3"},
            "the template has changed in what a webhook has changed in the newest pod: cpu of container main",
        ),
        (
            {"cpu": "1", "schedulerName": "other"},
            None,
        ),
    ],
)
def test_what_a_webhook_changed_must_be_the_same_in_both_revisions(shown: Object, reason: str | None) -> None:
    objects = (stateful_set({"type": "OnDelete"}), revision(OLD, "1"), revision(NEW, "2"))
    pod = ordinal(0, **shown)
    if reason is None:
        assert made_of(*objects, pod, pod="web-0").template.spec.scheduler_name == "other"
    else:
        assert refused_of(*objects, pod, pod="web-0").reason == reason


def test_a_pod_of_a_revision_that_is_gone_teaches_nothing() -> None:
    refused = refused_of(stateful_set({"type": "OnDelete"}), revision(NEW, "2"), ordinal(0), pod="web-0")
    assert refused.reason == f"no pod of revision {NEW} shows what webhooks make of it"


def test_claims_are_named_by_the_pod() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}
    made = stateful_set({"type": "OnDelete"}, current=NEW)
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
    resized = ordinal(0, of=NEW, cpu="1", volumes=[volume], generation=2)
    found = made_of(made, revision(NEW, "2"), resized, pod="web-0")
    assert found.claims == ("data-\0",)
