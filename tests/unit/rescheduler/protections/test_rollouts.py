"""Workloads in a rollout are kept whole; after it, only the pods that a move would roll out."""

from collections.abc import Iterable
from typing import Any

import pytest

from reberth.values.refusal import Refused
from rescheduler.protections import ProtectionSettings, explain, find_protected, refuse_protected
from tests.support.builders import owner
from tests.support.rescheduler.guardrails import Object, context_of, place_of, replica, workload

OLD, NEW = "db-7c9", "db-8d4"
SET = owner("StatefulSet", "db")


def stateful(
    revisions: Iterable[str | None],
    strategy: Object | None = None,
    *,
    spec: Object | None = None,
    first: int = 0,
    **status: Any,
) -> list[Object]:
    """A StatefulSet that rolls out NEW, and its pods with these revisions."""
    marks = [{"controller-revision-hash": each} if each else {} for each in revisions]
    pods = [
        replica(f"db-{ordinal}", owned_by=SET, labels=labels)
        for ordinal, labels in enumerate(marks, start=first)
    ]
    updated = sum(NEW in labels.values() for labels in marks)
    known = {
        "currentRevision": OLD,
        "updateRevision": NEW,
        "replicas": len(pods),
        "updatedReplicas": updated,
        "currentReplicas": sum(OLD in labels.values() for labels in marks),
    }
    whole = {"replicas": len(pods), **({"updateStrategy": strategy} if strategy else {}), **(spec or {})}
    return [*pods, workload("StatefulSet", "db", spec=whole, status={**known, **status})]


def partition(number: int) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}


def kept(objects: list[Object], **settings: Any) -> str:
    """The ordinals of the pods that stay because of a rollout."""
    context = context_of(*objects, protections=ProtectionSettings(**settings))
    names = sorted(each["metadata"]["name"] for each in objects if each["kind"] == "Pod")
    refusals = {name: refuse_protected(place_of(context, name), context) for name in names}
    assert {refused.rule for refused in refusals.values() if refused} <= {"Rollout"}
    column = find_protected(context)
    assert {name: bool(column[place_of(context, name)]) for name in names} == {
        name: refused is not None for name, refused in refusals.items()
    }
    return " ".join(name.removeprefix("db-") for name, refused in refusals.items() if refused)


@pytest.mark.parametrize(
    ("revisions", "strategy", "expected"),
    [
        ([OLD, OLD, NEW, NEW], partition(2), ""),
        ([OLD, OLD, NEW, NEW], partition(1), "0 1 2 3"),
        ([OLD, OLD, NEW, NEW], partition(3), "2"),
        ([OLD, OLD, NEW, NEW], partition(4), "2 3"),
        ([OLD, OLD, NEW, NEW], partition(9), "2 3"),
        ([NEW, OLD, NEW, NEW], partition(2), "0"),
        ([OLD, OLD, OLD, OLD], partition(4), ""),
        ([OLD, OLD, OLD, OLD], partition(3), "0 1 2 3"),
        (["db-older", OLD, NEW, NEW], partition(2), "0"),
        ([None, OLD, NEW, NEW], partition(2), "0"),
        ([NEW, NEW, NEW, NEW], partition(0), ""),
        ([NEW, NEW, NEW, OLD], {"type": "RollingUpdate", "rollingUpdate": {}}, "0 1 2 3"),
        ([NEW, NEW, NEW, NEW], {"type": "RollingUpdate"}, ""),
        ([OLD, NEW, NEW, NEW], {"type": "RollingUpdate"}, "0 1 2 3"),
        ([NEW, NEW, NEW, NEW], {}, ""),
        ([NEW, NEW, NEW, NEW], None, ""),
        ([OLD, OLD, NEW, NEW], {"type": "OnDelete"}, "0 1 2 3"),
        ([OLD, OLD, OLD, OLD], {"type": "OnDelete"}, "0 1 2 3"),
        ([NEW, NEW, NEW, NEW], {"type": "OnDelete"}, ""),
    ],
)
def test_the_pods_that_a_move_would_disturb_or_roll_out_are_kept(
    revisions: list[str | None], strategy: Object | None, expected: str
) -> None:
    assert kept(stateful(revisions, strategy)) == expected


def test_without_rolling_update_the_controller_goes_by_the_pods_in_the_current_revision() -> None:
    behind = stateful([OLD, NEW, NEW, NEW], {"type": "RollingUpdate"}, updatedReplicas=4)
    assert kept(behind) == ""
    assert kept([*behind[:-1], stateful([NEW] * 4, {"type": "RollingUpdate"}, currentReplicas=0)[-1]]) == "0"


def test_ordinals_may_begin_later() -> None:
    begun = {"ordinals": {"start": 10}}
    assert kept(stateful([OLD, OLD, NEW, NEW], partition(2), spec=begun, first=10)) == ""
    assert kept(stateful([OLD, OLD, NEW, NEW], partition(3), spec=begun, first=10)) == "12"
    assert kept(stateful([OLD, OLD, NEW, NEW], partition(2), spec={"ordinals": {}})) == ""


def test_a_pod_without_an_ordinal_is_kept() -> None:
    strange = replica("db-x", owned_by=SET, labels={"controller-revision-hash": OLD})
    assert kept([strange, *stateful([OLD, OLD, NEW, NEW], partition(2))]) == "x"


def test_one_revision_and_whatever_the_controller_has_not_observed_count_first() -> None:
    assert kept(stateful([OLD, OLD], partition(1), updateRevision=OLD)) == ""
    assert kept(stateful([OLD, OLD], partition(1), updateRevision=OLD, observedGeneration=0)) == "0 1"


def test_other_pods_of_the_namespace_and_the_setting_are_minded() -> None:
    others = [replica(name) for name in ("db-web-1", "db-web-2")]
    objects = [*others, *stateful([OLD, OLD, NEW, NEW], partition(3))]
    assert kept(objects) == "2"
    assert kept(objects, rollouts=False) == ""


def test_the_reason_names_the_revision_in_which_the_pod_would_come_back() -> None:
    context = context_of(*stateful([OLD, OLD, NEW, NEW], partition(3)))
    place = place_of(context, "db-2")
    expected = Refused("Rollout", f"StatefulSet db would create the pod again in revision {OLD}")
    assert refuse_protected(place, context) == expected
    assert [refused for _, refused in explain(place, context) if refused] == [expected]
