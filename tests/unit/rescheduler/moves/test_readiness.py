"""A replacement that is Ready for a moment again and again has not arrived."""

import json
import math
from typing import Any

import msgspec
import pytest

from reberth.cluster.rows import PodRow, make_pod_row
from reberth.cluster.templates import Templates
from reberth.records import Pod
from rescheduler.moves.readiness import ReadyTimer, has_lasted
from tests.support.builders import pod
from tests.support.repository import ROOT

TEMPLATES = Templates(version=(1, 36))
RECORDED = {
    line["case"]: line["states"]
    for line in map(json.loads, (ROOT / "tests/support/kubelet_recordings.jsonl").read_text().splitlines())
}
LEAST = 3.0


def row(status: Any, uid: str = "u") -> PodRow:
    made = pod("web", node="n1", uid=uid, created="2026-11-19T05:00:00Z")
    made["metadata"]["resourceVersion"] = "1"
    return make_pod_row(msgspec.convert({**made, "status": status}, Pod), TEMPLATES)


def ready(since: str = "2026-11-19T05:00:02Z", restarts: int = 0, uid: str = "u") -> PodRow:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    container = {"name": "main", "restartCount": restarts, "state": {"running": {}}}
    return row({"phase": "Running", "conditions": [condition], "containerStatuses": [container]}, uid)


UNREADY = row({"phase": "Running"})


def look(timer: ReadyTimer, now: float, *pods: PodRow) -> list[float | None]:
    """For how long each of the pods is Ready."""
    timer.look(pods, now)
    return [now - spell.since if (spell := timer.find(pod)) else None for pod in pods]


def test_a_pod_is_ready_from_the_first_sight_on() -> None:
    timer = ReadyTimer()
    assert [look(timer, now, ready()) for now in (100, 101, 103)] == [[0], [1], [3]]
    assert timer.find(None) is None


def test_a_pod_was_not_yet_ready_at_the_look_before() -> None:
    timer = ReadyTimer()
    spells = [
        (timer.look(pods, now), timer.find(ready()))[1] for now, pods in ((7, [ready()]), (9, [ready()]))
    ]
    assert [(one.after, one.since) for one in spells if one] == [(-math.inf, 7)] * 2
    look(timer, 11, UNREADY)
    look(timer, 14, ready())
    found = timer.find(ready())
    assert found is not None
    assert (found.after, found.since) == (11, 14)


@pytest.mark.parametrize(
    ("broken", "ready_for"),
    [
        ([], None),
        ([UNREADY], None),
        ([ready(since="2026-11-19T05:00:04Z")], 0),
        ([ready(restarts=1)], 0),
        ([ready(uid="another")], 0),
    ],
)
def test_a_break_that_nobody_saw_begins_the_time_anew(broken: list[PodRow], ready_for: float | None) -> None:
    timer = ReadyTimer()
    look(timer, 100, ready())
    assert look(timer, 110, *broken) == [ready_for][: len(broken)]
    assert look(timer, 111, ready()) != [11]


def test_each_pod_has_a_time_of_its_own() -> None:
    """While several replacements land, now the one and now the other is that of the move."""
    timer, other = ReadyTimer(), ready(uid="other")
    assert look(timer, 100, ready()) == [0]
    assert look(timer, 102, ready(), other) == [2, 0]
    assert look(timer, 103, other, ready()) == [1, 3]


def test_a_recorded_crash_loop_never_lasts() -> None:
    """Looked at when something changes and right before the next change, as a watch and a clock do."""
    timer, states = ReadyTimer(), RECORDED["c01-crash-exit1"]
    rows = [row(each["status"]) for each in states]
    ends = [each["seconds"] for each in states[1:]]
    seen = [
        (found, look(timer, moment, found)[0] or 0.0)
        for found, state, end in zip(rows, states, ends, strict=False)
        for moment in (state["seconds"], end)
    ]
    assert any(found.is_ready for found, _ in seen)
    assert not any(
        has_lasted(found, ready_for=ready_for, least=LEAST, is_over=False) for found, ready_for in seen
    )


def test_late_is_enough_when_the_time_is_over_unless_a_container_has_ended() -> None:
    assert not has_lasted(ready(), ready_for=1, least=LEAST, is_over=False)
    assert has_lasted(ready(), ready_for=LEAST, least=LEAST, is_over=False)
    assert has_lasted(ready(restarts=1), ready_for=LEAST, least=LEAST, is_over=False)
    assert has_lasted(ready(), ready_for=1, least=LEAST, is_over=True)
    assert not has_lasted(ready(restarts=1), ready_for=1, least=LEAST, is_over=True)
    assert not any(has_lasted(each, ready_for=9, least=LEAST, is_over=True) for each in (UNREADY, None))
