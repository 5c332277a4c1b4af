"""A node whose kubelet has rejected a pod is no destination for its like for a while."""

import pytest

from reberth.values.timestamp import write_time
from tests.support import builders
from tests.support.builders import Object, owner
from tests.support.rescheduler.plans import NOW, make_plan, replica

RED = {"key": "red", "value": "", "effect": "NoSchedule"}


def crowd(**rejected: object) -> list[Object]:
    """A pod that must leave its node, the only other node, and on it a pod that has failed."""
    failed = builders.pod(
        "web-0",
        node="new",
        created=write_time(NOW - 60),
        owner=owner("ReplicaSet", "web"),
        phase="Failed",
        **rejected,  # type: ignore[arg-type]
    )
    failed["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError", **failed.pop("more", {})}
    return [
        builders.node("old", taints=[RED]),
        builders.node("new"),
        replica("web-1", "web", "old"),
        replica("web-2", "web", "new"),
        failed,
    ]


def rule(objects: list[Object]) -> str | None:
    made, _ = make_plan(objects)
    return next((each.rule for each in made.refused if each.pod == "default/web-1"), None)


def test_such_a_node_is_no_destination_and_the_plan_says_so() -> None:
    objects = crowd()
    assert rule(objects) == "MayBeRejected"
    warnings = make_plan(objects)[0].warnings
    assert "MayBeRejected: kubelets rejected pods in the last hour on new" in warnings


def test_an_hour_later_it_is_one_again() -> None:
    objects = crowd()
    objects[-1]["metadata"]["creationTimestamp"] = write_time(NOW - 3601)
    assert rule(objects) is None


def test_a_pod_that_failed_at_its_work_was_not_rejected() -> None:
    objects = crowd()
    objects[-1]["status"]["conditions"] = [
        {"type": "Ready", "status": "False", "lastTransitionTime": write_time(NOW - 30)}
    ]
    assert rule(objects) is None


@pytest.mark.parametrize("field", ["namespace", "cpu"])
def test_pods_of_another_shape_may_go_there(field: str) -> None:
    objects = crowd(**{field: {"namespace": "other", "cpu": "3"}[field]})
    assert rule(objects) is None
