"""Permanent ids are set once, survive updates that omit them, and never change."""

import pytest

from federation.admission.json_patch import encode
from federation.admission.permanent_ids import find_changed_identity, set_permanent_id
from federation.api.labels import LABELS, POLICY_KINDS
from tests.support.builders import Object
from tests.support.federation.crds import apply_json_patch

NEW = "11111111-1111-4111-8111-111111111111"
OLD = "22222222-2222-4222-8222-222222222222"

every_kind = pytest.mark.parametrize("kind", LABELS)


def made(kind: str, labels: object = None) -> Object:
    """An object with these labels."""
    metadata: Object = {"name": "one"}
    return {"kind": kind, "metadata": metadata | ({} if labels is None else {"labels": labels})}


def id_of(kind: str, wanted: Object, before: Object | None) -> str:
    after = apply_json_patch(wanted, encode(set_permanent_id(kind, wanted, before, identity=NEW)))
    found: str = after["metadata"]["labels"][LABELS[kind]]
    return found


@every_kind
@pytest.mark.parametrize("labels", [None, {}, {"app": "web"}])
def test_a_new_object_gets_an_id_beside_its_other_labels(kind: str, labels: object) -> None:
    wanted = made(kind, labels)
    after = apply_json_patch(wanted, encode(set_permanent_id(kind, wanted, None, identity=NEW)))
    assert after["metadata"]["labels"] == {**(labels or {}), LABELS[kind]: NEW}  # type: ignore[dict-item] # a mapping


@every_kind
def test_a_given_id_is_kept_except_on_policies(kind: str) -> None:
    assert id_of(kind, made(kind, {LABELS[kind]: OLD}), None) == (NEW if kind in POLICY_KINDS else OLD)


@every_kind
@pytest.mark.parametrize("labels", [None, {}, {"app": "web"}])
def test_an_id_that_a_change_leaves_out_is_put_back(kind: str, labels: object) -> None:
    assert id_of(kind, made(kind, labels), made(kind, {LABELS[kind]: OLD})) == OLD


@every_kind
def test_an_older_object_without_id_gets_one_with_its_next_change(kind: str) -> None:
    assert id_of(kind, made(kind), made(kind)) == NEW


@every_kind
def test_an_id_that_stays_is_left_alone(kind: str) -> None:
    same = made(kind, {LABELS[kind]: OLD})
    assert not list(set_permanent_id(kind, same, same, identity=NEW))
    assert find_changed_identity(kind, same, same) is None


@every_kind
def test_another_id_than_before_is_refused(kind: str) -> None:
    said = find_changed_identity(kind, made(kind, {LABELS[kind]: NEW}), made(kind, {LABELS[kind]: OLD}))
    assert said == f"label {LABELS[kind]} is immutable, it can only be set by the system during creation"


@every_kind
@pytest.mark.parametrize("before", [None, {}, []])
def test_a_first_id_is_not_another_one(kind: str, before: object) -> None:
    assert find_changed_identity(kind, made(kind, {LABELS[kind]: NEW}), before) is None


@pytest.mark.parametrize("kind", ["Cluster", "WorkloadRebalancer", "Pod"])
def test_other_kinds_have_no_id(kind: str) -> None:
    assert not list(set_permanent_id(kind, made(kind), None, identity=NEW))
    assert find_changed_identity(kind, made(kind, {"a": "b"}), made(kind, {"a": "c"})) is None
