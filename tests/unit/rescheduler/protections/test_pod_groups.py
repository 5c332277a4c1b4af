"""Pods of a PodGroup are moved unless they need each other."""

import pytest

from tests.support.builders import Object
from tests.unit.rescheduler.protections.test_protecting import ask, replica

BASIC: Object = {"schedulingPolicy": {"basic": {}}}


def gang(least: int | None) -> Object:
    return {"schedulingPolicy": {"gang": {} if least is None else {"minCount": least}}}


def group(spec: Object) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default", "uid": "pg"},
        "spec": spec,
    }


def reason(spec: Object) -> str | None:
    pods = [replica(f"web-{number}", schedulingGroup={"podGroupName": "train"}) for number in (1, 2, 3)]
    refused = ask(*pods, replica("other"), group(spec))
    if refused is None:
        return None
    assert refused.rule == "Gang"
    return refused.reason.removeprefix("schedulingGroup train, ").removesuffix(
        ": the pod is scheduled together with others"
    )


@pytest.mark.parametrize(
    "spec",
    [
        BASIC,
        {**BASIC, "disruptionMode": {"single": {}}},
        {**BASIC, "disruptionMode": "Pod"},
        {**BASIC, "schedulingConstraints": {"topology": []}},
        gang(2),
    ],
)
def test_pods_that_do_not_need_each_other_are_moved(spec: Object) -> None:
    assert reason(spec) is None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (gang(3), "3 of its pods are Ready, and minCount is 3"),
        (gang(None), "its minCount is not known"),
        ({}, "its schedulingPolicy is not known"),
        ({**BASIC, "disruptionMode": {"all": {}}}, "its pods are disrupted together (disruptionMode)"),
        ({**BASIC, "disruptionMode": "PodGroup"}, "its pods are disrupted together (disruptionMode)"),
        ({**BASIC, "disruptionMode": {"odd": {}}}, "its pods are disrupted together (disruptionMode)"),
        (
            {**gang(1), "schedulingConstraints": {"topology": [{"key": "rack"}]}},
            "its pods are kept in one topology domain",
        ),
    ],
)
def test_pods_that_need_each_other_or_may_are_kept(spec: Object, said: str) -> None:
    assert reason(spec) == said
