"""The extender's Events: why a preemption has no candidate left, and that changed settings were refused."""

import socket
from pathlib import Path

from reberth.client.events import WARNING, EventRecorder
from reberth.records import ObjectMeta, ObjectReference
from reberth.values.errors import SettingsError
from reberth.values.refusal import Refused

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def announce_exhaustion(recorder: EventRecorder, pod: ObjectMeta, refused: Refused) -> None:
    """Record on the pod why no candidate is left for its preemption."""
    recorder.record(
        ObjectReference("v1", "Pod", pod.namespace, pod.name, pod.uid),
        reason=refused.rule,
        note=f"no candidate node is left for the preemption: {refused.reason}",
        action="Preempting",
        kind=WARNING,
    )


def announce_refusal(
    recorder: EventRecorder, refusal: SettingsError, *, namespace: Path = _NAMESPACE
) -> None:
    """Record on our own pod that its changed settings were refused. Outside a pod they are only logged."""
    try:
        own = ObjectReference("v1", "Pod", namespace.read_text().strip(), socket.gethostname())
    except OSError:
        return
    recorder.record(own, reason="SettingsRefused", note=str(refusal), action="Reload", kind=WARNING)
