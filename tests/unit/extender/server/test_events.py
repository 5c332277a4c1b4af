"""Events that the extender records, and their objects."""

import socket
from pathlib import Path
from typing import Any

from extender.server.events import announce_exhaustion, announce_refusal
from reberth.records import ObjectMeta, ObjectReference
from reberth.values.errors import FieldFault, SettingsError
from reberth.values.refusal import Refused

REFUSAL = SettingsError("settings.yaml", [FieldFault("unknown field", "deadlin", 3)])


class Recorder:
    def __init__(self) -> None:
        self.said: list[tuple[ObjectReference, str, str, str]] = []

    def record(self, regarding: ObjectReference, *, reason: str, note: str, action: str, kind: str) -> None:
        assert action
        self.said.append((regarding, reason, note, kind))


def test_refused_settings_are_an_event_about_the_own_pod(tmp_path: Path) -> None:
    recorder: Any = Recorder()
    (tmp_path / "namespace").write_text("reberth-system\n")
    announce_refusal(recorder, REFUSAL, namespace=tmp_path / "namespace")
    own = ObjectReference("v1", "Pod", "reberth-system", socket.gethostname())
    note = "settings.yaml: deadlin (line 3): unknown field"
    assert recorder.said == [(own, "SettingsRefused", note, "Warning")]


def test_no_event_is_recorded_outside_of_a_pod(tmp_path: Path) -> None:
    recorder: Any = Recorder()
    announce_refusal(recorder, REFUSAL, namespace=tmp_path / "namespace")
    assert recorder.said == []


def test_a_preemption_without_a_node_is_an_event_about_its_pod() -> None:
    recorder: Any = Recorder()
    asking = ObjectMeta(name="web", namespace="shop", uid="u")
    announce_exhaustion(recorder, asking, Refused("BudgetWouldBreak", "a budget"))
    about = ObjectReference("v1", "Pod", "shop", "web", "u")
    note = "no candidate node is left for the preemption: a budget"
    assert recorder.said == [(about, "BudgetWouldBreak", note, "Warning")]
