"""Statuses that a real kubelet wrote: what lasts tells that a pod is ill, what it waits for rarely does."""

import json
from typing import Any

import msgspec
import pytest

from reberth.cluster.pods.health import PodProblems, find_problems
from reberth.cluster.pods.resize import keep_differing
from reberth.cluster.rows import make_pod_row
from reberth.cluster.templates import Templates
from reberth.records import Pod, PodStatus
from tests.support.builders import Object, pod
from tests.support.repository import ROOT

LINES = (ROOT / "tests/support/kubelet_recordings.jsonl").read_text().splitlines()
RECORDED: dict[str, list[Object]] = {line["case"]: line["states"] for line in map(json.loads, LINES)}
LOOPS = ("c01-crash-exit1", "c02-v2-oom-main")


def read(state: Any) -> Pod:
    made = pod(
        "web", node="n1", uid="u", deleted="2026-11-19T06:00:00Z" if state["deleting"] else None, cpu="1"
    )
    made["metadata"].setdefault("creationTimestamp", "2026-11-19T05:00:00Z")
    made["metadata"]["resourceVersion"] = "1"
    return msgspec.convert({**made, "status": state["status"]}, Pod)


def problems_of(state: Any) -> PodProblems | None:
    status = read(state).status
    return find_problems(status, {each.type: each for each in status.conditions or ()})


@pytest.mark.parametrize("case", RECORDED)
def test_every_recorded_state_makes_a_row_and_no_resize(case: str) -> None:
    for state in RECORDED[case]:
        record = read(state)
        assert make_pod_row(record, Templates(version=(1, 36))).phase == state["status"]["phase"]
        assert keep_differing(record) == PodStatus()


@pytest.mark.parametrize("case", LOOPS)
def test_a_crash_loop_is_seen_in_every_state_after_its_first_end(case: str) -> None:
    ended = next(
        number for number, state in enumerate(RECORDED[case]) if "terminated" in str(state["status"])
    )
    for state in RECORDED[case][ended:]:
        found = problems_of(state)
        assert found
        assert found.restarts or found.failed
        assert found.last_reason in {"Error", "OOMKilled"}
        assert found.last_exit_code in {1, 137}


@pytest.mark.parametrize("case", LOOPS)
def test_a_crash_loop_is_ready_again_and_again_and_seldom_waits(case: str) -> None:
    """So neither a single look at its readiness nor the reason for which it waits tells anything."""
    found = [(problems_of(state), state) for state in RECORDED[case]]
    waits = [state for problems, state in found if problems and "CrashLoopBackOff" in problems.waiting]
    rows = [make_pod_row(read(state), Templates(version=(1, 36))) for _, state in found]
    assert len(waits) < sum(row.is_ready for row in rows)


def test_a_rejected_pod_has_a_reason_and_nothing_else() -> None:
    found = problems_of(RECORDED["c03-outofcpu"][-1])
    assert found == PodProblems(reason="OutOfcpu")


def test_a_pod_evicted_for_memory_is_told_from_one_that_was_evicted_through_the_api() -> None:
    pressed, moved = (problems_of(RECORDED[case][-1]) for case in ("c06-pressure-hog", "c05-evict-stubborn"))
    assert pressed
    assert (pressed.reason, pressed.disruption) == ("Evicted", "TerminationByKubelet")
    assert moved
    assert (moved.reason, moved.disruption) == (None, "EvictionByEvictionAPI")


def test_an_evicted_pod_is_ready_until_it_ends() -> None:
    states = [state for state in RECORDED["c05-evict-stubborn"] if state["deleting"]]
    rows = [make_pod_row(read(state), Templates(version=(1, 36))) for state in states]
    assert [row.is_ready for row in rows] == [row.phase == "Running" for row in rows]
    assert all(row.is_terminating for row in rows)
