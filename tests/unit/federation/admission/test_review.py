"""AdmissionReviews, from bytes to bytes: every request gets a response or a reason."""

import json
from typing import Any

import pytest
from hypothesis import example as given_too
from hypothesis import given
from hypothesis import strategies as st

from federation.admission.review import ReviewError, answer_defaulting, answer_validating, read, write
from tests.support.builders import Object
from tests.support.federation.crds import EXAMPLES, apply_json_patch, example, failing_over, name_of
from tests.support.federation.reviews import UID, response, review

ID = "11111111-1111-4111-8111-111111111111"
NOW = 1_795_003_200.0


def complete(asked: Object) -> Object:
    return response(write(answer_defaulting(read(json.dumps(asked).encode()), identity=ID, now=NOW)))


def look(asked: Object) -> Object:
    return response(write(answer_validating(read(json.dumps(asked).encode()))))


def test_a_policy_is_completed() -> None:
    policy = {
        "kind": "PropagationPolicy",
        "metadata": {"name": "a"},
        "spec": {"resourceSelectors": [{"kind": "Pod"}]},
    }
    answer = complete(review(policy))
    assert answer["uid"] == UID
    assert answer["allowed"] is True
    assert answer["patchType"] == "JSONPatch"
    made = apply_json_patch(policy, answer["patch"])
    assert made["spec"]["resourceSelectors"] == [{"kind": "Pod", "namespace": "default"}]
    assert made["metadata"]["labels"] == {"propagationpolicy.karmada.io/permanent-id": ID}


def test_a_complete_object_is_allowed_without_a_patch() -> None:
    assert complete(review(example("WorkloadRebalancer"))) == {"uid": UID, "allowed": True}
    assert complete(review(example("Cluster"))) == {"uid": UID, "allowed": True}


def test_a_refusal_is_a_status_that_names_the_field() -> None:
    policy = failing_over("Gracefully")
    answer = look(review(policy))
    assert answer["allowed"] is False
    assert answer["status"]["code"] == 403
    assert answer["status"]["reason"] == "Forbidden"
    assert answer["status"]["message"].startswith(
        "spec.failover.application.gracePeriodSeconds: Invalid value"
    )


def test_a_change_of_the_id_is_refused() -> None:
    label = "work.karmada.io/permanent-id"
    before, wanted = example("Work"), example("Work")
    before["metadata"]["labels"], wanted["metadata"]["labels"] = {label: "a"}, {label: "b"}
    answer = look(review(wanted, before=before, operation="UPDATE"))
    assert answer["status"]["message"].startswith(f"label {label} is immutable")


def test_a_warning_does_not_refuse() -> None:
    cluster = example("Cluster")
    cluster["spec"]["syncMode"] = "Pull"
    assert look(review(cluster)) == {
        "uid": UID,
        "allowed": True,
        "warnings": ["spec.syncMode: Pull: stored, but has no effect"],
    }


@pytest.mark.parametrize("one", EXAMPLES, ids=name_of)
def test_a_documented_object_is_let_in_once_completed(one: Object) -> None:
    answer = complete(review(one))
    made = apply_json_patch(one, answer["patch"]) if "patch" in answer else one
    answer = look(review(made))
    answer.pop("warnings", None)
    assert answer == {"uid": UID, "allowed": True}


@pytest.mark.parametrize(
    "request_",
    [
        {"operation": "DELETE", "object": None, "oldObject": {"kind": "Work"}},
        {"operation": "CONNECT", "object": None},
        {"subResource": "status"},
        {"kind": {"group": "cluster.x-k8s.io", "version": "v1", "kind": "Cluster"}},
        {"kind": {"group": "", "version": "v1", "kind": "Pod"}},
    ],
)
def test_objects_of_no_concern_are_allowed_unchanged(request_: Object) -> None:
    asked = review(
        {"kind": "PropagationPolicy", "spec": {"failover": {"application": {"purgeMode": "Gracefully"}}}}
    )
    asked["request"] |= request_
    assert complete(asked) == look(asked) == {"uid": UID, "allowed": True}


@pytest.mark.parametrize("wanted", [None, [], "text", 1, True])
def test_a_request_without_an_object_is_refused(wanted: Any) -> None:
    for answer in (complete(review(wanted)), look(review(wanted))):
        assert answer["allowed"] is False
        assert answer["status"]["message"] == "request.object: expected an object"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "Input data was truncated"),
        (b"{", "Input data was truncated"),
        (b"no json", "invalid character"),
        (b"\xff\xfe", "invalid"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`, got `null`"),
        (b"{}", "missing required field `apiVersion`"),
        (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}', "Invalid enum value"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"Review","request":{}}', "$.kind"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "missing required field `req"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}', "$.request"),
        (
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","kind":1}}',
            "$.request.kind",
        ),
        (b'{"a":' * 100_000, "nested too deeply"),
        (
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","kind":{"kind":"a"},'
            b'"operation":"CREATE","object":' + b"[" * 100_000,
            "nested too deeply",
        ),
    ],
)
def test_a_body_that_is_no_review_is_refused_with_the_reason(body: bytes, said: str) -> None:
    with pytest.raises(ReviewError) as error:
        read(body)
    assert said in str(error.value)


texts = st.sampled_from(
    ["", "Divided", "Gracefully", "Graciously", "NoExecute", "cluster", "a/b~c", "\ud83d\ude00", "\u0000"]
)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
keys = texts | st.sampled_from(
    [
        "metadata",
        "labels",
        "namespace",
        "spec",
        "placement",
        "spreadConstraints",
        "replicaScheduling",
        "taints",
        "clusterAffinities",
        "overflowAffinities",
        "failover",
        "application",
        "purgeMode",
        "resourceSelectors",
        "zone",
        "gracefulEvictionTasks",
        "activeEvictionHistory",
        "createTimestamp",
        "effect",
        "minGroups",
        "spreadByLabel",
        "propagationpolicy.karmada.io/permanent-id",
        "workloadAffinity",
        "resourceModels",
        "syncMode",
    ]
)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
objects = st.fixed_dictionaries({}, optional={"metadata": anything, "spec": anything})
kinds = st.sampled_from([*sorted({one["kind"] for one in EXAMPLES}), "Pod", ""])


@given(
    kinds, objects | anything, objects | anything, st.sampled_from(["CREATE", "UPDATE", "DELETE", "", "x"])
)
def test_any_object_gets_an_admission_response(kind: str, wanted: Any, before: Any, operation: str) -> None:
    asked = review(wanted, before=before, operation=operation)
    asked["request"]["kind"]["kind"] = kind
    completed, looked = complete(asked), look(asked)
    for answer in (completed, looked):
        assert answer["uid"] == UID
        assert answer["allowed"] or answer["status"]["message"]
    if "patch" in completed:
        made = apply_json_patch(wanted, completed["patch"])
        again = review(made, before=before, operation="UPDATE")
        again["request"]["kind"]["kind"] = kind
        assert "patch" not in complete(again)


def answer_or_reason(body: bytes) -> None:
    try:
        asked = read(body)
    except ReviewError as error:
        said = str(error)
    else:
        response(write(answer_defaulting(asked, identity=ID, now=NOW)))
        said = str(response(write(answer_validating(asked))))
    assert said


@given(st.binary())
@given_too(b"\xef\xbb\xbf{}")
def test_any_bytes_get_a_response_or_a_reason(body: bytes) -> None:
    answer_or_reason(body)


@given(anything | st.builds(lambda request: review({}) | {"request": request}, anything))
def test_any_json_gets_a_response_or_a_reason(body: Any) -> None:
    answer_or_reason(json.dumps(body).encode())


@given(st.data())
def test_a_review_with_any_one_part_bent_gets_an_answer_or_a_reason(data: st.DataObject) -> None:
    asked = review(example("PropagationPolicy"), before=example("PropagationPolicy"), operation="UPDATE")
    part = data.draw(st.sampled_from(sorted(asked["request"])))
    asked["request"][part] = data.draw(anything)
    answer_or_reason(json.dumps(asked).encode())


@given(st.binary(max_size=6), st.integers(0, 400))
def test_a_review_with_bytes_in_its_way_gets_an_answer_or_a_reason(bytes_: bytes, place: int) -> None:
    body = json.dumps(review(example("Cluster"))).encode()
    answer_or_reason(body[:place] + bytes_ + body[place:])
