"""A recording of a kubelet keeps what can be compared, and names every field."""

from typing import Any

from localcluster.recorder import Change
from tests.live.support.kubelet_versions import Difference, compare
from tests.live.support.pod_lives import list_distinct
from tests.live.support.record_kubelet import describe_case

RANDOM = ("containerd://3f9a", "containerd://77b0")


def change(seconds: float, *, restarts: int, reason: str | None = None) -> Change:
    """A container that has ended as often as it has been started again."""
    last = {"terminated": {"exitCode": 1, "reason": "Error", "containerID": RANDOM[0]}} if restarts else {}
    container = {
        "name": "main",
        "image": "localhost/busybox:1",
        "imageID": "sha256:9c04",
        "containerID": RANDOM[min(restarts, 1)],
        "ready": True,
        "restartCount": restarts,
        "state": {"running": {"startedAt": "2026-11-20T04:00:00Z"}},
        "lastState": last,
        "resources": {"requests": {"cpu": "50m"}},
    }
    condition = {"type": "Ready", "status": "True", **({"reason": reason} if reason else {})}
    status = {"phase": "Running", "conditions": [condition], "containerStatuses": [container]}
    return Change(seconds, "pods", "MODIFIED", {"metadata": {"name": "web"}, "status": status})


def record(*changes: Change, version: str = "1.36.3") -> dict[str, Any]:
    return {"web": describe_case("web", version, list_distinct(changes))}


def test_ids_are_numbered_times_count_from_the_first_state_and_repeats_are_left_out() -> None:
    line = record(change(7.5, restarts=0), change(8, restarts=0), change(9.25, restarts=1))["web"]
    assert (line["kubernetes"], [each["seconds"] for each in line["states"]]) == ("v1.36.3", [0, 1.75])
    (container,) = line["states"][1]["status"]["containerStatuses"]
    assert (container["containerID"], container["imageID"]) == ("containerd://2", "sha256:1")
    assert container["lastState"]["terminated"]["containerID"] == "containerd://1"
    assert "resources" not in container


def test_fields_without_a_value_in_the_recording_are_named() -> None:
    fields = record(change(0, restarts=0))["web"]["fields"]
    assert "containerStatuses[].resources.requests.cpu" in fields
    assert "containerStatuses[].lastState" in fields  # empty


def test_versions_differ_by_values_and_by_fields_and_not_by_the_number_of_their_writes() -> None:
    one = record(change(0, restarts=0), change(1, restarts=1))
    other = record(
        change(0, restarts=0, reason="New"), change(1, restarts=0), change(2, restarts=1), version="2"
    )
    assert compare(one, other) == {
        Difference("v2", "conditions[].reason", ""): ["web"],
        Difference("v2", "condition Ready", "True, New"): ["web"],
    }
    assert compare(one, one) == {}
