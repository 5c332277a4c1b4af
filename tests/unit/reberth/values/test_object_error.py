import pytest

from reberth.records import ObjectMeta
from reberth.values.object_error import ObjectError, find_unreadable
from tests.support.builders import Object, pod
from tests.support.cluster.strategies import pod_record


def test_a_fault_names_kind_object_field_and_reason() -> None:
    fault = ObjectError("Pod", ObjectMeta("web", "shop"), field="spec.priority", reason="is no number")
    assert str(fault) == "Pod shop/web: spec.priority: is no number"
    assert (fault.kind, fault.name, fault.field, fault.reason) == (
        "Pod",
        "shop/web",
        "spec.priority",
        "is no number",
    )


def test_an_object_without_namespace_has_just_its_name() -> None:
    assert str(ObjectError("Node", ObjectMeta("n1"), field="f", reason="r")) == "Node n1: f: r"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cpu": "much"}, "spec.containers[0].resources.requests.cpu"),
        ({"created": "yesterday"}, "metadata.creationTimestamp"),
        ({"labels": {"requests": "much", "Time": "x"}}, "(unknown)"),
        ({"cpu": "1"}, "(unknown)"),
    ],
)
def test_the_first_field_that_cannot_be_read_is_named(fields: Object, expected: str) -> None:
    assert find_unreadable(pod_record(pod("web", **fields))) == expected
