"""The state of a pod that was just read can forbid its move."""

from typing import Any

import pytest

from reberth.records import Pod
from reberth.values.refusal import Refused
from rescheduler.protections.pod_state import TERMINATING, UNSCHEDULED, refuse_pod
from tests.support import builders


def web(**fields: Any) -> Pod:
    return builders.as_record(Pod, builders.pod("web-0", **({"node": "n1"} | fields)))


@pytest.mark.parametrize(
    ("pod", "refused"),
    [
        (web(), None),
        (web(deleted="2026-11-18T12:00:00Z"), TERMINATING),
        (web(phase="Succeeded"), Refused("Finished", "the pod has succeeded")),
        (web(phase="Failed"), Refused("Finished", "the pod has failed")),
        (web(node=None), UNSCHEDULED),
    ],
)
def test_only_a_bound_pod_that_is_neither_deleted_nor_finished_is_moved(
    pod: Pod, refused: Refused | None
) -> None:
    assert refuse_pod(pod) == refused
