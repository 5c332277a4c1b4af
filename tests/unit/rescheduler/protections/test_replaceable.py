"""Pods whose replacement is not known, or would not be created, are not moved; quotas count the next pod."""

from typing import Any

import pytest

from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections import refuse_protected
from rescheduler.protections.workloads import list_needs
from tests.support.builders import Object, container, node
from tests.support.forecast.replicas import LABELS, NAMESPACE, look, replica, replica_owner


def context_of(*objects: Object) -> RuleContext:
    return RuleContext(look(node("n-1"), *objects))


def quota(used: Object, hard: Object) -> Object:
    meta = {"name": "edge", "namespace": NAMESPACE, "uid": "q"}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta,
        "status": {"used": used, "hard": hard},
    }


def needs(*objects: Object) -> list[tuple[str, int, int]]:
    context = context_of(*objects)
    found = list_needs(context.template_of(0), context)
    return [(each.resource, each.amount // 10**6, each.room // 10**6) for each in found]


@pytest.mark.parametrize(
    ("objects", "rule", "reason"),
    [
        ((replica(),), "CannotForecast", "ReplicaSet web is not in the cache, so its template is not known"),
        (
            (replica_owner(schedulerName="other"), replica(schedulerName="other")),
            "CannotForecast",
            "schedulerName other has no profile in the scheduler configuration",
        ),
        (
            (replica_owner(priorityClassName="gone"), replica(priorityClassName="gone")),
            "CannotBeReplaced",
            "the API server would refuse the replacement: PriorityClass gone does not exist",
        ),
    ],
)
def test_such_a_pod_is_not_moved(objects: tuple[Object, ...], rule: str, reason: str) -> None:
    assert refuse_protected(0, context_of(*objects)) == Refused(rule, reason)


def test_a_quota_counts_what_the_replacement_asks_for() -> None:
    edge = quota({"requests.cpu": "1"}, {"requests.cpu": "2"})
    assert needs(replica_owner(cpu="2"), replica(cpu="1", generation=2), edge) == [
        ("requests.cpu", 2000, 1000)
    ]


def test_a_quota_counts_the_limits_of_the_template() -> None:
    limited = container(cpu="1")
    limited["resources"]["limits"] = {"cpu": "3"}
    edge = quota({"limits.cpu": "3", "limits.memory": "0"}, {"limits.cpu": "4", "limits.memory": "1Gi"})
    found = needs(replica_owner(containers=[limited]), replica(containers=[limited]), edge)
    assert found == [("limits.cpu", 3000, 1000)]


@pytest.mark.parametrize(("asked", "needed"), [("1", []), ("3", [("requests.cpu", 2000, 1000)])])
def test_of_a_stateful_set_a_quota_counts_only_what_the_replacement_asks_for_more(
    asked: str, needed: list[Any]
) -> None:
    status = {"currentRevision": "web-1", "updateRevision": "web-1"}
    owner = replica_owner("StatefulSet", cpu=asked, status=status)
    labels = {**LABELS, "controller-revision-hash": "web-1"}
    pod = replica("web-0", kind="StatefulSet", labels=labels, cpu="1", generation=2)
    edge = quota({"requests.cpu": "1", "pods": "1"}, {"requests.cpu": "2", "pods": "1"})
    assert needs(owner, pod, edge) == needed
