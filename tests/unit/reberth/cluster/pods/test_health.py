import msgspec
import pytest

from reberth.cluster.pods.health import PodProblems, find_problems
from reberth.records import PodStatus
from reberth.values.timestamp import parse_time
from tests.support.builders import Object

EARLY, LATE = "2026-11-18T09:15:31Z", "2026-11-18T09:20:00Z"
RUNNING: Object = {"running": {}}
KILLED: Object = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": LATE}}
DONE: Object = {"terminated": {"reason": "Completed", "exitCode": 0, "finishedAt": EARLY}}
CRASHING: Object = {"waiting": {"reason": "CrashLoopBackOff"}}


def ailment_of(status: Object) -> PodProblems | None:
    record = msgspec.convert(status, PodStatus)
    return find_problems(record, {condition.type: condition for condition in record.conditions or ()})


def container(name: str = "main", **fields: Object | int) -> Object:
    return {"name": name, "state": RUNNING, "lastState": {}, **fields}


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"containerStatuses": [container()]},
        {"containerStatuses": [{"name": "main"}]},
        {"containerStatuses": [container(state=DONE)]},
        {"initContainerStatuses": [container(state=DONE)], "containerStatuses": [container()]},
        {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]},
        {"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "x"}]},
    ],
)
def test_a_healthy_pod_has_no_ailment(status: Object) -> None:
    assert ailment_of(status) is None


def test_restarts_are_counted_apart_for_init_containers() -> None:
    status = {
        "containerStatuses": [container(restartCount=2), container("other", restartCount=3)],
        "initContainerStatuses": [container("init", restartCount=4)],
    }
    assert ailment_of(status) == PodProblems(restarts=5, init_restarts=4)


def test_the_last_termination_is_reported() -> None:
    status = {
        "containerStatuses": [
            container(restartCount=1, lastState=DONE),
            container("other", restartCount=1, lastState=KILLED),
        ]
    }
    assert ailment_of(status) == PodProblems(
        restarts=2, last_reason="OOMKilled", last_exit_code=137, last_ended=parse_time(LATE)
    )


def test_waiting_containers_say_why() -> None:
    found = ailment_of({"containerStatuses": [container(state=CRASHING, lastState=KILLED, restartCount=7)]})
    assert found
    assert (found.waiting, found.last_reason, found.failed) == (("CrashLoopBackOff",), "OOMKilled", ())


def test_containers_that_failed_finally_are_listed_with_their_reason() -> None:
    found = ailment_of({"containerStatuses": [container(state=KILLED), container("other", state=DONE)]})
    assert found
    assert (found.failed, found.last_exit_code) == (("OOMKilled",), 137)


def test_an_end_without_a_time_or_a_reason_is_still_an_end() -> None:
    found = ailment_of({"containerStatuses": [container(state={"terminated": {"exitCode": 1}})]})
    assert found == PodProblems(failed=("",), last_exit_code=1)


def test_a_waiting_container_may_have_no_reason() -> None:
    assert ailment_of({"containerStatuses": [container(state={"waiting": {}})]}) == PodProblems(waiting=("",))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"reason": "Evicted"}, PodProblems(reason="Evicted")),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
            PodProblems(unscheduled="Unschedulable"),
        ),
        (
            {
                "conditions": [
                    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
                ]
            },
            PodProblems(disruption="PreemptionByScheduler"),
        ),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
            PodProblems(disruption=""),
        ),
    ],
)
def test_the_reasons_of_the_pod_itself_are_reported(status: Object, expected: PodProblems) -> None:
    assert ailment_of(status) == expected
