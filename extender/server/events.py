"""What the extender says in Events: why a preemption has no node left, and that its settings are refused."""

import socket
from pathlib import Path

from reberth.client.events import WARNING, EventRecorder
from reberth.records import ObjectMeta, ObjectReference
from reberth.values.errors import SettingsError
from reberth.values.refusal import Refused

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def announce_exhaustion(recorder: EventRecorder, pod: ObjectMeta, refused: Refused) -> None:
    """Say of the pod why no node is left for its preemption."""
    recorder.record(
        ObjectReference("v1", "Pod", pod.namespace, pod.name, pod.uid),
        reason=refused.rule,
        note=f"no node is left for a preemption: {refused.reason}",
        action="Preempting",
        kind=WARNING,
    )


def announce_refusal(
    recorder: EventRecorder, refusal: SettingsError, *, namespace: Path = _NAMESPACE
) -> None:
    """Say of the own pod that its changed settings are not taken. Who runs in no pod has the log alone."""
    try:
        own = ObjectReference("v1", "Pod", namespace.read_text().strip(), socket.gethostname())
    except OSError:
        return
    recorder.record(own, reason="SettingsRefused", note=str(refusal), action="Reload", kind=WARNING)
